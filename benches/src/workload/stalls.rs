//! What the neighbours of a task that computes for 50 ms at a time get: timers, sockets, and tasks queued behind it.
//!
//! All on two workers with a CPU each, so that one is always free to help.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::tcp::{MESSAGE, connect, serve};
use super::timers::lateness;
use super::{Started, Subject};
use crate::load::Load;
use crate::measured::{Figure, Group, Unit};
use crate::rt::{Flavour, Rt, Stream};
use crate::stats::percentile;

/// Sleeping tasks, connections.
const NEIGHBOURS: usize = 10;

/// How often the computing task computes for 50 ms.
fn stalls(load: Load) -> u32 {
    load.pick(8, 2)
}

fn span(load: Load) -> Duration {
    stalls(load) * Duration::from_millis(50)
}

fn figures() -> Vec<Figure> {
    vec![Figure::lower("p50", Unit::Microseconds), Figure::lower("p99", Unit::Microseconds)]
}

fn percentiles(latencies: &[f64]) -> Vec<f64> {
    vec![percentile(latencies, 50.0), percentile(latencies, 99.0)]
}

/// Computes and yields in turn.
async fn hog<R: Rt>(load: Load) {
    for _ in 0..stalls(load) {
        load.compute_50ms();
        R::yield_now().await;
    }
}

/// How late ten tasks wake that sleep for 1 ms, again and again.
pub(super) struct Sleeps;

impl Subject for Sleeps {
    fn name() -> String {
        "stall of 50 ms: lateness of sleeps".to_owned()
    }

    fn group() -> Group {
        Group::Stalls
    }

    fn figures() -> Vec<Figure> {
        figures()
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let sample = move || percentiles(&rt.block_on(async move { R::spawn(sleeps::<R>(load)).await }));
        Ok(Started::Probe(Box::new(sample)))
    }
}

async fn sleeps<R: Rt>(load: Load) -> Vec<f64> {
    let tasks: Vec<_> = (0..NEIGHBOURS).map(|_| R::spawn(sleeper::<R>(span(load)))).collect();
    let hog = R::spawn(hog::<R>(load));
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await);
    }
    hog.await;
    latencies
}

pub(super) async fn sleeper<R: Rt>(span: Duration) -> Vec<f64> {
    let start = Instant::now();
    let mut latencies = Vec::new();
    while start.elapsed() < span {
        latencies.push(lateness::<R>(Duration::from_millis(1)).await);
    }
    latencies
}

/// Round trips of a thread that asks ten echo connections in turn.
pub(super) struct Sockets;

impl Subject for Sockets {
    fn name() -> String {
        "stall of 50 ms: round trip of sockets".to_owned()
    }

    fn group() -> Group {
        Group::Stalls
    }

    fn figures() -> Vec<Figure> {
        figures()
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let sample = move || percentiles(&sockets(&rt, load));
        Ok(Started::Probe(Box::new(sample)))
    }
}

fn sockets<R: Rt>(rt: &R, load: Load) -> Vec<f64> {
    let pairs: Vec<_> = (0..NEIGHBOURS).map(|_| connect().expect("loopback connects")).collect();
    let (clients, servers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let client = thread::spawn(move || ask_in_turn(clients, span(load)).expect("the servers answer"));
    rt.block_on(async move {
        let served = servers.into_iter().map(|server| {
            let server = R::Stream::from_std(server).expect("the runtime takes the server");
            R::spawn(serve(server))
        });
        let served: Vec<_> = served.collect();
        R::spawn(hog::<R>(load)).await;
        for server in served {
            server.await.expect("the server sees the end");
        }
    });
    client.join().expect("the client ends")
}

/// The client's thread: one message at a time, with a pause, so that it leaves the CPUs to the runtime.
pub(super) fn ask_in_turn(mut clients: Vec<TcpStream>, span: Duration) -> io::Result<Vec<f64>> {
    for client in &clients {
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(Duration::from_secs(10)))?;
    }
    let mut latencies = Vec::new();
    let start = Instant::now();
    while start.elapsed() < span {
        for client in &mut clients {
            latencies.push(round_trip(client)?);
            thread::sleep(Duration::from_micros(300));
        }
    }
    Ok(latencies)
}

/// In microseconds.
fn round_trip(client: &mut TcpStream) -> io::Result<f64> {
    let message = [7; MESSAGE];
    let mut answer = [0; MESSAGE];
    let start = Instant::now();
    client.write_all(&message)?;
    client.read_exact(&mut answer)?;
    let took = start.elapsed();
    assert_eq!(answer, message);
    Ok(took.as_secs_f64() * 1e6)
}

/// How soon tasks run that another task started just before it computes. Measured from the second time on: mini helps
/// at once only if a worker was stuck in the last ten seconds, and the first batch waits for up to two milliseconds.
pub(super) struct Queued;

impl Subject for Queued {
    fn name() -> String {
        "stall of 50 ms: start of tasks queued behind, from the 2nd on".to_owned()
    }

    fn group() -> Group {
        Group::Stalls
    }

    fn figures() -> Vec<Figure> {
        figures()
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let sample = move || percentiles(&rt.block_on(async move { R::spawn(queued::<R>(load)).await }));
        Ok(Started::Probe(Box::new(sample)))
    }
}

async fn queued<R: Rt>(load: Load) -> Vec<f64> {
    let mut latencies = Vec::new();
    for number in 0..=stalls(load) {
        let tasks = (0..100).map(|_| {
            let spawned = Instant::now();
            R::spawn(async move { spawned.elapsed().as_secs_f64() * 1e6 })
        });
        let tasks: Vec<_> = tasks.collect();
        load.compute_50ms();
        for task in tasks {
            let latency = task.await;
            if number > 0 {
                latencies.push(latency);
            }
        }
    }
    latencies
}
