//! The phases of mini's loop, made visible: what each turn of a worker has done, and where the time of a program goes.
//!
//! ```text
//!  wait ──▶ events ──▶ timers ──▶ woken tasks ──▶ tasks that ask for more ──▶ an idle one ──┐
//!   ▲                              (64 polls and half a millisecond at most)                │
//!   └── only if nothing is left to do; otherwise the next turn begins with a look ◀─────────┘
//! ```
//!
//! Four scenes on one thread, each for a fifth of a second: clients that ask now and then; beside them a task that
//! computes; a crowd that is woken at once; work for idle moments. `Builder::on_turn` tells of each turn, and the
//! program prints the first ones of each scene and the sums of all. It ends with an error if a phase is not where it
//! should be.
//!
//! ```text
//! phases [--turns N]            prints the first N turns of each scene
//! ```

use std::future::Future;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mini::net::UnixStream;
use mini::runtime::{Builder, Phases};
use mini::task::JoinSet;
use mini_examples::{bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: phases [--turns N]";

const SCENE: Duration = Duration::from_millis(200);

/// What the task that computes does between two yields.
const STEP: Duration = Duration::from_micros(200);

fn main() -> ExitCode {
    run_with_args("phases", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let turns = number_option(&mut args, "--turns", 5).map_err(|text| bad_usage(text, USAGE))? as usize;
    refuse_more(&args, USAGE)?;

    let sums = show("clients that ask now and then", turns, clients())?;
    sums.check("it waits most of the time", sums.waited > sums.whole() / 2)?;
    sums.check("there are events and timers", sums.events > 10 && sums.timers > 10)?;
    sums.check("tasks rarely ask for more", sums.again_time < sums.whole() / 10)?;

    let beside = async {
        drop(mini::spawn(compute()));
        clients().await
    };
    let sums = show("beside a task that computes", turns, beside)?;
    sums.check("that task has most of the time", sums.again_time > sums.whole() / 2)?;
    sums.check("no turn waits", sums.waited < sums.whole() / 10)?;
    sums.check("the clients are served all the same", sums.events > 10 && sums.timers > 10)?;

    let sums = show("a crowd of 2,000 that is woken at once", turns, crowd())?;
    sums.check("no turn polls more than 64", sums.most <= 64)?;
    sums.check("timers fire together", sums.timers >= 2_000)?;

    let sums = show("work for idle moments", turns, when_idle())?;
    sums.check("it continues when nothing else is left", sums.idle > 10 && sums.idle <= sums.turns)
}

/// Twenty clients of an echo server, each of which asks every few milliseconds.
async fn clients() {
    let mut clients = JoinSet::new();
    for number in 0..20 {
        clients.spawn(async move {
            let (client, server) = UnixStream::pair()?;
            drop(mini::spawn(echo(server)));
            let mut answer = [0; 8];
            for _ in 0..SCENE.as_millis() / 10 {
                mini::time::sleep(Duration::from_millis(5 + number % 10)).await;
                client.write_all(b"message!").await?;
                client.read_exact(&mut answer).await?;
            }
            io::Result::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("no client panics").expect("the server answers");
    }
}

async fn echo(stream: UnixStream) -> io::Result<()> {
    let mut buf = [0; 64];
    while let n @ 1.. = stream.read(&mut buf).await? {
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}

/// Computes as long as the runtime lives, and lets others have their turn now and then.
async fn compute() {
    loop {
        spend(STEP);
        mini::task::yield_now().await;
    }
}

/// Tasks that all wait for the same moment, a few times.
async fn crowd() {
    let mut tasks = JoinSet::new();
    let begin = mini::time::Instant::now();
    for _ in 0..2_000 {
        tasks.spawn(async move {
            for round in 1..=4 {
                mini::time::sleep_until(begin + round * SCENE / 4).await;
                spend(Duration::from_micros(2));
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Something that may wait, a piece in each idle moment, beside clients.
async fn when_idle() {
    let pieces = mini::spawn(async {
        loop {
            mini::task::idle().await;
            spend(STEP);
        }
    });
    clients().await;
    pieces.abort();
}

/// Computes for a time.
fn spend(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Runs a scene, prints its first turns and its sums, and returns these.
fn show(title: &str, print: usize, scene: impl Future<Output = ()>) -> io::Result<Sums> {
    println!("\n{title}");
    let sums = Arc::new(Mutex::new(Sums::default()));
    let adds = sums.clone();
    let runtime = Builder::new_current_thread()
        .on_turn(move |phases| {
            let mut sums = adds.lock().unwrap();
            sums.add(phases);
            if sums.turns <= print {
                println!("  {phases}");
            }
        })
        .build()?;
    runtime.block_on(scene);
    drop(runtime);
    let sums = sums.lock().unwrap().clone();
    sums.print();
    Ok(sums)
}

/// What all turns of a scene have done together.
#[derive(Clone, Default)]
struct Sums {
    turns: usize,
    events: usize,
    timers: usize,
    woken: usize,
    again: usize,
    idle: usize,
    /// Polls of the turn that had the most.
    most: usize,
    waited: Duration,
    woken_time: Duration,
    again_time: Duration,
    rest: Duration,
}

impl Sums {
    fn add(&mut self, turn: &Phases) {
        self.turns += 1;
        self.events += turn.events();
        self.timers += turn.timers();
        self.woken += turn.woken();
        self.again += turn.again();
        self.idle += turn.idle();
        self.most = self.most.max(turn.woken() + turn.again());
        self.waited += turn.waited();
        self.woken_time += turn.woken_time();
        self.again_time += turn.again_time();
        self.rest += turn.rest();
    }

    fn whole(&self) -> Duration {
        self.waited + self.woken_time + self.again_time + self.rest
    }

    fn print(&self) {
        let share = |time: Duration| 100.0 * time.as_secs_f64() / self.whole().as_secs_f64();
        println!(
            "  = {} turns: waited {:.1} %, {} events, {} timers, woken {} in {:.1} %, again {} in {:.1} %, \
             idle {}, rest {:.1} %",
            self.turns,
            share(self.waited),
            self.events,
            self.timers,
            self.woken,
            share(self.woken_time),
            self.again,
            share(self.again_time),
            self.idle,
            share(self.rest)
        );
    }

    fn check(&self, claim: &str, holds: bool) -> io::Result<()> {
        if holds {
            println!("  {claim}");
            return Ok(());
        }
        Err(io::Error::other(format!("this does not hold: {claim}")))
    }
}
