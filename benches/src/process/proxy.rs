//! Rows of a proxy, which takes two connections and copies between them: much data one way, and small messages there and
//! back.
//!
//! The peers use what they have for that: `copy_bidirectional`, or two copies. CPU time is the proxy's alone. Both ends are
//! blocking sockets of this process, on a CPU of their own. Called by [`rows`](super::rows).

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

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

pub(super) fn rows() -> [ProcessRow; 2] {
    let stream = ProcessRow {
        group: Group::Sockets,
        name: "proxy of a stream, 1 worker".to_owned(),
        figures: vec![Figure::higher("MB for CPU time", Unit::PerCpuSecond), Figure::higher("MB", Unit::PerSecond)],
        peers: PEERS.to_vec(),
        rounds: ROUNDS,
        sample: Box::new(|peer, options| {
            let Passed { count, took, cpu } = beside(Layout::One, || stream(peer, window(options)))?;
            let megabytes = count as f64 / 1e6;
            Ok(vec![megabytes / cpu.as_secs_f64(), megabytes / took.as_secs_f64()])
        }),
    };
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
    [stream, messages]
}

fn connect(server: &Server) -> io::Result<Ends> {
    let connect = || {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connect().and_then(|source| Ok(Ends { source, sink: connect()? }))
}

/// Bytes from the source to the sink.
fn stream(peer: Peer, window: Duration) -> Result<Passed, String> {
    let mut server = Server::start(plan(peer, Layout::One, Kind::Proxy))?;
    let fail = |error| format!("proxy: {error}");
    let Ends { mut source, sink } = connect(&server).map_err(fail)?;
    let mut buf = vec![0; BLOCK];
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let block = vec![7; BLOCK];
            while source.write_all(&block).is_ok() {}
        });
        let measured = (|| {
            drain(&sink, &mut buf, window / 4).map_err(fail)?;
            let (before, start) = (server.child.cpu_time()?, Instant::now());
            let count = drain(&sink, &mut buf, window).map_err(fail)?;
            Ok(Passed { count, took: start.elapsed(), cpu: server.child.cpu_time()? - before })
        })();
        // The writer's end is an error: without the proxy there is nobody to write to.
        drop((sink, server));
        writer.join().expect("the writer does not panic");
        measured
    })
}

/// Takes bytes in for `window`, and throws them away unseen (`MSG_TRUNC` in tcp(7)), as both ends share a CPU, and the proxy
/// shall be what limits; returns how many.
fn drain(sink: &TcpStream, buf: &mut [u8], window: Duration) -> io::Result<u64> {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < window {
        match recv(sink, &mut *buf, RecvFlags::TRUNC)?.1 {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => count += length as u64,
        }
    }
    Ok(count)
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
