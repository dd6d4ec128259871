//! Jobs that compute, beside an event loop that stays responsive.
//!
//! The jobs run on the blocking pool, whose threads lower their own priority when they start: whenever the loop has
//! something to do, the system gives it a processor at once. The program keeps all processors busy, and measures how
//! late the loop is for a timer each millisecond: with nothing else to do, with jobs on such threads, with jobs on
//! ordinary threads, and with jobs in the loop itself.
//!
//! There are two ways. A nice value is a share: a thread at 19 gets about a seventieth of what an ordinary one gets,
//! and as much as any other at 19. The scheduling class `SCHED_IDLE` (sched(7)) is for threads that run when no other
//! wants to: they give way even to what is at 19, so also to other programs of low priority, and may get nearly
//! nothing.
//!
//! ```text
//! workers [--seconds N] [--jobs N]          N jobs at a time; two per processor if not given
//! ```

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use mini::runtime::Builder;
use mini::task::yield_now;
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: workers [--seconds N] [--jobs N]";

/// The nice value of a thread that computes: 0 is usual, 19 the lowest priority.
const NICE: i32 = 19;

/// How often the loop has something to do.
const PERIOD: Duration = Duration::from_millis(1);

/// A job looks for the primes below this number.
const PRIMES: u32 = 60_000;

fn main() -> ExitCode {
    run_with_args("workers", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let time = Duration::from_secs(number_option(&mut args, "--seconds", 2).map_err(bad)?);
    let jobs = number_option(&mut args, "--jobs", 2 * processors).map_err(bad)?;
    refuse_more(&args, USAGE)?;

    println!("{jobs} jobs at a time on {processors} processors; how late the loop is for its timers:");
    for place in [Place::Nowhere, Place::IdleThreads, Place::LowThreads, Place::Threads, Place::Loop] {
        let (lateness, done) = measure(place, jobs, time)?;
        let ms = |share| lateness.quantile(share).as_secs_f64() * 1000.0;
        let (p50, p99, max) = (ms(0.5), ms(0.99), ms(1.0));
        println!("{:<29} p50 {p50:>7.3} ms   p99 {p99:>7.3} ms   max {max:>7.3} ms   {done} jobs", place.name());
    }
    Ok(())
}

/// Where the jobs run.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    IdleThreads,
    LowThreads,
    Threads,
    Loop,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Nowhere => "no jobs",
            Place::IdleThreads => "on threads of the idle class",
            Place::LowThreads => "on threads of low priority",
            Place::Threads => "on ordinary threads",
            Place::Loop => "in the loop",
        }
    }
}

/// How late the loop was, and how many jobs were done meanwhile.
fn measure(place: Place, jobs: u64, time: Duration) -> io::Result<(Latencies, u64)> {
    let mut builder = Builder::new_current_thread();
    builder.max_blocking_threads(jobs as usize);
    // The loop runs on this thread. The hook is not called for it, only for the threads that the runtime starts.
    match place {
        Place::IdleThreads => drop(builder.on_thread_start(run_only_when_idle)),
        Place::LowThreads => drop(builder.on_thread_start(lower_own_priority)),
        Place::Nowhere | Place::Threads | Place::Loop => {}
    }
    builder.build()?.block_on(async {
        let end = Instant::now() + time;
        let clients = match place {
            Place::Nowhere => 0,
            _ => jobs,
        };
        let clients: Vec<_> = (0..clients).map(|_| mini::spawn_local(ask_for_jobs(place, end))).collect();
        let lateness = look_at_the_clock(end).await;
        let mut done = 0;
        for client in clients {
            done += client.await??;
        }
        Ok((lateness, done))
    })
}

/// Linux has a priority per thread, and this sets that of the calling thread; elsewhere it is the priority of the
/// process.
fn lower_own_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        eprintln!("workers: setpriority: {error}");
    }
}

/// Puts the calling thread into the class of those that run when no other wants to. Linux has it; elsewhere the
/// priority is lowered.
fn run_only_when_idle() {
    #[cfg(not(target_os = "linux"))]
    lower_own_priority();
    #[cfg(target_os = "linux")]
    {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread, and `priority` lives for the call; examples/tests/loops.rs runs it.
        #[allow(unsafe_code)]
        let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &priority) };
        if result != 0 {
            eprintln!("workers: sched_setscheduler: {}", io::Error::last_os_error());
        }
    }
}

/// One job after the other, until the time is over.
async fn ask_for_jobs(place: Place, end: Instant) -> io::Result<u64> {
    let mut done = 0;
    while Instant::now() < end {
        let found = match place {
            Place::Loop => {
                yield_now().await;
                count_primes(PRIMES)
            }
            _ => mini::spawn_blocking(|| count_primes(PRIMES)).await?,
        };
        assert_eq!(found, 6057);
        done += 1;
    }
    Ok(done)
}

/// What the loop does: little, often, and on time.
async fn look_at_the_clock(end: Instant) -> Latencies {
    let mut lateness = Latencies::default();
    while Instant::now() < end {
        let due = Instant::now() + PERIOD;
        mini::time::sleep_until(due.into()).await;
        lateness.record(due.elapsed());
    }
    lateness
}

/// By division: something that takes a few milliseconds.
fn count_primes(below: u32) -> usize {
    let is_prime = |n: &u32| (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    (2..below).filter(is_prime).count()
}
