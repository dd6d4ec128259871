//! Whole runtimes under shuttle: real pools, workers, queues, notifiers and tasks, in thousands of random orders.
//!
//! The differences from a real runtime: a wait with a limit is over once other threads have run
//! (`primitives/untimed.rs`), the poller asks the kernel again and again instead of sleeping there (`driver.rs`), and
//! the monitor has no thread. A schedule in which no thread can continue fails, and so does one that never ends. Each
//! model runs under a random scheduler and under one that preempts at few, well-chosen points (Burckhardt and others,
//! "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).
//!
//! shuttle takes all orderings for SeqCst: what a weaker one permits is the business of the loom models beside each
//! part.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use mini_kernel::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use mini_kernel::primitives::{Mutex, lock, thread};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::net::UnixStream;
use crate::runtime::{Builder, Runtime};
use crate::task::{JoinSet, yield_now};

/// Schedules per model and scheduler.
const SCHEDULES: usize = 5000;

/// Preemptions of the second scheduler.
const DEPTH: usize = 4;

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let again = model.clone();
    let seed = 0x6d69_6e69;
    Runner::new(RandomScheduler::new_from_seed(seed, SCHEDULES), config()).run(move || model());
    Runner::new(PctScheduler::new_from_seed(seed, DEPTH, SCHEDULES), config()).run(move || again());
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    config.silence_warnings = true;
    config
}

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).timer_slack(None).build().unwrap()
}

/// Waits for all threads and tasks.
fn end_beside_handles(runtime: Runtime) {
    assert!(runtime.shutdown_timeout(Duration::MAX).is_empty());
}

/// The same where no handle is left. Then nobody keeps the runtime, and its descriptors, any more.
///
/// Planted: a worker thread that says that it has ended before it gives up the runtime (`worker/thread.rs`).
fn end(runtime: Runtime) {
    let shared = Arc::downgrade(&runtime.handle.shared);
    end_beside_handles(runtime);
    assert_eq!(shared.strong_count(), 0);
}

/// Counts the futures that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A flag to wait for.
#[derive(Default)]
struct Flag {
    is_up: AtomicBool,
    waiter: Mutex<Option<Waker>>,
}

impl Flag {
    fn raise(&self) {
        self.is_up.store(true, SeqCst);
        let waiter = lock(&self.waiter).take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            *lock(&self.waiter) = Some(cx.waker().clone());
            if self.is_up.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }
}

/// Tasks from outside that spawn, yield and join, on workers that take them from one another.
///
/// Planted: a thief that stores the head of the ring instead of exchanging it (`LocalQueue::steal_into`).
#[test]
fn what_is_spawned_is_run_and_joined() {
    explore(|| {
        let runtime = runtime(2);
        let alive = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..6).map(|number| runtime.spawn(parent(number, Alive::new(&alive)))).collect();
        let sum = runtime.block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 2 * 15);
        assert_eq!(alive.load(SeqCst), 0);
        end(runtime);
    });
}

/// Two threads and the thread of the runtime wait for one task.
///
/// Planted: a `SharedJoinHandle` that leaves its waker after it has asked the task.
#[test]
fn all_that_wait_for_one_task_are_woken() {
    explore(|| {
        let runtime = runtime(1);
        let task = runtime.spawn(async {
            yield_now().await;
            7
        });
        let task = task.shared();
        let joiners: Vec<_> = (0..2)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || shuttle::future::block_on(task).unwrap())
            })
            .collect();
        assert_eq!(runtime.block_on(task).unwrap(), 7);
        for joiner in joiners {
            assert_eq!(joiner.join().unwrap(), 7);
        }
        end(runtime);
    });
}

/// A thread waits until nothing is left to do, while tasks spawn tasks on two workers, and one waits for a job.
///
/// Planted: a worker that does not tell before it waits (`Worker::tell_idle`).
#[test]
fn the_end_of_all_tasks_is_seen() {
    explore(|| {
        let runtime = runtime(2);
        let ended = Arc::new(AtomicUsize::new(0));
        for number in 0..2 {
            let ended = ended.clone();
            runtime.spawn(async move {
                yield_now().await;
                let (child, count) = (ended.clone(), ended.clone());
                crate::spawn(async move { child.fetch_add(1, SeqCst) });
                if number == 0 {
                    crate::spawn_blocking(move || count.fetch_add(1, SeqCst));
                }
                ended.fetch_add(1, SeqCst);
            });
        }
        assert!(runtime.run_until_idle().is_empty());
        assert_eq!(ended.load(SeqCst), 5);
        end(runtime);
    });
}

