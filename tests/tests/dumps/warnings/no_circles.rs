//! Circles of tasks that end, as one of them waits for something else too.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use mini::runtime::{Builder, WarningKind};
use mini::sync::{Mutex, oneshot};
use mini::task::{CancelToken, Reason};

use super::warned;

#[test]
fn a_circle_of_which_one_waits_for_something_else_too_is_not_told() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let lock = Arc::new(Mutex::new(()));
    let (held, hold) = std::sync::mpsc::channel();
    let (send, receive) = oneshot::channel();
    let other = lock.clone();
    let waits = runtime.spawn(async move {
        mini::spawn_blocking(move || hold.recv().unwrap()).await.unwrap();
        drop(other.lock().await);
    });
    let holds = runtime.spawn(async move {
        let _held = lock.lock().await;
        held.send(()).unwrap();
        let both = mini::race! {
            () = async { waits.await.unwrap() } => "joined",
            () = async { receive.await.unwrap() } => "told",
        };
        assert_eq!(both, "told");
    });
    std::thread::sleep(Duration::from_secs(3)); // real time, for two walks of the watcher
    send.send(()).unwrap();
    runtime.block_on(holds).unwrap();
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// A task that joins one which waits for its lock, and for a channel of another library; and tasks that wait for their
/// own lock, until a token is cancelled or another future of a set drops the guard.
#[test]
fn a_circle_that_may_end_by_what_is_not_noted_is_not_told() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let (send, receive) = futures::channel::oneshot::channel::<()>();
    let token = CancelToken::new();
    let joins = runtime.spawn(async move {
        let lock = Arc::new(Mutex::new(()));
        let (_held, helps) = (lock.lock().await, lock.clone());
        let helps = mini::spawn(async move { drop(helps.lock().await) });
        mini::race! {
            biased;
            joined = helps => joined.unwrap(),
            _ = receive => {}
        }
    });
    let cancelled = token.clone();
    let runs = runtime.spawn(async move {
        let lock = Mutex::new(());
        let _held = lock.lock().await;
        cancelled.run(lock.lock()).await.unwrap_err();
    });
    let selects = runtime.spawn(async move {
        let lock = Mutex::new(());
        let mut set = FuturesUnordered::new();
        set.push(async {
            let _held = lock.lock().await;
            mini::time::sleep(Duration::from_secs(4)).await; // real time, for three walks of the watcher
        });
        let next = set.next();
        let waits = async {
            mini::time::sleep(Duration::from_millis(10)).await; // so that the lock is held
            drop(lock.lock().await);
        };
        futures::join!(next, waits);
    });
    std::thread::sleep(Duration::from_secs(3)); // real time, for two walks of the watcher
    send.send(()).unwrap();
    token.cancel(Reason::Requested);
    runtime.block_on(async {
        for task in [joins, runs, selects] {
            task.await.unwrap();
        }
    });
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// For four seconds one child of a task holds the lock, and sleeps; for it others wait in the same task, by themselves
/// and for a task that does.
async fn waits_for_a_sibling() {
    let lock = Arc::new(Mutex::new(()));
    let sleeps = async {
        let _held = lock.lock().await;
        mini::time::sleep(Duration::from_secs(4)).await; // real time, for three walks of the watcher
    };
    let other = lock.clone();
    let waits = async { drop(lock.lock().await) };
    let joins = async {
        mini::time::sleep(Duration::from_millis(10)).await; // so that the lock is held
        mini::spawn(async move { drop(other.lock().await) }).await.unwrap();
    };
    mini::scope!(|scope| {
        scope.spawn(sleeps);
        scope.spawn(waits);
        scope.spawn(joins);
    })
    .await;
}

/// The same in a set of futures.
async fn waits_for_another_of_the_set() {
    let lock = Mutex::new(());
    let use_it = async |after: u64, lasts: u64| {
        mini::time::sleep(Duration::from_millis(after)).await;
        let _held = lock.lock().await;
        mini::time::sleep(Duration::from_millis(lasts)).await;
    };
    let mut set: FuturesUnordered<_> = [use_it(0, 4_000), use_it(10, 0)].into_iter().collect();
    while set.next().await.is_some() {}
}

#[test]
fn a_child_that_waits_for_what_a_sleeping_sibling_holds_is_no_deadlock() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let tasks = [runtime.spawn(waits_for_a_sibling()), runtime.spawn(waits_for_another_of_the_set())];
    runtime.block_on(async {
        waits_for_a_sibling().await;
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// A future that has a lock is polled in one task and then spawned as another, while the first waits for that lock.
#[test]
fn a_lock_that_went_to_another_task_with_its_future_is_in_no_deadlock() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let task = runtime.spawn(async {
        let lock = Arc::new(Mutex::new(()));
        let mine = lock.clone();
        let mut holds = Box::pin(async move {
            let _held = mine.lock().await;
            mini::time::sleep(Duration::from_secs(3)).await; // real time, for two walks of the watcher
        });
        mini::time::timeout(Duration::from_millis(10), &mut holds).await.unwrap_err();
        mini::spawn(holds);
        mini::task::yield_now().await;
        drop(lock.lock().await); // in a poll that has not polled the other future
    });
    runtime.block_on(task).unwrap();
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// A main task is given the lock for which it waits, while another task waits for it too; then it is in one poll for
/// three seconds, or the task is that was before it.
#[test]
fn a_main_task_that_was_given_its_lock_is_in_no_deadlock() {
    let waits = [false, true].map(|is_queued| {
        let (runtime, warnings) = warned(&mut Builder::new_current_thread());
        std::thread::spawn(move || {
            let lasts = || std::thread::sleep(Duration::from_secs(3)); // real time, for two walks of the watcher
            let (lock, (held, is_held), (go, gone)) =
                (Arc::new(Mutex::new(())), oneshot::channel(), oneshot::channel());
            runtime.block_on(async {
                let (mine, theirs) = (lock.clone(), lock.clone());
                mini::spawn(async move {
                    let guard = mine.lock().await;
                    held.send(()).unwrap();
                    gone.await.unwrap();
                    drop(guard);
                    is_queued.then(lasts);
                });
                is_held.await.unwrap();
                mini::spawn(async move {
                    go.send(()).unwrap();
                    drop(theirs.lock().await);
                });
                let _guard = lock.lock().await;
                (!is_queued).then(lasts);
            });
            drop(runtime);
            let told = warnings.iter().filter(|warning| warning.kind() != WarningKind::LongPoll);
            told.map(|warning| warning.to_string()).collect::<Vec<_>>()
        })
    });
    assert_eq!(waits.map(|thread| thread.join().unwrap()), [[""; 0]; 2]);
}
