//! Mixed work on both flavours at once, in generations: each has a runtime of its own, which ends gently or in the
//! middle.
//!
//! Between two generations nothing runs, and the process must hold no more than it did after the first ones: as many
//! descriptors and threads, and memory within [`SLACK`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, UdpSocket};
use mini::runtime::{Builder, Runtime};
use mini::task::JoinHandle;
use mini::time::sleep;
use mini_tests::child_support::children;

use crate::actors::work::ON_PURPOSE;
use crate::actors::{self, sockets};
use crate::gauge::{Gauge, threads};
use crate::ledger::Ledger;
use crate::world::World;

/// How much memory may grow after the warm-up: a tenth, and this many kB, for what the allocator keeps.
const SLACK: u64 = 16 << 10;

/// How often the watch looks at the process.
const LOOK: Duration = Duration::from_millis(50);

/// How long a generation may take beyond its time, counted in looks: a process that is stopped for a while does not
/// hang.
const HANG: Duration = Duration::from_secs(120);

const FLAVOURS: [&str; 2] = ["multi_thread", "current_thread"];

/// Runs for about `time`; says whether all promises were kept.
pub(crate) fn run(time: Duration) -> bool {
    hush();
    let each = (time / 20).clamp(Duration::from_secs(1), Duration::from_secs(15));
    let dir = std::env::temp_dir().join(format!("mini-soak-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for files");
    let ledgers = FLAVOURS.map(|_| Arc::new(Ledger::default()));
    let (begin, start) = (Instant::now(), Gauge::read());
    let (mut peak, mut samples) = (start, Vec::new());
    println!("mix: {time:?}, generations of {each:?}; at the start {start}");
    while begin.elapsed() < time {
        let number = samples.len() as u64;
        peak = peak.max(generation(number, each, &ledgers, &dir));
        samples.push(Gauge::settled(&start));
    }
    await_children();
    let _ = std::fs::remove_dir_all(&dir);
    let is_flat = report(&start, &peak, &samples);
    for (flavour, ledger) in FLAVOURS.iter().zip(&ledgers) {
        println!("{flavour}: {} received\n{ledger}", ledger.received());
    }
    let zombies = children();
    if !zombies.is_empty() {
        println!("  children left: {zombies:?}");
    }
    is_flat && zombies.is_empty() && ledgers.iter().all(|ledger| ledger.is_balanced())
}

/// One runtime of each flavour, at the same time; returns the peak of what the process held.
fn generation(number: u64, time: Duration, ledgers: &[Arc<Ledger>; 2], dir: &Path) -> Gauge {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads = [0, 1].map(|at| {
            let (ledger, is_multi) = (ledgers[at].clone(), at == 0);
            let dir = dir.join(FLAVOURS[at]);
            scope.spawn(move || live(number, time, is_multi, ledger, dir))
        });
        let watch = scope.spawn(|| watch(time + HANG, &done, ledgers));
        for thread in threads {
            thread.join().expect("a generation that does not panic");
        }
        done.store(true, Relaxed);
        watch.join().expect("a watch that does not panic")
    })
}

/// Looks at the process until it is done; ends it if that takes too long.
fn watch(limit: Duration, done: &AtomicBool, ledgers: &[Arc<Ledger>; 2]) -> Gauge {
    let (mut looks, mut peak) = (0, Gauge::default());
    while !done.load(Relaxed) {
        peak = peak.max(Gauge::read());
        looks += 1;
        if LOOK * looks > limit {
            eprintln!("soak: a generation hangs\n{}\n{}\n{}", ledgers[0], ledgers[1], threads());
            std::process::abort();
        }
        thread::sleep(LOOK); // real time is what it watches
    }
    peak
}

