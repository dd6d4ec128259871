//! The row of system calls: what a server asks of the kernel per message, counted by `strace`.
//!
//! Explains the CPU time of the echo rows; a message needs one receive and one send, and a share of a wait. A ring
//! makes no such calls and takes no part. Called by [`rows`](super::rows). Without `strace`, or without the right to
//! attach it, the row stays empty and says so.
//!
//! Rejected: one run with `strace` around everything. It would count the accepts, and slow down what is measured.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::load::{Load, Run, Shape};
use super::server::{Kind, Layout};
use super::{ProcessRow, Server, beside, peers, plan};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;

const CONNECTIONS: usize = 64;

/// Messages that the calls are given for.
const PER: u64 = 1000;

/// How often all connections send one message each while `strace` counts. They wait for each other: `strace` slows the
/// server down so much that otherwise none of its reads would find a socket empty.
const ROUNDS: u64 = 100;

pub(super) fn row() -> ProcessRow {
    let figure = |suffix| Figure::lower(suffix, Unit::Times);
    ProcessRow {
        group: Group::Sockets,
        name: format!("calls per {PER} messages, echo server, {CONNECTIONS} conns, 1 worker"),
        figures: ["receives", "sends", "waits and others"].map(figure).to_vec(),
        peers: peers(Layout::One).into_iter().filter(|&peer| peer != Peer::MonoioUring).collect(),
        rounds: 1,
        sample: Box::new(|peer, _| beside(Layout::One, || measure(peer))),
    }
}

fn measure(peer: Peer) -> Result<Vec<f64>, String> {
    let server = Server::start(plan(peer, Layout::One, Kind::Echo))?;
    let fail = |error| format!("load: {error}");
    let mut load = Load::connect(server.port, CONNECTIONS, Shape::echo(true)).map_err(fail)?;
    load.run(CONNECTIONS, Run::Messages(10)).map_err(fail)?;
    let strace = Strace::attach(server.child.id())?;
    for _ in 0..ROUNDS {
        load.run(CONNECTIONS, Run::Messages(1)).map_err(fail)?;
    }
    let calls = Calls::parse(&strace.detach()?);
    let messages = ROUNDS * CONNECTIONS as u64;
    Ok(calls.0.map(|count| (count * PER) as f64 / messages as f64).to_vec())
}

/// `strace -c` on all threads of a running process.
struct Strace {
    process: Child,
    stderr: BufReader<ChildStderr>,
}

impl Strace {
    /// Returns when it has attached.
    fn attach(pid: u32) -> Result<Self, String> {
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-p", &pid.to_string()]).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("strace cannot be run: {error}"))?;
        let stderr = process.stderr.take().expect("stderr is piped");
        let mut strace = Self { process, stderr: BufReader::new(stderr) };
        let mut line = String::new();
        strace.stderr.read_line(&mut line).map_err(|error| format!("strace: {error}"))?;
        if line.contains("attached") { Ok(strace) } else { Err(format!("strace cannot attach: {}", line.trim_end())) }
    }

    /// The table of calls.
    fn detach(mut self) -> Result<String, String> {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::INT).map_err(|error| format!("strace cannot be stopped: {error}"))?;
        let mut table = String::new();
        self.stderr.read_to_string(&mut table).map_err(|error| format!("strace: {error}"))?;
        Ok(table)
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Receives, sends, all others.
#[derive(Debug, Default, PartialEq)]
struct Calls([u64; 3]);

impl Calls {
    /// From lines `% time  seconds  usecs/call  calls  [errors]  syscall`.
    fn parse(table: &str) -> Self {
        let mut calls = Self::default();
        for line in table.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let [percent, _, _, count, .., name] = words.as_slice() else { continue };
            let (Ok(_), Ok(count)) = (percent.parse::<f64>(), count.parse::<u64>()) else { continue };
            let group = match *name {
                "total" => continue,
                "recvfrom" | "recvmsg" | "read" | "readv" => 0,
                "sendto" | "sendmsg" | "write" | "writev" => 1,
                _ => 2,
            };
            calls.0[group] += count;
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_grouped() {
        let table = "strace: Process 7 detached\n\
            % time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
             62.50    0.001250           1      6400           sendto\n\
             25.00    0.000500           0      7000       600 recvfrom\n\
             12.40    0.000240           0       100           epoll_wait\n\
              0.10    0.000010           0         3           futex\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.002000           0     13503       600 total\n";
        assert_eq!(Calls::parse(table), Calls([7000, 6400, 103]));
    }
}