/// A thread waits until nothing is left to do, while another one wakes a task. One task is lost, and told of when the
/// other has ended.
///
/// Planted: `seems_lost` that does not ask for references (`task/sight.rs`).
#[test]
fn a_lost_task_is_told_of_when_all_others_have_ended() {
    explore(|| {
        let runtime = runtime(2);
        let lost = runtime.spawn(std::future::pending::<()>());
        let flag = Arc::new(Flag::default());
        let waits = flag.clone();
        let task = runtime.spawn(async move { waits.wait().await });
        let wakes = thread::spawn(move || flag.raise());
        let left = runtime.run_until_idle();
        assert_eq!((left.len(), left[0].id()), (1, lost.id()));
        assert!(task.is_finished());
        wakes.join().unwrap();
        drop((lost, task));
        end(runtime);
    });
}

/// The output of a task that nobody joins spawns another task when it is dropped: then the first one counts as alive no
/// more.
///
/// Planted: `Shared::has_nothing_left` that does not ask whether all workers are parked. (That it asks before it reads
/// what has begun is not found by drawn orders: it takes four switches at certain places.)
#[test]
fn what_the_drop_of_an_output_spawns_is_waited_for() {
    struct Spawns(Arc<AtomicUsize>, Arc<Flag>, crate::runtime::Handle);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let (ended, flag) = (self.0.clone(), self.1.clone());
            drop(self.2.spawn(async move {
                flag.wait().await;
                ended.fetch_add(1, SeqCst)
            }));
        }
    }
    explore(|| {
        let runtime = runtime(2);
        let ended = Arc::new(AtomicUsize::new(0));
        let flag = Arc::new(Flag::default());
        let output = Spawns(ended.clone(), flag.clone(), runtime.handle().clone());
        drop(runtime.spawn(async move { output }));
        let raises = thread::spawn(move || flag.raise());
        assert!(runtime.run_until_idle().is_empty());
        assert_eq!(ended.load(SeqCst), 1);
        raises.join().unwrap();
        end(runtime);
    });
}

/// Tasks that run on and on: from their second poll on they are compute-bound, in local queues that overflow into the
/// injector of that class, beside woken tasks.
///
/// Planted: a worker that never looks into that injector (`Worker::choose`).
#[test]
fn what_runs_again_and_again_comes_to_its_end() {
    explore(|| {
        let runtime = runtime(2);
        let tasks: Vec<_> = (0..7).map(|number| runtime.spawn(running_on(number))).collect();
        shuttle::future::block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        end(runtime);
    });
}

async fn running_on(number: usize) {
    for _ in 0..2 + number % 3 {
        yield_now().await;
    }
    crate::spawn(async {}).await.unwrap();
}

async fn parent(number: usize, alive: Alive) -> usize {
    let child = crate::spawn(async move {
        yield_now().await;
        number
    });
    yield_now().await;
    let sum = number + child.await.unwrap();
    drop(alive);
    sum
}

/// Two threads wake tasks of a runtime whose workers go to rest.
///
/// Planted: a worker that does not look into the injector before it waits (`Worker::sees_work`).
#[test]
fn a_wake_from_outside_is_never_lost() {
    explore(|| {
        let runtime = runtime(2);
        let flags: Vec<_> = (0..2).map(|_| Arc::new(Flag::default())).collect();
        let tasks: Vec<_> = flags
            .iter()
            .cloned()
            .map(|flag| {
                runtime.spawn(async move {
                    flag.wait().await;
                    yield_now().await;
                })
            })
            .collect();
        let wakers: Vec<_> = flags.into_iter().map(|flag| thread::spawn(move || flag.raise())).collect();
        shuttle::future::block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        for waker in wakers {
            waker.join().unwrap();
        }
        end(runtime);
    });
}

/// Tasks are aborted from outside while they run, yield and are taken by other workers: each is dropped once, and each
/// handle says how it ended.
///
/// Planted: `State::finish_yielded` that does not look whether the task was cancelled.
#[test]
fn an_aborted_task_is_dropped_and_joined() {
    explore(|| {
        let runtime = runtime(2);
        let alive = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..4)
            .map(|number| {
                let alive = Alive::new(&alive);
                runtime.spawn(async move {
                    yield_now().await;
                    yield_now().await;
                    if number > 0 {
                        Flag::default().wait().await;
                    }
                    drop(alive);
                })
            })
            .collect();
        let aborts: Vec<_> = tasks.iter().map(|task| task.abort_handle()).collect();
        let aborter = thread::spawn(move || aborts.iter().for_each(|task| task.abort()));
        shuttle::future::block_on(async {
            for (number, task) in tasks.into_iter().enumerate() {
                match task.await {
                    Ok(()) => assert_eq!(number, 0, "it never ends by itself"),
                    Err(error) => assert!(error.is_cancelled()),
                }
            }
        });
        assert_eq!(alive.load(SeqCst), 0);
        aborter.join().unwrap();
        end(runtime);
    });
}

