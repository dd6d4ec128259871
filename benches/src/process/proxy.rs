//! Rows of a proxy, which takes two connections and copies between them: much data one way, and small messages there
//! and back.
//!
//! The peers use what they have for that: `copy_bidirectional`, or two copies. CPU time is the proxy's alone. Both ends
//! are blocking sockets of this process, on a CPU of their own. Called by [`rows`](super::rows).

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create, sendfile};
use rustix::net::{RecvFlags, recv};

use super::server::{Kind, Layout};
use super::{ProcessRow, ROUNDS, Server, beside, plan, window};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;

/// Bytes of a write, and of a read, at the ends of a stream.
const BLOCK: usize = 128 << 10;

/// Bytes of a small message.
const MESSAGE: usize = 64;

const PEERS: [Peer; 3] = [Peer::Mini, Peer::Tokio, Peer::Smol];

/// The two ends of what a proxy connects.
struct Ends {
    source: TcpStream,
    sink: TcpStream,
}

/// What has gone through, with the CPU time of the proxy for it.
struct Passed {
    count: u64,
    took: Duration,
    cpu: Duration,
}

pub(super) fn rows() -> [ProcessRow; 3] {
    let messages = ProcessRow {
        group: Group::Sockets,
        name: "proxy of 64 B there and back, 1 worker".to_owned(),
        figures: vec![Figure::lower("CPU per message", Unit::Nanoseconds)],
        peers: PEERS.to_vec(),
        rounds: ROUNDS,
        sample: Box::new(|peer, options| {
            let Passed { count, cpu, .. } = beside(Layout::One, || messages(peer, window(options)))?;
            Ok(vec![cpu.as_nanos() as f64 / count as f64])
        }),
    };
    [streams("a stream", 1), streams("16 streams", 16), messages]
}

/// The row of `count` streams. One alone waits for its ends most of the time.
fn streams(of: &str, count: usize) -> ProcessRow {
    ProcessRow {
        group: Group::Sockets,
        name: format!("proxy of {of}, 1 worker"),
        figures: vec![Figure::higher("MB for CPU time", Unit::PerCpuSecond), Figure::higher("MB", Unit::PerSecond)],
        peers: PEERS.to_vec(),
        rounds: ROUNDS,
        sample: Box::new(move |peer, options| {
            let Passed { count, took, cpu } = beside(Layout::One, || stream(peer, count, window(options)))?;
            let megabytes = count as f64 / 1e6;
            Ok(vec![megabytes / cpu.as_secs_f64(), megabytes / took.as_secs_f64()])
        }),
    }
}

fn connect(server: &Server) -> io::Result<Ends> {
    let connect = || {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connect().and_then(|source| Ok(Ends { source, sink: connect()? }))
}

/// Bytes from `count` sources to as many sinks.
fn stream(peer: Peer, count: usize, window: Duration) -> Result<Passed, String> {
    let mut server = Server::start(plan(peer, Layout::One, Kind::Proxy))?;
    let fail = |error| format!("proxy: {error}");
    let ends = (0..count).map(|_| connect(&server)).collect::<io::Result<Vec<_>>>().map_err(fail)?;
    let block = block().map_err(fail)?;
    let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for Ends { source, sink } in &ends {
            scope.spawn(|| while send(source, &block).is_ok() {});
            scope.spawn(|| drain(sink, &received, &stop));
        }
        thread::sleep(window / 4);
        let measured = (|| {
            let (cpu, start, before) = (server.child.cpu_time()?, Instant::now(), received.load(Relaxed));
            thread::sleep(window);
            let count = received.load(Relaxed) - before;
            Ok(Passed { count, took: start.elapsed(), cpu: server.child.cpu_time()? - cpu })
        })();
        stop.store(true, Relaxed);
        // The end of the threads is an error: without the proxy their writes fail.
        drop(server);
        measured
    })
}

/// A file in memory, of the length of a write.
fn block() -> io::Result<OwnedFd> {
    let block = memfd_create("block", MemfdFlags::CLOEXEC)?;
    ftruncate(&block, BLOCK as u64)?;
    Ok(block)
}

/// Sends a block without copying it (sendfile(2)), as the ends share a CPU, and the proxy shall be the bottleneck.
fn send(source: &TcpStream, block: &OwnedFd) -> io::Result<()> {
    let mut sent = 0;
    while sent < BLOCK as u64 {
        if sendfile(source, block, Some(&mut sent), BLOCK)? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

/// Takes bytes in and throws them away unseen (`MSG_TRUNC` in tcp(7)), for the same reason; counts them in `received`.
fn drain(sink: &TcpStream, received: &AtomicU64, stop: &AtomicBool) {
    let mut buf = vec![0; BLOCK];
    while !stop.load(Relaxed) {
        match recv(sink, &mut *buf, RecvFlags::TRUNC) {
            Ok((_, length @ 1..)) => received.fetch_add(length as u64, Relaxed),
            _ => return,
        };
    }
}

/// Messages from one end to the other, each with its answer; both count.
fn messages(peer: Peer, window: Duration) -> Result<Passed, String> {
    let mut server = Server::start(plan(peer, Layout::One, Kind::Proxy))?;
    let fail = |error| format!("proxy: {error}");
    let mut ends = connect(&server).map_err(fail)?;
    talk(&mut ends, window / 4).map_err(fail)?;
    let (before, start) = (server.child.cpu_time()?, Instant::now());
    let count = talk(&mut ends, window).map_err(fail)?;
    let passed = Passed { count, took: start.elapsed(), cpu: server.child.cpu_time()? - before };
    ends.source.shutdown(Shutdown::Write).map_err(fail)?;
    match ends.sink.read(&mut [0]) {
        Ok(0) => Ok(passed),
        other => Err(format!("the proxy does not pass the end on: {other:?}")),
    }
}

fn talk(ends: &mut Ends, window: Duration) -> io::Result<u64> {
    let (start, mut count, mut message) = (Instant::now(), 0, [7; MESSAGE]);
    while start.elapsed() < window {
        ends.source.write_all(&message)?;
        ends.sink.read_exact(&mut message)?;
        ends.sink.write_all(&message)?;
        ends.source.read_exact(&mut message)?;
        count += 2;
    }
    Ok(count)
}
