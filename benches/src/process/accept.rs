//! Rows of connections that come and go: accepted and closed one after the other, and a thousand at once.
//!
//! Called by [`rows`](super::rows).

use std::collections::VecDeque;
use std::hint;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::load::{Load, Run, Shape};
use super::server::{Kind, Layout};
use super::{ProcessRow, ROUNDS, Server, beside, peers, plan, window};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;

/// Connections that wait for the server at a time, so that it does not wait for the client.
const AHEAD: usize = 16;

/// Connections of a burst.
const BURST: usize = 1000;

/// Bursts of a sample; the one in the middle counts.
const BURSTS: usize = 3;

/// Between two bursts: the server closes what the client has reset.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a server may take for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn rows() -> [ProcessRow; 2] {
    let (group, rounds, peers) = (Group::Sockets, ROUNDS, peers(Layout::One));
    let close = ProcessRow {
        group,
        name: "accept and close, 1 worker".to_owned(),
        figures: vec![
            Figure::lower("CPU per connection", Unit::Nanoseconds),
            Figure::higher("connections", Unit::PerSecond),
        ],
        peers: peers.clone(),
        rounds,
        sample: Box::new(|peer, options| beside(Layout::One, || accept_and_close(peer, window(options)))),
    };
    let burst = ProcessRow {
        group,
        name: format!("burst of {BURST} connects and an echo each, 1 worker"),
        figures: vec![Figure::lower("", Unit::Milliseconds)],
        peers,
        rounds,
        sample: Box::new(|peer, _| beside(Layout::One, || burst(peer))),
    };
    [close, burst]
}

fn accept_and_close(peer: Peer, window: Duration) -> Result<Vec<f64>, String> {
    let mut server = Server::start(plan(peer, Layout::One, Kind::Close))?;
    let fail = |error| format!("connect: {error}");
    come_and_go(server.port, window / 4).map_err(fail)?;
    let before = server.child.cpu_time()?;
    let (count, took) = come_and_go(server.port, window).map_err(fail)?;
    let cpu = server.child.cpu_time()? - before;
    Ok(vec![cpu.as_nanos() as f64 / count as f64, count as f64 / took.as_secs_f64()])
}

/// Connects again and again and waits for the server to close; returns how often, and in what time.
fn come_and_go(port: u16, window: Duration) -> io::Result<(u64, Duration)> {
    let (start, mut count) = (Instant::now(), 0);
    let mut waiting = VecDeque::with_capacity(AHEAD);
    loop {
        while waiting.len() < AHEAD && start.elapsed() < window {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
            stream.set_nonblocking(true)?;
            waiting.push_back(stream);
        }
        let Some(stream) = waiting.pop_front() else { return Ok((count, start.elapsed())) };
        await_close(stream)?;
        count += 1;
    }
}

/// Spins, as the load client does.
fn await_close(mut stream: TcpStream) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match stream.read(&mut [0; 8]) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "the server should be silent")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => hint::spin_loop(),
            Err(error) => return Err(error),
        }
        if start.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

fn burst(peer: Peer) -> Result<Vec<f64>, String> {
    let server = Server::start(plan(peer, Layout::One, Kind::Echo))?;
    let fail = |error| format!("burst: {error}");
    connect_at_once(server.port).map_err(fail)?; // warm-up
    let mut times = Vec::with_capacity(BURSTS);
    for _ in 0..BURSTS {
        thread::sleep(PAUSE);
        times.push(connect_at_once(server.port).map_err(fail)?);
    }
    times.sort();
    Ok(vec![times[BURSTS / 2].as_secs_f64() * 1e3])
}

/// The time until the last of the connections has its echo.
fn connect_at_once(port: u16) -> io::Result<Duration> {
    let start = Instant::now();
    let mut load = Load::begin_connect(port, BURST, Shape::echo(true))?;
    load.run(BURST, Run::Messages(1))?;
    Ok(start.elapsed())
}
