//! What happens when the system has no thread to give: errors that say so, and no task or job that waits for ever.
//!
//! A stack that fits nowhere stands for a shortage that lasts; a limit on the address space, in a process of its own,
//! for one that ends.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::ErrorKind;
use std::sync::mpsc;

use mini::runtime::{Builder, Runtime};
use mini::task::yield_now;
use mini::time::{Duration, sleep};
use mini_tests::{Counts, LIMIT, Token, in_child, never, until, within};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than there are addresses.
const TOO_MUCH: usize = 1 << 47;

/// The stack of threads whose start is to be prevented for a while.
const STACK: usize = 256 << 20;

fn without_threads(mut builder: Builder) -> Runtime {
    builder.thread_stack_size(TOO_MUCH).build().unwrap()
}

fn flavours() -> [Runtime; 3] {
    let one_worker = Builder::new_multi_thread().worker_threads(1).clone();
    [Builder::new_current_thread(), one_worker, Builder::new_multi_thread()].map(without_threads)
}

#[test]
fn a_job_without_a_thread_ends_with_the_reason() {
    within(LIMIT, || {
        for runtime in flavours() {
            let counts = Counts::new();
            let token = Token::new(&counts);
            let lost = runtime.block_on(runtime.spawn_blocking(move || drop(token))).unwrap_err();
            assert!(lost.is_cancelled());
            assert!(lost.to_string().contains("no thread could be started for it"), "{lost}");
            assert_eq!(counts.drops(), 1, "what it held is dropped");
            let other = runtime.block_on(async {
                let task = mini::spawn(std::future::pending::<()>());
                task.cancel().await.unwrap_err()
            });
            assert!(other.to_string().ends_with("was cancelled"), "{other}");
            assert_eq!(runtime.metrics().blocking_queue_depth(), 0);
        }
    });
}

#[test]
fn a_shortage_of_threads_is_not_told_for_each_job() {
    let said = in_child("a_shortage_of_threads_is_not_told_for_each_job", || {
        let runtime = without_threads(Builder::new_current_thread());
        for _ in 0..1000 {
            drop(runtime.spawn_blocking(|| ()));
        }
    });
    let Some(said) = said else { return };
    let lines = said.lines().filter(|line| line.contains("could not start a blocking thread")).count();
    assert!((10..=20).contains(&lines), "ten a second: {said}");
    assert!(said.contains("more lines like this are only counted"), "{said}");
}

#[test]
fn an_operation_on_a_file_without_a_thread_has_the_number_of_the_system() {
    within(LIMIT, || {
        for runtime in flavours() {
            let path = std::env::temp_dir().join(format!("mini-shortage-{}", std::process::id()));
            let error = runtime.block_on(mini::fs::write(&path, "text")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}: it would not be woken");
            assert!(mini::io::raw_os_error(&error).is_some(), "{error}");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            assert!(!path.exists());
        }
    });
}

#[test]
fn a_name_without_a_thread_is_not_looked_up_for_ever() {
    within(LIMIT, || {
        for runtime in flavours() {
            let error = runtime.block_on(mini::net::lookup_host("localhost:80")).unwrap_err();
            assert!(error.to_string().contains("localhost"), "{error}");
        }
    });
}

#[test]
fn block_on_does_the_work_of_workers_that_cannot_be_started() {
    within(LIMIT, || {
        for runtime in flavours() {
            let tasks: Vec<_> = (0..100)
                .map(|number| {
                    runtime.spawn(async move {
                        yield_now().await;
                        sleep(Duration::from_millis(1)).await;
                        number
                    })
                })
                .collect();
            let sum = runtime.block_on(async {
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                sum
            });
            assert_eq!(sum, 4950);
        }
    });
}

#[test]
fn a_runtime_without_threads_is_shut_down_at_once() {
    within(LIMIT, || {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            // The grace is longer than the test may take.
            let runtime = without_threads(builder.shutdown_grace(LIMIT * 10).clone());
            let counts = Counts::new();
            drop(runtime.spawn(never(&counts)));
            drop(runtime.spawn_blocking(|| ()));
            drop(runtime);
            assert_eq!(counts.drops(), 1);
        }
    });
}

/// Leaves no room for another thread of the runtimes here, until it is dropped.
struct Shortage(Rlimit);

impl Shortage {
    fn begin() -> Shortage {
        Shortage::of(STACK as u64 / 2)
    }

    /// Leaves so many bytes.
    fn of(left: u64) -> Shortage {
        let usual = getrlimit(Resource::As);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let size =
            status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap().trim_matches([' ', '\t', 'k', 'B']);
        let size = size.parse::<u64>().unwrap() << 10;
        setrlimit(Resource::As, Rlimit { current: Some(size + left), maximum: usual.maximum }).unwrap();
        Shortage(usual)
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        setrlimit(Resource::As, self.0).unwrap();
    }
}

