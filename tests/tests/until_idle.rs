//! `run_until_idle`: it returns when all has ended, not before, and tells of tasks that nobody can wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mini::runtime::Builder;
use mini::time::sleep;
use mini_tests::{LIMIT, on_each_flavour, oneshot, within};

#[test]
fn what_tasks_spawn_is_waited_for_too() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        assert!(runtime.run_until_idle().is_empty(), "nothing has begun");
        let ended = Arc::new(AtomicUsize::new(0));
        fn tree(depth: usize, ended: Arc<AtomicUsize>) {
            mini::spawn(async move {
                mini::task::yield_now().await;
                if depth > 0 {
                    tree(depth - 1, ended.clone());
                    tree(depth - 1, ended.clone());
                }
                sleep(Duration::from_micros(depth as u64 * 100)).await;
                ended.fetch_add(1, SeqCst);
            });
        }
        for round in 1..4 {
            runtime.block_on(async { tree(7, ended.clone()) });
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(ended.load(SeqCst), 255 * round);
        }
    });
}

#[test]
fn a_blocking_job_that_nobody_awaits_is_waited_for() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..20 {
            let ended = Arc::new(AtomicUsize::new(0));
            let (after, handle) = (ended.clone(), runtime.handle().clone());
            runtime.spawn_blocking(move || {
                thread::yield_now();
                handle.spawn(async move { after.fetch_add(1, SeqCst) });
            });
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(ended.load(SeqCst), 1, "nor is the task missed that it has spawned");
        }
    });
}

#[test]
fn what_another_thread_may_still_wake_is_waited_for() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = oneshot::<u32>();
        let task = runtime.spawn(receive);
        let (begun, has_begun) = mpsc::channel();
        let sender = thread::spawn(move || {
            has_begun.recv().unwrap();
            send.send(7);
        });
        runtime.block_on(mini::task::yield_now());
        begun.send(()).unwrap();
        assert!(runtime.run_until_idle().is_empty());
        assert!(task.is_finished());
        sender.join().unwrap();
    });
}

#[test]
fn tasks_that_nobody_can_wake_are_told_once_all_others_have_ended() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let line = line!() + 1;
        let lost = runtime.spawn(std::future::pending::<()>());
        let named = runtime.block_on(async {
            let others = mini::spawn(async { sleep(Duration::from_millis(5)).await });
            drop(others);
            let local = mini::task::Builder::new().name("local");
            local.spawn_local(async { drop(std::future::poll_fn(|_| std::task::Poll::<()>::Pending).await) })
        });
        let mut told = runtime.run_until_idle();
        told.sort_by_key(|task| task.id() != lost.id());
        assert_eq!(told.iter().map(|task| task.id()).collect::<Vec<_>>(), [lost.id(), named.id()]);
        assert_eq!((told[0].location().line(), told[1].name()), (line, Some("local")));
        assert_eq!(runtime.metrics().num_alive_tasks(), 2, "they are still there");
        drop((lost, named));
        assert_eq!(runtime.run_until_idle().len(), 2, "with a handle or without");
    });
}

/// Each has a waker of the other's: they are not known to be lost.
#[test]
fn a_task_that_another_one_joins_is_lost_with_it_or_not_at_all() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let first = runtime.spawn(std::future::pending::<()>());
        let abort = first.abort_handle();
        let second = runtime.spawn(first);
        let thread = thread::spawn(move || abort.abort());
        assert!(runtime.run_until_idle().is_empty());
        assert!(second.is_finished());
        thread.join().unwrap();
    });
}
