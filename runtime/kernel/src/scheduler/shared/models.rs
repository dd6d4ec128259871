//! A whole `current_thread` runtime under loom: real tasks, inbox, registry, ownership and end.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::primitives::{
    atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};
use crate::scheduler::{bare, block_on};
use crate::task::yield_to_others;

fn model(model: impl Fn(&Arc<Shared>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(move || {
        let shared = bare::begin(Config { timer_slack: None, ..Config::new(false) });
        model(&shared);
        assert_eq!(Arc::strong_count(&shared), 1, "something refers to the runtime");
    });
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
        assert!(self.0.fetch_sub(1, SeqCst) > 0, "dropped twice");
    }
}

/// A task is spawned from outside while the runtime ends: it is dropped, and its handle knows.
///
/// Planted: `spawn_posted` that does not ask whether the registry is closed.
#[test]
fn a_task_spawned_during_the_end_is_dropped() {
    model(|shared| {
        let count = Arc::new(AtomicUsize::new(0));
        let spawner = thread::spawn({
            let (shared, alive) = (shared.clone(), Alive::new(&count));
            move || shared.spawn(async move { drop(alive) }, std::panic::Location::caller())
        });
        assert!(shared.shutdown(Some(Duration::MAX)).is_empty());
        let handle = spawner.join().unwrap();
        assert!(handle.is_finished());
        assert_eq!(count.load(SeqCst), 0);
    });
}

/// A thread comes to `block_on` while the runtime ends: its future comes to its end, and the core is closed once.
///
/// Planted: a worker that leaves a core without a check whether the runtime ends (`close_if_closing`).
#[test]
fn block_on_ends_that_comes_during_the_end() {
    model(|shared| {
        let other = shared.clone();
        let blocked = thread::spawn(move || block_on(&other, async { 7 }));
        assert!(shared.shutdown(Some(Duration::MAX)).is_empty());
        assert_eq!(blocked.join().unwrap(), 7);
    });
}

/// Another thread aborts a task while the runtime polls it: its future is dropped, once, and the handle says how it
/// ended.
///
/// Planted: `unparker.unpark` forgotten in `Core::post`.
#[test]
fn an_abort_from_outside_reaches_the_task() {
    model(|shared| {
        let count = Arc::new(AtomicUsize::new(0));
        let alive = Alive::new(&count);
        let task = shared.spawn(
            async move {
                std::future::pending::<()>().await;
                drop(alive)
            },
            std::panic::Location::caller(),
        );
        let abort = task.abort_handle();
        let other = thread::spawn(move || abort.abort());
        assert!(block_on(shared, task).unwrap_err().is_cancelled());
        assert_eq!(count.load(SeqCst), 0);
        other.join().unwrap();
        assert!(shared.shutdown(Some(Duration::MAX)).is_empty());
    });
}

/// Another thread aborts a task while the runtime ends: the task is dropped, and nothing of it stays in the inbox.
///
/// Planted: `Core::post` that does not ask whether the core is closed; `Core::close` that does not bury the inbox.
#[test]
fn an_abort_during_the_end_leaves_nothing_behind() {
    model(|shared| {
        let task = shared.spawn(std::future::pending::<()>(), std::panic::Location::caller());
        let mut is_second = false;
        let yields = poll_fn(|cx| match std::mem::replace(&mut is_second, true) {
            true => Poll::Ready(()),
            false => {
                yield_to_others(cx.waker());
                Poll::Pending
            }
        });
        block_on(shared, yields); // the task is polled, and waits from here on
        let abort = task.abort_handle();
        let other = thread::spawn(move || abort.abort());
        assert!(shared.shutdown(Some(Duration::MAX)).is_empty());
        assert!(task.is_finished());
        other.join().unwrap();
    });
}