#[test]
fn a_worker_that_could_not_be_started_is_started_when_there_is_room() {
    const NAME: &str = "a_worker_that_could_not_be_started_is_started_when_there_is_room";
    let said = in_child(NAME, || {
        // These are kept: the room of a thread that ends would be room for another one.
        let mut kept = Vec::new();
        for workers in [2, 4] {
            let runtime = Builder::new_multi_thread().worker_threads(workers).thread_stack_size(STACK).build().unwrap();
            runtime.block_on(yield_now());
            let (done, is_done) = mpsc::channel();
            {
                let _shortage = Shortage::begin();
                drop(runtime.spawn(async move { done.send(()).unwrap() }));
                is_done.try_recv().unwrap_err();
            }
            // No thread spawns, wakes or blocks: the worker has to come by itself.
            is_done.recv().unwrap();
            kept.push(runtime);
        }
    });
    if let Some(said) = said {
        assert!(said.contains("mini: could not start worker thread"), "{said}");
    }
}

#[test]
fn tasks_left_by_block_on_go_on_when_there_is_room() {
    in_child("tasks_left_by_block_on_go_on_when_there_is_room", || {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_stack_size(STACK).build().unwrap();
        let (done, is_done) = mpsc::channel();
        let shortage = Shortage::begin();
        runtime.block_on(async {
            let nap = mini::spawn(async move {
                sleep(Duration::from_millis(20)).await;
                done.send(()).unwrap();
            });
            until(|| !nap.is_finished()).await;
            drop(nap);
        });
        drop(shortage);
        is_done.recv().unwrap();
    });
}

/// It takes no core while a worker can have it.
#[test]
fn a_job_that_waits_in_block_on_does_the_work_of_a_worker_that_cannot_be_started() {
    in_child("a_job_that_waits_in_block_on_does_the_work_of_a_worker_that_cannot_be_started", || {
        for workers in [1, 2] {
            let runtime = Builder::new_multi_thread().worker_threads(workers).thread_stack_size(STACK).build().unwrap();
            let (inside, is_inside) = mpsc::channel();
            let (done, is_done) = mpsc::channel();
            let handle = runtime.handle().clone();
            let job = runtime.spawn_blocking(move || {
                handle.block_on(async {
                    inside.send(()).unwrap();
                    sleep(Duration::from_millis(50)).await;
                });
                done.send(()).unwrap();
            });
            let shortage = runtime.block_on(async {
                until(|| is_inside.try_recv().is_ok()).await;
                Shortage::begin()
            });
            is_done.recv().unwrap();
            drop(shortage);
            runtime.block_on(job).unwrap();
            std::mem::forget(runtime); // its thread's room would be room for another one
        }
    });
}

/// Without a monitor the thread that spawns tries again for a while; after that, the next thread that spawns or wakes
/// does.
#[test]
fn a_task_that_waits_for_a_worker_is_run_by_the_next_who_comes() {
    in_child("a_task_that_waits_for_a_worker_is_run_by_the_next_who_comes", || {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_stack_size(STACK).build().unwrap();
        let (first, second) = (mpsc::channel(), mpsc::channel());
        {
            let _shortage = Shortage::begin();
            drop(runtime.spawn(async move { first.0.send(()).unwrap() }));
        }
        drop(runtime.spawn(async move { second.0.send(()).unwrap() }));
        first.1.recv().unwrap();
        second.1.recv().unwrap();
    });
}

#[test]
fn a_job_is_left_to_the_threads_that_there_are() {
    in_child("a_job_is_left_to_the_threads_that_there_are", || {
        let runtime = Builder::new_current_thread().thread_stack_size(STACK).build().unwrap();
        let (go, gone) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let busy = runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            gone.recv().unwrap_err();
        });
        has_begun.recv().unwrap();
        let late: Vec<_> = {
            let _shortage = Shortage::begin();
            (0..10).map(|number| runtime.spawn_blocking(move || number)).collect()
        };
        drop(go);
        runtime.block_on(async {
            busy.await.unwrap();
            for (number, job) in late.into_iter().enumerate() {
                assert_eq!(job.await.unwrap(), number);
            }
        });
    });
}

/// The system's error for a missing thread has the number of "would block".
#[test]
fn a_standard_stream_without_a_thread_has_an_error_and_works_later() {
    let said = in_child("a_standard_stream_without_a_thread_has_an_error_and_works_later", || {
        mini::block_on(async {
            // Nothing comes from here, and it cannot be polled.
            let mut byte = [0];
            let error = {
                let _shortage = Shortage::of(1 << 20);
                mini::io::stdin().read(&mut byte).await.unwrap_err()
            };
            assert_eq!((error.kind(), mini::io::raw_os_error(&error)), (ErrorKind::ResourceBusy, Some(11)), "{error}");
            assert_eq!(mini::io::stdin().read(&mut byte).await.unwrap(), 0);
        });
    });
    drop(said);
}

#[test]
fn cores_without_a_thread_are_an_error_of_run() {
    within(LIMIT, || {
        let cores = Builder::new_per_core().worker_threads(2).thread_stack_size(TOO_MUCH).build().unwrap();
        let error = cores.run(|_| std::future::pending::<()>()).unwrap_err();
        assert!(error.to_string().contains("thread of core 0"), "{error}");
    });
}
