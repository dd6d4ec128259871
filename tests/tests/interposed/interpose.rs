//! `mini::sim::interpose!`: what follows the seed in a binary that has it, and what does not.

#![allow(unsafe_code)] // the functions of the C library

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use mini::sim::{Sim, current};
use mini::task::{spawn_local, yield_now};
use mini::time::sleep;
use mini_tests::child_support::full_name;

/// What a program draws and reads on a thread of its own.
fn run<T: Send>(seed: u64, program: impl AsyncFnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(|| Sim::new(seed).run(program()).unwrap()).join().unwrap())
}

async fn order() -> Vec<u32> {
    let map: HashMap<u32, ()> = (0..50).map(|key| (key, ())).collect();
    map.into_keys().collect()
}

#[test]
fn a_seed_determines_the_order_of_a_hash_map() {
    let orders: Vec<_> = (0..20).map(|seed| run(seed, order)).collect();
    for (seed, before) in orders.iter().enumerate() {
        assert_eq!(run(seed as u64, order), *before, "seed {seed}");
    }
    assert_eq!(orders.iter().collect::<HashSet<_>>().len(), orders.len());
}

/// Tasks take as many steps as the order of a hash map says.
#[mini::test(sim, seeds = 30)]
async fn hash_maps_decide() {
    let tasks: Vec<_> = order().await.into_iter().take(5).map(|steps| spawn_local(walk(steps))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_ne!(RandomState::new().hash_one(1), 0); // one more, in each run
}

async fn walk(steps: u32) {
    for _ in 0..steps {
        yield_now().await;
    }
    sleep(Duration::from_nanos(RandomState::new().hash_one(steps) % 1000)).await;
}

/// Runs the test of that name in a process of its own, which checks each seed twice.
fn checked(name: &str) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output =
        command.args([full_name(name), "--exact", "--include-ignored"]).env("MINI_SIM_CHECK", "1").output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn two_runs_are_the_same_where_hash_maps_decide() {
    let (is_good, text) = checked("hash_maps_decide");
    assert!(is_good && text.contains("1 passed"), "{text}");
}

/// A task takes as many steps as a hash map by the ids of tasks says.
#[mini::test(sim, seeds = 30)]
async fn ids_of_tasks_decide() {
    let tasks = [1, 2, 3, 4, 5].map(|steps| (spawn_local(walk(1)), steps));
    let steps_of: HashMap<_, u32> = tasks.iter().map(|(task, steps)| (task.id(), *steps)).collect();
    walk(*steps_of.values().next().unwrap()).await;
    for (task, _) in tasks {
        task.await.unwrap();
    }
}

#[test]
fn two_runs_are_the_same_where_the_ids_of_tasks_decide() {
    let (is_good, text) = checked("ids_of_tasks_decide");
    assert!(is_good && text.contains("1 passed"), "{text}");
}

/// How many hash maps there were before, in all seeds.
static DRAWN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

#[mini::test(sim, seeds = 3)]
#[ignore = "the next one runs it"]
async fn the_process_decides() {
    walk(DRAWN.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).await;
}

#[test]
fn what_follows_no_seed_is_found() {
    let (is_good, text) = checked("the_process_decides");
    assert!(!is_good && text.contains("two runs differ, first in step"), "{text}");
}

#[test]
fn clocks_follow_virtual_time() {
    let before = SystemTime::now();
    run(3, async || {
        let (start, date, of_mini) = (Instant::now(), SystemTime::now(), mini::time::Instant::now());
        assert_eq!(of_mini.into_std(), start, "one clock");
        let epoch = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(epoch, Duration::from_secs(946_684_800));
        for minutes in 1..=30 {
            sleep(Duration::from_secs(60)).await;
            assert_eq!((Instant::now(), start.elapsed().as_secs()), (start + of_mini.elapsed(), minutes * 60));
        }
        mini::time::sleep_until((start + Duration::from_secs(3600)).into()).await;
        assert_eq!((start.elapsed().as_secs(), date.elapsed().unwrap().as_secs()), (3600, 3600));
    });
    assert!(before.elapsed().unwrap() < Duration::from_secs(60));
}

#[test]
fn a_wait_by_reading_the_clock_ends() {
    let spun = run(3, async || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {}
        let spun = start.elapsed();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(start.elapsed(), spun, "it waits for virtual time");
        sleep(Duration::from_millis(99)).await;
        start.elapsed()
    });
    assert_eq!(spun, Duration::from_millis(100));
}

/// Reads the clock when it is dropped.
struct Late(Instant);

impl Drop for Late {
    fn drop(&mut self) {
        ELAPSED.set(self.0.elapsed());
    }
}

thread_local! {
    static ELAPSED: Cell<Duration> = const { Cell::new(Duration::MAX) };
}

#[test]
fn destructors_have_virtual_time_too() {
    for is_deadlock in [false, true] {
        let result = Sim::new(5).run(async {
            drop(mini::spawn(async {
                let _late = Late(Instant::now());
                std::future::pending::<()>().await;
            }));
            sleep(Duration::from_secs(9)).await;
            if is_deadlock {
                std::future::pending::<()>().await;
            }
        });
        assert_eq!(result.is_err(), is_deadlock);
        assert_eq!(ELAPSED.replace(Duration::MAX).as_secs(), 9);
    }
}

