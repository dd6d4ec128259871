//! The row of a server whose accept loop is the program's main future, while the handler of a connection blocks its
//! thread.
//!
//! That is how most programs are written, and the other worker is free. Two rows: the loop in `block_on`, and in a
//! function under the runtime's attribute for `main`, where mini's may do more; the peers' attributes are their
//! `block_on`. Called by [`rows`](super::rows).
//!
//! A client blocks one connection and then comes with the next, whose answer it waits for. The layout is one runtime
//! with two workers: with one worker, no other could take over.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::server::{BLOCK, BLOCKED, Kind, Layout};
use super::{ProcessRow, Server, beside, plan};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;
use crate::stats::percentile;

/// Connections that block, in a sample. Which worker a handler runs on is chance.
const TIMES: usize = 5;

/// Time for the handler to begin.
const PAUSE: Duration = Duration::from_millis(30);

/// How long a server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn rows() -> [ProcessRow; 2] {
    [(Kind::Stall, "block_on"), (Kind::StallInMain, "main")].map(|(kind, place)| ProcessRow {
        group: Group::Stalls,
        name: format!("accept loop in {place}, a handler blocks for {BLOCKED:?}: the next client"),
        figures: vec![Figure::lower("p50", Unit::Microseconds), Figure::lower("max", Unit::Microseconds)],
        peers: vec![Peer::Mini, Peer::Tokio, Peer::Smol],
        rounds: 5,
        sample: Box::new(move |peer, _| beside(Layout::Shared, || measure(peer, kind))),
    })
}

fn measure(peer: Peer, kind: Kind) -> Result<Vec<f64>, String> {
    let server = Server::start(plan(peer, Layout::Shared, kind))?;
    let took = (0..TIMES).map(|_| next_client(server.port)).collect::<io::Result<Vec<_>>>();
    let took = took.map_err(|error| format!("client: {error}"))?;
    Ok(vec![percentile(&took, 50.0), percentile(&took, 100.0)])
}

/// What a client waits for its answer while another one's handler blocks, from the connect on, in microseconds.
fn next_client(port: u16) -> io::Result<f64> {
    let mut first = connect(port)?;
    first.write_all(&[BLOCK])?;
    thread::sleep(PAUSE);
    let start = Instant::now();
    let mut next = connect(port)?;
    next.write_all(b"x")?;
    next.read_exact(&mut [0])?;
    let took = start.elapsed();
    first.read_exact(&mut [0])?;
    Ok(took.as_secs_f64() * 1e6)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
