//! Four levels of priority in one task, under more load than it can serve: control before data before new clients
//! before what may wait.
//!
//! A runtime has no priorities for tasks, and needs none: a task that takes its work from several queues looks into the
//! most important one first. Here that is `or`, which polls its first future first. Whoever waits in a lower queue
//! waits for all of the higher ones, so each level needs a bound of its own: queues of a length that somebody chose,
//! and clients that give up. What nobody waits for any more is thrown away unserved.
//!
//! ```text
//! levels [--milliseconds N]
//! ```

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::future::or;
use mini::task::JoinSet;
use mini::time::{interval, timeout};
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, run_async};

const USAGE: &str = "usage: levels [--milliseconds N]";

/// How long a request holds the server up. It sleeps, so that a busy machine measures the same.
const WORK: Duration = Duration::from_micros(400);

/// How many requests a level may have waiting.
const QUEUE: usize = 100;

struct Level {
    name: &'static str,
    /// Its share of what the server can do, in percent; together they are more than it can.
    load: u32,
    /// How long its clients wait.
    patience: Duration,
}

const LEVELS: [Level; 4] = [
    Level { name: "control", load: 5, patience: Duration::from_secs(1) },
    Level { name: "data", load: 60, patience: Duration::from_secs(1) },
    Level { name: "new clients", load: 50, patience: Duration::from_millis(50) },
    Level { name: "idle", load: 35, patience: Duration::from_millis(50) },
];

/// The client that sent it hears here that it is done.
type Request = Sender<()>;

#[mini::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run_async("levels", run).await
}

async fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let span = Duration::from_millis(number_option(&mut args, "--milliseconds", 2000).map_err(bad)?);
    refuse_more(&args, USAGE)?;

    let (senders, receivers): (Vec<_>, Vec<_>) = LEVELS.iter().map(|_| bounded(QUEUE)).unzip();
    let server = thread::spawn(move || mini::block_on(serve(&receivers)));
    let begin = |(level, queue): (&'static Level, &Sender<Request>)| mini::spawn(ask(level, queue.clone(), span));
    let all: Vec<_> = LEVELS.iter().zip(&senders).map(begin).collect();
    let mut outcomes = Vec::new();
    for level in all {
        outcomes.push(level.await?);
    }
    drop(senders); // nobody asks any more
    server.join().expect("the server does not panic");

    let load: u32 = LEVELS.iter().map(|level| level.load).sum();
    println!("{load} % of what the server can do are asked of it; a request takes {WORK:?}");
    for (level, outcome) in LEVELS.iter().zip(outcomes) {
        let ms = |share| outcome.latencies.quantile(share).as_secs_f64() * 1000.0;
        let Outcome { served, given_up, .. } = outcome;
        let (p50, p99) = (ms(0.5), ms(0.99));
        println!("{:<12} {served:>6} served, {given_up:>6} gave up, p50 {p50:>8.3} ms, p99 {p99:>8.3} ms", level.name);
    }
    Ok(())
}

/// The server: whatever is most important, one after the other, until all clients have gone.
async fn serve(queues: &[Receiver<Request>]) {
    let [control, data, accept, idle] = queues else { unreachable!("there are four levels") };
    while let Ok(request) = or(control.recv(), or(data.recv(), or(accept.recv(), idle.recv()))).await {
        if request.is_closed() {
            continue; // the client has given up
        }
        thread::sleep(WORK);
        let _ = request.try_send(()); // an error if it gives up just now
    }
}

#[derive(Default)]
struct Outcome {
    served: u64,
    given_up: u64,
    latencies: Latencies,
}

/// The clients of a level: one after the other at a steady rate, however long the answers take.
async fn ask(level: &'static Level, queue: Sender<Request>, span: Duration) -> Outcome {
    let mut beat = interval(WORK * 100 / level.load);
    let mut clients = JoinSet::new();
    let end = Instant::now() + span;
    while Instant::now() < end {
        beat.tick().await;
        let queue = queue.clone();
        clients.spawn(async move {
            let (request, done) = bounded(1);
            let begin = Instant::now();
            // The queue may be full: to wait for a place is a part of it.
            let answer = timeout(level.patience, async {
                let _ = queue.send(request).await;
                done.recv().await
            });
            matches!(answer.await, Ok(Ok(()))).then(|| begin.elapsed())
        });
    }
    let mut outcome = Outcome::default();
    while let Some(client) = clients.join_next().await {
        match client.expect("no client panics") {
            None => outcome.given_up += 1,
            Some(latency) => {
                outcome.served += 1;
                outcome.latencies.record(latency);
            }
        }
    }
    outcome
}
