//! Prints how many seeds a second a simulation takes, and how long an idle hour does.
//!
//! The program is small: eight clients, each on a host of its own, send twenty messages of 32 bytes to a server that
//! sends them back; one segment of a hundred is lost. Beside it, in turn with it, a bare loop does the same over queues
//! in memory and polls as often: no network, no time, no faults, nothing that watches.
//!
//! `taskset -c 1 cargo run --profile bench -p mini-bench-simulation [SEEDS]`

mod bare;

use std::io;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::sim::{Sim, current};

pub(crate) const CLIENTS: usize = 8;
pub(crate) const MESSAGES: usize = 20;
pub(crate) const BYTES: usize = 32;

/// How often each is measured, of which the median counts.
const ROUNDS: usize = 9;

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        mini::spawn(async move {
            let mut message = [0; BYTES];
            while stream.read_exact(&mut message).await.is_ok() {
                if stream.write_all(&message).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn ask() -> io::Result<()> {
    let stream = TcpStream::connect("echo:7").await?;
    let mut answer = [0; BYTES];
    for _ in 0..MESSAGES {
        stream.write_all(&[7; BYTES]).await?;
        stream.read_exact(&mut answer).await?;
    }
    Ok(())
}

fn echo(seed: u64) {
    let result = Sim::new(seed).run(async {
        let sim = current();
        sim.loss(0.01);
        sim.host("echo", serve);
        let clients: Vec<_> = (0..CLIENTS).map(|number| sim.client(&format!("client{number}"), ask())).collect();
        for client in clients {
            client.await.expect("no client panics").expect("all is repeated until it comes");
        }
    });
    result.expect("a simulation that ends");
}

fn idle_hour(seed: u64) {
    let hour = async { mini::time::sleep(Duration::from_secs(3600)).await };
    Sim::new(seed).run(hour).expect("a simulation that ends");
}

/// Seconds for one of `count` calls.
fn seconds(count: u64, mut f: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..count).for_each(&mut f);
    begin.elapsed().as_secs_f64() / count as f64
}

fn median(mut all: Vec<f64>) -> (f64, f64, f64) {
    all.sort_by(f64::total_cmp);
    (all[0], all[all.len() / 2], all[all.len() - 1])
}

fn main() {
    let seeds = match std::env::args().nth(1).map(|seeds| seeds.parse()) {
        None => 1000,
        Some(Ok(seeds)) if seeds > 0 => seeds,
        Some(_) => {
            eprintln!("usage: mini-bench-simulation [SEEDS]");
            std::process::exit(2);
        }
    };
    seconds(seeds.min(50), echo);
    let (mut echoes, mut ratios, mut hours, mut polls) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let simulated = seconds(seeds, echo);
        let bare = seconds(seeds, |_| polls += bare::echo());
        echoes.push(1.0 / simulated);
        ratios.push(simulated / bare);
        hours.push(seconds(seeds, idle_hour) * 1e6);
    }
    let polls = polls / seeds / ROUNDS as u64;
    let rows = [("seeds a second", echoes), ("times the bare loop", ratios), ("an idle hour, µs", hours)];
    println!("{:24} {:>10} {:>10} {:>10}", "", "median", "least", "most");
    for (name, all) in rows {
        let (least, median, most) = median(all);
        println!("{name:24} {median:10.1} {least:10.1} {most:10.1}");
    }
    println!("The bare loop polls {polls} times.");
}
