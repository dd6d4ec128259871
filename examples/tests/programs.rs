//! The examples that depend on mini alone, run as a user runs them: they end by themselves, and say what they should.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

#[path = "support.rs"]
mod support;

use support::{LIMIT, fails, lines, numbers, program, succeeds, until};

/// A server that is killed when a test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().expect("it still runs");
        self.0.wait().expect("a killed child ends");
    }
}

#[test]
fn echo_says_how_to_talk_to_it() {
    let mut command = Command::new(program("echo"));
    let child = command.args(["serve", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("it is built");
    let mut server = Server(child);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("a pipe was asked for")).read_line(&mut line).expect("a line");
    let (said, command) = line.trim_end().split_once("; in another terminal: nc ").expect("how to connect");
    let address = command.replace(' ', ":");
    assert_eq!(said, format!("echo: serving on {address}"));

    let mut client = TcpStream::connect(address).expect("it serves there");
    client.set_read_timeout(Some(LIMIT)).expect("it is a limit");
    client.write_all(b"hello\n").expect("it reads");
    client.shutdown(Shutdown::Write).expect("it is connected");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it ends after the last byte");
    assert_eq!(answer, "hello\n");
}

#[test]
fn echo_says_what_it_does_and_then_how_fast() {
    let out = succeeds("echo", &["--connections", "7", "--seconds", "1", "--size", "10"]);
    assert!(out.starts_with("echo: 7 connections send 10 B each and wait until they are back, for 1 s\n"), "{out}");
    let figure = |name| numbers(lines(&out, name)[0])[0];
    assert_eq!(figure("connections "), 7, "{out}");
    assert!(figure("messages per second ") > 0, "{out}");
    assert!(lines(&out, "latency p").len() == 2 && fails("echo", &["what"]).contains("usage: echo"), "{out}");
}

/// Other programs make frames late, so it may take more than one round.
#[test]
fn frames_are_not_late_with_tasks_inside() {
    until("frames", &["--frames", "30"], |out| {
        let late = |host| *numbers(lines(out, host)[0]).last().expect("a number");
        let meanwhile = numbers(lines(out, "meanwhile ")[0]);
        assert_eq!(meanwhile.len(), 2, "{out}");
        meanwhile.iter().all(|count| *count > 0) && late("with mini inside") <= late("without mini")
    });
}

#[test]
fn phases_finds_each_phase_where_it_should_be() {
    let out = succeeds("phases", &["--turns", "3"]);
    assert_eq!(lines(&out, "  = ").len(), 4, "{out}");
    assert_eq!(lines(&out, "  worker 0: ").len(), 12, "{out}");
    assert!(fails("phases", &["--turns", "many"]).contains("usage: phases"));
}

/// What each step is for, as ratios; on a busy machine it may take more than one round.
#[test]
fn http_steps_shows_what_each_step_brings() {
    until("http_steps", &["--milliseconds", "300"], |out| {
        let rates = |step| {
            let [line] = lines(out, step)[..] else { panic!("{out}") };
            let words: Vec<&str> = line[30..].split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().expect("a number");
            (number(0), number(6)) // 837 25.2 ms 1 120 kB 0 answers/s
        };
        let one = rates("one after the other");
        let (thread, in_loop) = (rates("a thread for each"), rates("a loop  "));
        let readers = rates("a loop, and threads for files");
        assert_eq!(one.1, 0, "one slow client stops it\n{out}");
        assert!(thread.1 > 0 && in_loop.1 > 0 && readers.1 > 0, "and no other\n{out}");
        let [_, connected, refused, unanswered] = numbers(lines(out, "a listen queue")[0])[..] else { panic!("{out}") };
        assert!(connected > 0 && unanswered > 0 && connected + refused + unanswered == 5, "{out}");
        thread.0 > one.0 && readers.0 > 2 * in_loop.0
    });
}
