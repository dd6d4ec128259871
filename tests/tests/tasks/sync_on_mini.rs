//! `mini::sync` on mini: where its blocking methods may be called, and what a wait says.

use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use mini::runtime::Builder;
use mini::sync::{Mutex, mpsc, oneshot};
use mini::task::{Group, Reason, block_in_place, yield_now};
use mini::time::{pause, timeout};
use mini_tests::{caught, multi_thread, on_each_flavour};

#[test]
fn blocking_methods_are_for_jobs_and_threads() {
    mini::block_on(async {
        let (sender, mut receiver) = mpsc::channel(1);
        let job = mini::spawn_blocking(move || {
            let mut sum = 0;
            while let Some(n) = receiver.blocking_recv() {
                sum += n;
            }
            sum
        });
        let sending = mini::spawn_blocking(move || (1..=4).for_each(|n| sender.blocking_send(n).unwrap()));
        sending.await.unwrap();
        assert_eq!(job.await.unwrap(), 10);
    });
}

#[test]
fn blocking_methods_work_in_place() {
    let runtime = multi_thread(2).build().unwrap();
    let task = runtime.spawn(async {
        let mutex = Mutex::new(7);
        block_in_place(|| *mutex.blocking_lock())
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
}

#[test]
fn blocking_methods_refuse_to_block_a_task_or_a_main_future() {
    for in_task in [false, true] {
        let panic = caught(|| {
            let (_sender, receiver) = oneshot::channel::<()>();
            let body = async { drop(receiver.blocking_recv()) };
            let runtime = Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                match in_task {
                    false => body.await,
                    true => std::panic::resume_unwind(mini::spawn(body).await.unwrap_err().into_panic()),
                }
            });
        });
        assert!(in_task || panic.message.contains("`blocking_recv` would block"), "{}", panic.message);
    }
}

/// Blocks when it is dropped, and sends whether that was refused.
struct Blocks(Arc<Mutex<()>>, std::sync::mpsc::Sender<Option<String>>);

impl Drop for Blocks {
    fn drop(&mut self) {
        let refused = std::panic::catch_unwind(AssertUnwindSafe(|| drop(self.0.blocking_lock())));
        let text = refused.err().map(|payload| payload.downcast_ref::<String>().cloned().unwrap_or_default());
        self.1.send(text).unwrap();
    }
}

#[test]
fn blocking_methods_refuse_to_block_where_the_future_of_a_task_is_dropped() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (sender, dropped) = std::sync::mpsc::channel();
        let waits = || {
            let blocks = Blocks(Arc::default(), sender.clone());
            runtime.spawn(async move {
                let _blocks = blocks;
                pending::<()>().await;
            })
        };
        let (aborted, _left) = (waits(), waits());
        runtime.block_on(async {
            yield_now().await;
            aborted.abort();
            assert!(aborted.await.unwrap_err().is_cancelled());
        });
        drop(runtime);
        for _ in 0..2 {
            let text = dropped.recv().unwrap().expect("it was let");
            assert!(text.contains("`blocking_lock` would block the thread of a task"), "{text}");
        }
    });
}

#[test]
fn what_a_job_that_never_starts_has_may_block() {
    let runtime = multi_thread(1).max_blocking_threads(1).build().unwrap();
    let (sender, dropped) = std::sync::mpsc::channel();
    let (go, waits) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let busy = mini::spawn_blocking(move || waits.recv().unwrap());
        let blocks = Blocks(Arc::default(), sender);
        let job = mini::spawn_blocking(move || drop(blocks));
        job.abort();
        go.send(()).unwrap();
        assert!(job.await.unwrap_err().is_cancelled());
        busy.await.unwrap();
    });
    assert_eq!(dropped.recv().unwrap(), None);
}

#[test]
fn a_thread_may_block_again_when_its_block_on_has_panicked() {
    caught(|| mini::block_on(async { panic!("the main future") }));
    let (sender, mut receiver) = mpsc::channel(1);
    sender.blocking_send(7).unwrap();
    assert_eq!(receiver.blocking_recv(), Some(7));
}

#[test]
fn a_wait_for_a_lock_names_the_task_that_has_it() {
    mini::block_on(async {
        pause();
        let task = mini::spawn(async {
            let mutex = Mutex::new(());
            let held = mutex.lock().await;
            let elapsed = timeout(Duration::from_secs(1), mutex.lock()).await.unwrap_err();
            let text = format!("{mutex:?}");
            drop(held);
            (mini::task::id(), elapsed.to_string(), text)
        });
        let (id, elapsed, text) = task.await.unwrap();
        assert!(elapsed.contains("Lock at ") && elapsed.ends_with(", last taken by this task itself"), "{elapsed}");
        assert!(text.contains(&format!("taken by task {id} at ")) && text.contains("sync_on_mini.rs:"), "{text}");
    });
}

#[test]
fn a_report_names_the_task_that_has_the_lock() {
    mini::block_on(async {
        pause();
        let group = Group::new().grace(Duration::ZERO);
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.clone();
        let holder = group.spawn_named("holder", async move {
            let _guard = held.lock().await;
            std::future::pending::<()>().await;
        });
        group.spawn_named("waiter", async move { drop(mutex.lock().await) });
        yield_now().await;
        let text = group.shutdown(Reason::Requested).await.to_string();
        assert!(text.contains(&format!(", last taken by task {} (\"holder\")", holder.id())), "{text}");
    });
}

#[test]
fn a_wait_for_a_message_says_so() {
    mini::block_on(async {
        pause();
        let (_sender, mut receiver) = mpsc::channel::<()>(1);
        let elapsed = timeout(Duration::from_secs(1), receiver.recv()).await.unwrap_err();
        assert!(elapsed.to_string().contains("while waiting for Receive at "), "{elapsed}");
    });
}
