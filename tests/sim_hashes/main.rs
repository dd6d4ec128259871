//! Writes what 50 seeds do to one program: for each the number of its steps and their hash.
//!
//! A seed says all: `tests/tests/simulation/sim_hashes.rs` compares two processes, `tests/sim_hashes.sh` a debug build
//! and a release build.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::signal::unix::{SignalKind, signal};
use mini::sim::{Sim, current};
use mini::sync::{Mutex, mpsc};
use mini::task::yield_now;
use mini::time::{sleep, timeout};

mini::sim::interpose!();

fn main() {
    for seed in 1..=50 {
        // The standard library draws the keys of hash maps once for a thread.
        let (result, (steps, hash)) = thread::spawn(move || Sim::new(seed).run_hashed(all())).join().expect("it ends");
        let sum = result.unwrap_or_else(|failure| panic!("{failure}"));
        println!("seed {seed}: {steps} steps, hash {hash:016x}, sum {sum}");
    }
}

async fn all() -> u64 {
    alone().await ^ over_the_network().await
}

/// Clients of a server that crashes, over links that lose packets: how many bytes have come, and when.
async fn over_the_network() -> u64 {
    let sim = current();
    sim.latency(Duration::from_millis(1)..Duration::from_millis(20)).loss(0.02);
    sim.host("server", serve);
    sim.settle().await;
    let clients = ["one", "two", "three"].map(|name| {
        sim.client(name, async {
            let mut received = 0;
            for _ in 0..5 {
                let asked = timeout(Duration::from_secs(2), ask()).await;
                received += asked.map_or(0, |answer| answer.unwrap_or_default()) as u64;
            }
            received ^ current().elapsed().as_nanos() as u64
        })
    });
    sleep(Duration::from_millis(30)).await;
    sim.crash("server");
    sleep(Duration::from_millis(30)).await;
    sim.restart("server");
    let mut sum = 0_u64;
    for client in clients {
        sum = sum.rotate_left(1) ^ client.await.expect("it ends");
    }
    sum
}

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        mini::spawn(async move {
            let mut buf = [0; 100];
            while let Ok(count @ 1..) = stream.read(&mut buf).await {
                if stream.write_all(&buf[..count]).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn ask() -> io::Result<usize> {
    let stream = TcpStream::connect("server:7").await?;
    stream.write_all(&[1; 500]).await?;
    let mut answer = [0; 500];
    stream.read_exact(&mut answer).await?;
    Ok(answer.len())
}

/// Some of all that may decide what happens: the schedule, drawn budgets, hash maps, both clocks, timers, blocking
/// jobs, races, random numbers and signals.
async fn alone() -> u64 {
    let (send, mut receive) = mpsc::channel(3);
    let shared = Arc::new(Mutex::new(HashMap::new()));
    for number in 0..8_u64 {
        let (send, shared) = (send.clone(), shared.clone());
        mini::spawn(async move {
            let start = Instant::now();
            for round in 0..10 {
                shared.lock().await.insert(number * 10 + round, start.elapsed());
                sleep(Duration::from_micros(current().rand() % 300)).await;
            }
            let job = mini::spawn_blocking(move || number * number);
            send.send(job.await.expect("it ends")).await.expect("somebody receives");
        });
    }
    drop(send);
    let mut hangups = signal(SignalKind::hangup()).expect("it is simulated");
    let listener = mini::spawn(async move {
        let mut heard = 0;
        while timeout(Duration::from_millis(2), hangups.recv()).await.is_ok() {
            heard += 1;
        }
        heard
    });
    let mut sum = 0;
    while let Some(square) = receive.recv().await {
        current().signal("test", SignalKind::hangup());
        sum += square;
    }
    // In the order of the map.
    for (key, at) in shared.lock().await.iter() {
        for _ in 0..key % 3 {
            yield_now().await;
        }
        sum = sum.rotate_left(1) ^ at.as_nanos() as u64;
        mini::race! {
            () = sleep(Duration::from_nanos(key % 7)) => sum += 1,
            () = yield_now() => sum += 2,
        }
    }
    sum + listener.await.expect("it ends")
}