#[test]
fn random_numbers_follow_the_seed_by_the_crate_too() {
    let draw = async || {
        let mut buf = [0; 20];
        getrandom::fill(&mut buf).unwrap();
        (buf, getrandom::u64().unwrap())
    };
    assert_eq!(run(1, draw), run(1, draw));
    assert_ne!(run(1, draw), run(2, draw));
}

#[test]
fn outside_of_a_simulation_all_is_the_systems() {
    let keys = || thread::spawn(|| RandomState::new().hash_one(0)).join().unwrap();
    assert_ne!(keys(), keys());
    assert!(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() > 1_700_000_000);
    let start = Instant::now();
    thread::sleep(Duration::from_millis(5));
    assert!(start.elapsed() >= Duration::from_millis(5));
    // On other threads while a simulation runs, and on its own once it is over.
    let (year, others) = run(1, async || {
        let other = thread::spawn(|| (SystemTime::now(), RandomState::new().hash_one(0)));
        (SystemTime::now(), other.join().unwrap())
    });
    assert!(others.0.duration_since(year).unwrap().as_secs() > 20 * 365 * 24 * 3600);
    assert_ne!(others.1, run(1, async || thread::spawn(|| RandomState::new().hash_one(0)).join().unwrap()));
    assert!(SystemTime::now() >= others.0);
    let after = || {
        Sim::new(1).run(async {}).unwrap();
        (SystemTime::now(), getrandom::u64().unwrap())
    };
    let [_has_drawn_keys, first, second] = [(); 3].map(|()| after());
    assert!(first.0 >= others.0 && first.1 != second.1);
}

#[test]
fn threads_of_the_runtime_are_not_disturbed() {
    // A runtime with threads and timers of its own beside simulations that run meanwhile.
    let runtime = mini::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let start = Instant::now();
    let naps = runtime.handle().spawn(async {
        for _ in 0..20 {
            mini::time::sleep(Duration::from_millis(5)).await;
        }
        mini::spawn_blocking(|| thread::sleep(Duration::from_millis(5))).await.unwrap();
    });
    for seed in 0..20 {
        run(seed, async || sleep(Duration::from_secs(3600)).await);
    }
    runtime.block_on(naps).unwrap();
    assert!((105..10_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

/// The C library's functions, called as C does; an error is the system's number.
mod c {
    pub(crate) fn getrandom<const N: usize>() -> [u8; N] {
        let mut buf = [0; N];
        // SAFETY: the buffer lives for the call, and is as long as this says.
        let drawn = unsafe { libc::getrandom(buf.as_mut_ptr().cast(), N, libc::GRND_NONBLOCK) };
        assert_eq!(drawn, N as isize);
        buf
    }

    pub(crate) fn getentropy<const N: usize>() -> Result<[u8; N], i32> {
        let mut buf = [0; N];
        // SAFETY: as above.
        checked(unsafe { libc::getentropy(buf.as_mut_ptr().cast(), N) }).map(|()| buf)
    }

    /// Whole seconds.
    pub(crate) fn clock_gettime(clock: libc::clockid_t) -> Result<i64, i32> {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` lives for the call.
        checked(unsafe { libc::clock_gettime(clock, &mut now) }).map(|()| now.tv_sec)
    }

    fn checked(result: i32) -> Result<(), i32> {
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) }
    }
}

async fn by_hand() -> ([u8; 13], [u8; 256], i64) {
    assert_eq!(c::getentropy::<257>(), Err(libc::EIO), "what is wrong stays wrong");
    assert_eq!(c::clock_gettime(12345), Err(libc::EINVAL));
    assert!(c::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID).unwrap() < 60);
    (c::getrandom(), c::getentropy().unwrap(), c::clock_gettime(libc::CLOCK_BOOTTIME).unwrap())
}

#[test]
fn the_c_librarys_functions_say_what_the_seed_says() {
    let first = run(1, by_hand);
    assert_eq!(first, run(1, by_hand));
    assert_eq!(first.2, 1);
    assert!(first.0 != run(2, by_hand).0 && first.1.iter().collect::<HashSet<_>>().len() > 100);
    let (some, most, _) = mini::block_on(by_hand());
    let (others, mosts, _) = mini::block_on(by_hand());
    assert!(some != others && most != mosts && some != first.0);
}

/// As the clocks of mini do: the standard library's are the same.
#[test]
fn each_host_has_the_clocks_of_its_own_time() {
    run(1, async || {
        let sim = current();
        for (host, skew) in [("fast", 100_000), ("slow", -100_000)] {
            drop(sim.client(host, async {
                let (start, own) = (Instant::now(), mini::time::Instant::now());
                for _ in 0..20 {
                    sleep(Duration::from_secs(7)).await;
                    assert_eq!(start.elapsed(), own.elapsed());
                }
            }));
            sim.skew(host, skew);
        }
        let (start, date) = (Instant::now(), SystemTime::now());
        for seconds in 1..=200 {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(start.elapsed(), Duration::from_secs(seconds));
        }
        assert_eq!(date.elapsed().unwrap(), Duration::from_secs(200));
    });
}
