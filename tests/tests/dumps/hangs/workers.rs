//! Tasks that keep their worker, or threads that are all taken.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;
use mini::runtime::RuntimeFlavor;
use mini::sync::Mutex;
use mini::task::yield_now;
use mini::time::sleep;
use mini_tests::on_each_flavour;

use super::{End, at, hang, hang_in, task, until};

/// What a thread does is known on Linux, and not on the stand-in for kqueue.
const IN_A_CALL: &str =
    if cfg!(all(target_os = "linux", not(mini_kqueue_shim))) { "which waits in a system call" } else { "" };
const COMPUTES: &str = if cfg!(all(target_os = "linux", not(mini_kqueue_shim))) { "which computes" } else { "" };

#[test]
fn a_call_that_blocks_its_worker() {
    async fn program(end: End) {
        let blocks = async move {
            let _ = end.recv_blocking();
        };
        task("blocks", blocks); // blocks
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[&["worker", " in task", "\"blocks\"", &at!("// blocks"), IN_A_CALL]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_poll_that_computes() {
    async fn program(end: End) {
        let computes = async move {
            while !end.is_closed() {
                std::hint::spin_loop();
            }
        };
        task("computes", computes); // computes
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[&["worker", " in task", "\"computes\"", &at!("// computes"), COMPUTES]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_future_that_wakes_itself() {
    async fn program(_: End) {
        let wakes = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        task("wakes", wakes); // wakes itself
        pending().await
    }
    on_each_flavour(|builder| {
        hang(&builder, program, &[&["\"wakes\"", &at!("// wakes itself"), "polled", "times in"]]);
    });
}

#[test]
fn a_loop_that_yields_until_something_is_so() {
    async fn program(_: End) {
        let looks = async {
            loop {
                yield_now().await;
            }
        };
        task("looks", looks); // looks
        pending().await
    }
    on_each_flavour(|builder| {
        hang(&builder, program, &[&["\"looks\"", &at!("// looks"), "polled", "times in"]]);
    });
}

#[test]
fn all_threads_of_the_blocking_pool_are_stuck() {
    async fn program(end: End) {
        for _ in 0..2 {
            let end = end.clone();
            mini::spawn_blocking(move || end.recv_blocking()); // is stuck
        }
        let save = async {
            mini::spawn_blocking(|| ()).await.unwrap(); // has to wait
        };
        task("save", save);
        pending().await
    }
    on_each_flavour(|mut builder| {
        builder.max_blocking_threads(2);
        let shown: &[&[&str]] = &[
            &["2 running blocking jobs", &at!("// is stuck"), "for "],
            &["1 blocking job", "in the queue", "2 threads", "0 of them idle"],
            &["\"save\"", "Join of", &at!("// has to wait")],
        ];
        hang(&builder, program, shown);
    });
}

/// Another executor's `block_on` keeps the worker that should run what it waits for.
#[test]
fn block_on_in_a_task() {
    async fn program(end: End) {
        let outer = async move {
            let inner = task("inner", sleep(Duration::from_millis(1))); // would be ready
            let ended = pin!(end.recv());
            block_on(futures_lite::future::or(async { drop(inner.await) }, async { ended.await.unwrap_or_default() }));
        };
        task("outer", outer); // keeps the worker
        pending().await
    }
    mini_tests::on_single_workers(|builder| {
        let shown: &[&[&str]] = &[
            &["worker 0", " in task", "\"outer\"", &at!("// keeps the worker"), IN_A_CALL],
            &["\"inner\"", &at!("// would be ready"), "ready to run"],
        ];
        hang(&builder, program, shown);
    });
}

/// The main task is named as well as any other.
#[test]
fn the_main_task_blocks() {
    async fn program(end: End) {
        task("starves", async { yield_now().await });
        let _ = end.recv_blocking();
    }
    mini_tests::on_single_workers(|builder| {
        hang(&builder, program, &[&["in the main task", IN_A_CALL]]);
    });
}

/// The lock that the thread waits for is that of the first `block_on`. In a `current_thread` runtime that one has the
/// only worker.
#[test]
fn a_second_thread_in_block_on() {
    async fn program(lock: Arc<Mutex<()>>) {
        let _guard = lock.lock().await; // never lets go
        pending().await
    }
    mini_tests::on_single_workers(|builder| {
        let (lock, (end, ended)) = (Arc::new(Mutex::new(())), async_channel::bounded::<()>(1));
        let theirs = lock.clone();
        hang_in(
            builder.build().unwrap(),
            |_| program(theirs),
            |handle| {
                while lock.try_lock().is_ok() {
                    thread::yield_now();
                }
                let second = handle.clone();
                let second = thread::spawn(move || {
                    second.block_on(async {
                        let waits = async { drop(lock.lock().await) }; // the second waits
                        mini::race!(waits, async { ended.recv().await.unwrap_or_default() });
                    });
                });
                let (waits, holds) = (at!("// the second waits"), at!("// never lets go"));
                let thread = match handle.runtime_flavor() {
                    RuntimeFlavor::CurrentThread => "a thread in block_on that runs no worker waits for",
                    _ => "thread in block_on  parked; its main task waits for",
                };
                until(handle, &[&[thread, "Lock", &waits, "last taken by the main task", &holds]]);
                drop(end);
                second.join().unwrap();
            },
        );
    });
}