/// A runtime ends while threads spawn on it, and one calls `block_on`: every handle knows how its task ended, every
/// future is gone, and the `block_on` returns.
///
/// Planted: the last core to close that does not empty the injector (`Shared::core_closed`); a guest that
/// does not close its core.
#[test]
fn the_end_meets_spawns_and_block_on() {
    explore(|| {
        let runtime = runtime(2);
        let alive = Arc::new(AtomicUsize::new(0));
        let spawner = {
            let (handle, alive) = (runtime.handle().clone(), alive.clone());
            thread::spawn(move || {
                [(); 2].map(|()| {
                    let alive = Alive::new(&alive);
                    handle.spawn(async move {
                        yield_now().await;
                        drop(alive);
                    })
                })
            })
        };
        let blocked = {
            let handle = runtime.handle().clone();
            thread::spawn(move || {
                handle.block_on(async {
                    yield_now().await;
                    7
                })
            })
        };
        end_beside_handles(runtime);
        for task in spawner.join().unwrap() {
            let _ = shuttle::future::block_on(task);
        }
        assert_eq!(blocked.join().unwrap(), 7);
        assert_eq!(alive.load(SeqCst), 0);
    });
}

/// A waker of `block_on` wakes on another thread while the call returns, and the runtime ends meanwhile or later. The
/// task of the call is gone with it, and so is the runtime.
///
/// Planted: a task of `block_on` that is not cancelled when the core is closed (`Shown::end` in `task/main.rs`).
#[test]
fn a_wake_meets_the_return_of_block_on() {
    explore(|| {
        let runtime = Builder::new_current_thread().build().unwrap();
        let given = Arc::new(Mutex::new(None::<Waker>));
        let waking = {
            let given = given.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(waker) = { lock(&given).take() } {
                        waker.wake_by_ref();
                        waker.wake();
                    }
                    thread::yield_now();
                }
            })
        };
        let ending = {
            let handle = runtime.handle().clone();
            thread::spawn(move || handle.shared.shutdown(None))
        };
        for _ in 0..2 {
            runtime.block_on(async {
                poll_fn(|cx| {
                    *lock(&given) = Some(cx.waker().clone());
                    Poll::Ready(())
                })
                .await;
                yield_now().await;
            });
        }
        waking.join().unwrap();
        let _left = ending.join().unwrap();
        drop(given);
        end(runtime);
    });
}

/// Three threads in `block_on` beside two worker threads: each call returns.
///
/// Planted: `Guests::take` that gives out a core that is held.
#[test]
fn guests_and_worker_threads_work_side_by_side() {
    explore(|| {
        let runtime = runtime(2);
        let flag = Arc::new(Flag::default());
        let raised = flag.clone();
        let task = runtime.spawn(async move {
            yield_now().await;
            raised.raise();
        });
        let guests: Vec<_> = (0..2)
            .map(|number| {
                let handle = runtime.handle().clone();
                thread::spawn(move || {
                    handle.block_on(async move {
                        let task = crate::spawn(async move { number });
                        yield_now().await;
                        task.await.unwrap()
                    })
                })
            })
            .collect();
        runtime.block_on(async {
            flag.wait().await;
            task.await.unwrap();
        });
        drop(flag); // with the waker in it
        for (number, guest) in guests.into_iter().enumerate() {
            assert_eq!(guest.join().unwrap(), number);
        }
        end(runtime);
    });
}

/// Blocking jobs, tasks that wait for them, and the end.
///
/// Planted: a blocking thread that ends and stays counted as waiting (`Blocking::next_job`); a `Blocking::close` that
/// discards the queue.
#[test]
fn blocking_jobs_are_done_or_cancelled() {
    explore(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).timer_slack(None).max_blocking_threads(1);
        let runtime = builder.build().unwrap();
        let sum = runtime.block_on(async {
            let mut jobs = JoinSet::new();
            for number in 1..=3 {
                jobs.spawn(async move { crate::spawn_blocking(move || number).await.unwrap() });
            }
            let mut sum = 0;
            while let Some(number) = jobs.join_next().await {
                sum += number.unwrap();
            }
            sum
        });
        assert_eq!(sum, 6);
        let last = runtime.spawn_blocking(|| 1);
        end_beside_handles(runtime);
        assert_eq!(shuttle::future::block_on(last).unwrap(), 1, "it was accepted before the end");
    });
}

/// Two tasks talk over a real socket, on workers that rest as the poller and as threads: no event is left unseen.
///
/// Planted: a poller that keeps its place (`PollerRole::leave`).
#[test]
fn events_of_sockets_are_seen_by_the_poller() {
    explore(|| {
        let runtime = runtime(2);
        let (one, other) = UnixStream::pair().unwrap();
        let answering = runtime.spawn(async move {
            let mut byte = [0];
            other.read_exact(&mut byte).await.unwrap();
            other.write_all(&byte).await.unwrap();
        });
        let asking = runtime.spawn(async move {
            one.write_all(b"?").await.unwrap();
            let mut byte = [0];
            one.read_exact(&mut byte).await.unwrap();
            byte[0]
        });
        let byte = shuttle::future::block_on(async {
            answering.await.unwrap();
            asking.await.unwrap()
        });
        assert_eq!(byte, b'?');
        end(runtime);
    });
}