/// The life of one runtime.
fn live(number: u64, time: Duration, is_multi: bool, ledger: Arc<Ledger>, dir: PathBuf) {
    std::fs::create_dir_all(&dir).expect("a directory");
    let mut builder = match is_multi {
        true => Builder::new_multi_thread().worker_threads(1 + (number % 4) as usize).clone(),
        false => Builder::new_current_thread(),
    };
    // Panics on purpose, whose handle was dropped, need no line on stderr.
    let runtime = builder.shutdown_grace(HANG * 10).on_task_panic(|_| ()).build().expect("a runtime");
    let is_gentle = number.is_multiple_of(2);
    runtime.block_on(async {
        let Some((world, actors)) = open(&ledger, dir, number * 1000).await else { return };
        sleep(time).await;
        if is_gentle {
            world.over.store(true, Relaxed);
            for actor in actors {
                world.check("an actor", actor.await.map_err(std::io::Error::other));
            }
        }
    });
    ledger.set_ending(true);
    end(runtime, &ledger);
    ledger.set_ending(false);
}

/// Starts servers and actors.
async fn open(ledger: &Arc<Ledger>, dir: PathBuf, seed: u64) -> Option<(Arc<World>, Vec<JoinHandle<()>>)> {
    let sockets = async {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
        std::io::Result::Ok((tcp.local_addr()?, udp.local_addr()?, tcp, udp))
    };
    let (tcp_at, udp_at, tcp, udp) = match sockets.await {
        Ok(bound) => bound,
        Err(error) => {
            ledger.fail(error);
            return None;
        }
    };
    let world = World {
        ledger: ledger.clone(),
        tcp: tcp_at,
        udp: udp_at,
        dir,
        over: AtomicBool::new(false),
        names: AtomicU64::new(seed << 20),
    };
    let world = Arc::new(world);
    drop(mini::spawn(sockets::tcp_server(world.clone(), tcp)));
    drop(mini::spawn(sockets::udp_server(world.clone(), udp)));
    let actors = actors::all(&world, seed).into_iter().map(mini::spawn).collect();
    Some((world, actors))
}

/// A shutdown leaves nothing behind.
fn end(runtime: Runtime, ledger: &Ledger) {
    let metrics = runtime.metrics();
    let left = runtime.shutdown_timeout(HANG * 10);
    if !left.is_empty() {
        ledger.fail(format_args!("left behind: {left}"));
    }
    if metrics.num_alive_tasks() > 0 {
        ledger.fail(format_args!("{} tasks outlive their runtime", metrics.num_alive_tasks()));
    }
}

/// Children that were dropped are reaped by threads of their own.
fn await_children() {
    let begin = Instant::now();
    while !children().is_empty() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1)); // waits for the system's clock and threads
    }
}

/// Whether there is no more of anything at the end than after the warm-up, which is a fifth of the time.
fn report(start: &Gauge, peak: &Gauge, samples: &[Gauge]) -> bool {
    let warm_up = samples.len().div_ceil(5);
    let (warm, rest) = samples.split_at(warm_up.min(samples.len() - 1));
    let before = warm.iter().fold(*start, |most, sample| Gauge::max(most, *sample));
    let last = rest.last().expect("a generation after the warm-up");
    let most = rest.iter().map(|sample| sample.memory).max().unwrap_or(0);
    let bound = before.memory + before.memory / 10 + SLACK;
    println!("  {} generations of both flavours, a fifth of them as a warm-up", samples.len());
    println!("  under load       {peak} at most");
    println!("  after warm-up    {before} at most");
    println!("  at the end       {last} (memory {most} kB at most, {bound} kB allowed)");
    let are_fds_flat = rest.iter().all(|sample| sample.holds_no_more_than(start));
    if !are_fds_flat {
        println!("  MORE DESCRIPTORS OR THREADS than at the start");
    }
    if last.memory > bound {
        println!("  MORE MEMORY than allowed");
    }
    are_fds_flat && last.memory <= bound
}

/// Panics on purpose are not printed.
pub(crate) fn hush() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let is_on_purpose = payload.downcast_ref::<String>().is_some_and(|text| text == ON_PURPOSE)
            || payload.downcast_ref::<&str>() == Some(&ON_PURPOSE);
        if !is_on_purpose {
            usual(info);
        }
    }));
}
