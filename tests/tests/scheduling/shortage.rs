//! What happens when the system has no thread to give: errors that say so, and no task or job that waits for ever.
//!
//! A stack that fits nowhere stands for a shortage that lasts; a limit on the address space, in a process of its own,
//! for one that ends.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::Instant;

use mini::runtime::{Builder, Runtime};
use mini::time::{Duration, sleep};
use mini_tests::{Counts, LIMIT, Token, in_child, never, within};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than there are addresses.
const TOO_MUCH: usize = 1 << 47;

/// The stack of threads whose start is to be prevented for a while.
const STACK: usize = 256 << 20;

fn without_threads() -> Runtime {
    Builder::new_current_thread().thread_stack_size(TOO_MUCH).build().unwrap()
}

#[test]
fn a_job_without_a_thread_ends_with_the_reason() {
    within(LIMIT, || {
        let runtime = without_threads();
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
    });
}

#[test]
fn a_shortage_of_threads_is_not_told_for_each_job() {
    let said = in_child("a_shortage_of_threads_is_not_told_for_each_job", || {
        let runtime = without_threads();
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
        let runtime = without_threads();
        let path = std::env::temp_dir().join(format!("mini-shortage-{}", std::process::id()));
        let error = runtime.block_on(mini::fs::write(&path, "text")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}: it would not be woken");
        assert!(mini_tests::net_support::raw_os_error(&error).is_some(), "{error}");
        assert!(!path.exists());
    });
}

#[test]
fn a_name_without_a_thread_is_not_looked_up_for_ever() {
    within(LIMIT, || {
        let runtime = without_threads();
        let error = runtime.block_on(mini::net::lookup_host("localhost:80")).unwrap_err();
        assert!(error.to_string().contains("could not start a thread"), "{error}");
    });
}

#[test]
fn a_runtime_whose_first_worker_cannot_be_started_is_an_error() {
    within(LIMIT, || {
        let error = Builder::new_multi_thread().thread_stack_size(TOO_MUCH).build().unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
    });
}

#[test]
fn a_runtime_without_threads_is_shut_down_at_once() {
    within(LIMIT, || {
        // The grace is longer than the test may take.
        let mut builder = Builder::new_current_thread();
        let runtime = builder.shutdown_grace(LIMIT * 10).thread_stack_size(TOO_MUCH).build().unwrap();
        let counts = Counts::new();
        drop(runtime.spawn(never(&counts)));
        drop(runtime.spawn_blocking(|| ()));
        drop(runtime);
        assert_eq!(counts.drops(), 1);
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
fn a_worker_does_the_work_of_others_that_cannot_be_started() {
    let said = in_child("a_worker_does_the_work_of_others_that_cannot_be_started", || {
        let runtime = Builder::new_multi_thread().worker_threads(4).thread_stack_size(STACK).build().unwrap();
        let _shortage = Shortage::begin();
        let stalls = |number| async move {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(5) {} // worth another worker
            sleep(Duration::from_millis(1)).await;
            number
        };
        let tasks: Vec<_> = (0..20).map(|number| runtime.spawn(stalls(number))).collect();
        runtime.block_on(async {
            for (number, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), number);
            }
        });
    });
    if let Some(said) = said {
        assert_eq!(said.matches("mini: could not start worker thread").count(), 1, "{said}");
    }
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
            assert_eq!(
                (error.kind(), mini_tests::net_support::raw_os_error(&error)),
                (ErrorKind::ResourceBusy, Some(11)),
                "{error}"
            );
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
