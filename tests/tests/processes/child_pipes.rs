//! Pipes to children: everything arrives, the end too, and a dropped wait loses nothing.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::Stdio;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use mini::process::Command;
use mini_tests::child_support::{cat, sh};
use mini_tests::net_support::{in_each_runtime, kind_of};
use mini_tests::{Counts, poll_with, until};
use rustix::process::{Pid, Signal, kill_process};

fn kill(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(id as i32).unwrap(), signal).unwrap();
}

#[test]
fn more_than_a_pipe_holds_goes_in_and_out() {
    in_each_runtime(|| async {
        let sent: Vec<u8> = (0..400_000u32).map(|number| (number % 251) as u8).collect();
        let mut child = cat().spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let to_send = sent.clone();
        let writer = mini::spawn(async move { stdin.write_all(&to_send).await });
        let mut received = vec![0; sent.len()];
        stdout.read_exact(&mut received).await.unwrap();
        writer.await.unwrap().unwrap();
        assert!(received == sent);
        assert_eq!(stdout.read(&mut received).await.unwrap(), 0, "the writer has dropped its end");
        assert_eq!(kind_of(stdout.read_exact(&mut [0]).await), ErrorKind::UnexpectedEof);
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn the_output_is_collected_from_both_pipes() {
    in_each_runtime(|| async {
        // Each more than a pipe holds, in an order that would block a reader of one after the other.
        let script = "head -c 200000 /dev/zero >&2; head -c 300000 /dev/zero; echo end; exit 5";
        let output = sh(script).output().await.unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert_eq!((output.stderr.len(), output.stdout.len()), (200_000, 300_004));
        assert!(output.stdout.ends_with(b"end\n"));
        // Only piped outputs are collected.
        let child = sh("echo said >&2").stderr(Stdio::null()).spawn().unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    });
}

#[test]
fn the_output_of_one_child_is_the_input_of_another() {
    in_each_runtime(|| async {
        let mut first = sh("head -c 100000 /dev/zero").stdout(Stdio::piped()).spawn().unwrap();
        let between: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let output = Command::new("wc").arg("-c").stdin(between).output().await.unwrap();
        assert_eq!(output.stdout.trim_ascii(), b"100000");
        assert!(first.wait().await.unwrap().success());
        // As descriptors that block.
        let mut child = cat().spawn().unwrap();
        let stdin = child.stdin.take().unwrap().into_owned_fd().unwrap();
        let mut stdout = fs::File::from(child.stdout.take().unwrap().into_owned_fd().unwrap());
        let reader = mini::spawn_blocking(move || {
            let mut received = String::new();
            stdout.read_to_string(&mut received).map(|_| received)
        });
        fs::File::from(stdin).write_all(b"ping").unwrap();
        assert_eq!(reader.await.unwrap().unwrap(), "ping");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn pipes_have_the_traits_of_futures_io() {
    in_each_runtime(|| async {
        let mut child = cat().spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        AsyncWriteExt::write_all(&mut stdin, b"ping").await.unwrap();
        AsyncWriteExt::flush(&mut stdin).await.unwrap();
        let mut start = [0; 2];
        AsyncReadExt::read_exact(&mut &stdout, &mut start).await.unwrap();
        AsyncWriteExt::close(&mut stdin).await.unwrap();
        let mut rest = String::new();
        AsyncReadExt::read_to_string(&mut stdout, &mut rest).await.expect("closing ends the child's input");
        assert_eq!((&start, rest.as_str()), (b"pi", "ng"));
        // A closed stdin stays closed.
        assert_eq!(kind_of(stdin.write(b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(kind_of(stdin.write_all(b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(kind_of(AsyncWriteExt::write(&mut stdin, b"more").await), ErrorKind::BrokenPipe);
        assert!(stdin.into_owned_fd().is_err());
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn writing_to_who_does_not_read_is_an_error() {
    in_each_runtime(|| async {
        let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        child.wait().await.unwrap();
        // A child that another test is just starting has the pipe too, until it runs its program.
        let refused = loop {
            if let Err(refused) = stdin.write(b"hello").await {
                break refused;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
        assert_eq!(stdin.write(b"").await.unwrap(), 0);
    });
}

#[test]
fn dropped_reads_and_waits_lose_nothing() {
    in_each_runtime(|| async {
        let counts = Counts::new();
        let mut child = cat().spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut buf = [0; 8];
        let mut read = stdout.read(&mut buf);
        assert!(poll_with(&mut read, &counts).is_pending());
        stdin.write_all(b"ping").await.unwrap();
        until(|| counts.wakes() > 0).await;
        drop(read);
        assert_eq!(stdout.read(&mut buf).await.unwrap(), 4);

        let counts = Counts::new();
        let mut wait = child.wait();
        assert!(poll_with(&mut wait, &counts).is_pending());
        drop(stdin);
        until(|| counts.wakes() > 0).await;
        drop(wait);
        assert!(child.id().is_some(), "nobody has asked for the status");
        drop(child.wait());
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn wait_closes_stdin_first() {
    in_each_runtime(|| async {
        let mut child = cat().spawn().unwrap();
        drop(child.wait());
        assert!(child.stdin.is_some(), "not before the first poll");
        assert!(child.wait().await.unwrap().success());
        assert!(child.stdin.is_none());
        assert!(cat().status().await.unwrap().success());
        assert!(cat().spawn().unwrap().wait_with_output().await.unwrap().status.success());
    });
}

#[test]
fn a_grandchild_that_holds_the_pipe_holds_no_wait_up() {
    in_each_runtime(|| async {
        let script = "sleep 10000 & echo $!; exit 4";
        let mut child = sh(script).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(4));
        let mut line = [0; 32];
        let read = stdout.read(&mut line).await.unwrap();
        let grandchild: u32 = str::from_utf8(&line[..read]).unwrap().trim().parse().unwrap();
        // The grandchild has the output, which therefore has not ended.
        let counts = Counts::new();
        let mut end = stdout.read(&mut line);
        assert!(poll_with(&mut end, &counts).is_pending());
        kill(grandchild, Signal::KILL);
        assert_eq!(end.await.unwrap(), 0);
    });
}

#[test]
fn the_output_ends_with_the_last_who_can_write_to_it() {
    in_each_runtime(|| async {
        // Shells give background jobs another input, unless told otherwise.
        let mut command = sh("exec 3<&0; cat <&3 & exit 4");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut output = Box::pin(child.wait_with_output());
        assert!(poll_with(&mut output, &Counts::new()).is_pending());
        let task = mini::spawn(output);
        stdin.write_all(b"from the grandchild").await.unwrap();
        drop(stdin);
        let output = task.await.unwrap().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b"from the grandchild"[..]));
    });
}
