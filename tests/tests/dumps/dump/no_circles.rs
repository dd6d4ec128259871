//! What looks like a circle of tasks and is none.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

use mini::runtime::{Builder, Dump};
use mini::sync::{Mutex, OnceCell, oneshot};
use mini::task::{JoinHandle, JoinSet, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::net_support::in_each_runtime;
use mini_tests::{LIMIT, beside_block_on, until, within};

use super::{dump, has_line};

/// What a dump shows of an external thread that waits for a lock.
const EXTERNAL: &str = "a thread in block_on that runs no worker waits for Lock at ";

/// What is waited for ends by itself, so it is no circle, whatever it looks like.
#[test]
fn what_ends_by_itself_is_no_circle() {
    in_each_runtime(|| async {
        // A limit.
        let lock = Arc::new(Mutex::new(()));
        let (mine, (go, gone)) = (lock.clone(), oneshot::channel::<JoinHandle<()>>());
        let holder = mini::spawn(async move {
            let _guard = mine.lock().await;
            gone.await.unwrap().await.unwrap(); // the other one
        });
        let theirs = lock.clone();
        let other = mini::spawn(async move {
            yield_now().await;
            mini::race!(async { drop(theirs.lock().await) }, sleep(Duration::from_millis(50)));
        });
        go.send(other).unwrap();
        while !holder.is_finished() {
            assert!(dump().circles().is_empty(), "{}", dump());
            yield_now().await;
        }

        // A guard that another task drops.
        let guard = lock.clone().lock_owned().await;
        let (end, ended) = oneshot::channel::<()>();
        let has_guard = mini::spawn(async move {
            ended.await.unwrap();
            drop(guard);
        });
        let (again, waits) = (lock.clone(), Arc::new(AtomicBool::new(false)));
        let seen = waits.clone();
        let watcher = mini::spawn(async move {
            while !has_line(&dump().to_string(), &["Lock", "last taken by"]) {
                yield_now().await;
            }
            assert!(dump().circles().is_empty(), "{}", dump());
            seen.store(true, SeqCst);
            end.send(()).unwrap();
        });
        drop(again.lock_owned().await);
        assert!(waits.load(SeqCst));
        for task in [has_guard, watcher] {
            task.await.unwrap();
        }
    });
}

/// A lock goes from one task to the next, while dumps look at one task after the other.
#[test]
fn a_lock_that_goes_on_is_no_circle() {
    let runtime = mini::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (lock, is_over) = (Arc::new(Mutex::new(0_u64)), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (lock, is_over) = (lock.clone(), is_over.clone());
            runtime.spawn(async move {
                while !is_over.load(SeqCst) {
                    *lock.lock().await += 1;
                    yield_now().await;
                }
            })
        })
        .collect();
    // One who hands the lock over may lose its CPU before it wakes the other.
    let is_wrong = |dump: &Dump| {
        let text = dump.to_string();
        text.contains("most likely") || !dump.circles().is_empty() && !text.contains("has not been polled since")
    };
    let dumps = (0..300).map(|_| runtime.handle().dump());
    let told: Vec<String> = dumps.filter(is_wrong).map(|dump| dump.to_string()).collect();
    is_over.store(true, SeqCst);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(told.first(), None, "{} dumps", told.len());
}

/// Waits for the lock of another task, which `lets_go` once it is said to wait. By then one more task waits.
async fn gets_a_lock(is_waiting: fn() -> bool, lets_go: fn()) {
    let (lock, (held, is_held), (go, gone)) = (Arc::new(Mutex::new(())), oneshot::channel(), oneshot::channel());
    let (mine, theirs) = (lock.clone(), lock.clone());
    let first = mini::spawn(async move {
        let guard = mine.lock().await;
        held.send(()).unwrap();
        gone.await.unwrap();
        drop(guard);
        lets_go();
    });
    is_held.await.unwrap();
    let next = mini::spawn(async move {
        until(is_waiting).await;
        go.send(()).unwrap();
        drop(theirs.lock().await);
    });
    let guard = lock.lock().await;
    assert!(!dump().to_string().contains("CIRCLE"), "{}", dump());
    drop(guard);
    for task in [first, next] {
        task.await.unwrap();
    }
}

#[test]
fn a_main_task_that_was_given_its_lock_waits_for_nobody() {
    let runtime = mini::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(gets_a_lock(|| true, || assert!(!dump().to_string().contains("CIRCLE"), "{}", dump())));
    beside_block_on(&runtime, async {}, || {
        runtime.block_on(gets_a_lock(|| dump().to_string().contains(EXTERNAL), || ()));
    });
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Polls it once, as a `timeout` or a `select!` over `&mut` does, and then in another poll of its task no more.
async fn poll_once(future: &mut Boxed) {
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    yield_now().await;
}

/// Ends `end` once a dump shows that something waits for a lock, and checks what it and the next one say of that.
async fn looks(end: oneshot::Sender<()>) {
    while !dump().to_string().contains("this task itself") {
        yield_now().await;
    }
    for text in [dump(), dump()].map(|dump| dump.to_string()) {
        assert!(has_line(&text, &["MAYBE A CIRCLE", "a deadlock, unless", "a lock has passed"]), "{text}");
        assert!(!text.contains("  CIRCLE") && !text.contains("most likely") && !text.contains("held by"), "{text}");
    }
    end.send(()).unwrap();
}

/// A guard goes to another task with the future that took it, and the task waits for what it took itself.
#[test]
fn a_lock_that_goes_to_another_task_with_its_future_is_no_certain_circle() {
    in_each_runtime(|| async {
        for is_in_a_set in [false, true] {
            let (lock, (end, ended)) = (Arc::new(Mutex::new(())), oneshot::channel());
            let mine = lock.clone();
            let task = mini::spawn(async move {
                let mut holds: Boxed = Box::pin(async move {
                    let _guard = mine.lock().await;
                    ended.await.unwrap();
                });
                poll_once(&mut holds).await;
                let mut set = JoinSet::new();
                let _task = if is_in_a_set { set.spawn(holds) } else { mini::spawn(holds).abort_handle() };
                drop(lock.lock().await);
                set.shutdown().await;
            });
            looks(end).await;
            task.await.unwrap();
        }
        let (end, ended) = oneshot::channel();
        let task = mini::spawn(async move {
            let cell = Arc::new(OnceCell::new());
            let mine = cell.clone();
            let mut fills: Boxed = Box::pin(async move {
                mine.get_or_init(|| async { ended.await.unwrap() }).await;
            });
            poll_once(&mut fills).await;
            mini::spawn(fills);
            cell.get_or_init(async || ()).await;
        });
        looks(end).await;
        task.await.unwrap();
    });
}

/// Each of two tasks gives its lock away with a future, and waits for the lock of the other one.
#[test]
fn locks_of_two_tasks_that_go_to_others_with_their_futures_are_no_certain_circle() {
    in_each_runtime(|| async {
        let locks = [(); 2].map(|()| Arc::new(Mutex::new(())));
        let met = Arc::new(mini::sync::Barrier::new(2));
        let (ends, tasks): (Vec<_>, Vec<_>) = [0, 1]
            .map(|own| {
                let (mine, other, met) = (locks[own].clone(), locks[1 - own].clone(), met.clone());
                let (end, ended) = oneshot::channel::<()>();
                let task = mini::spawn(async move {
                    let mut holds: Boxed = Box::pin(async move {
                        let _guard = mine.lock().await;
                        ended.await.unwrap();
                    });
                    poll_once(&mut holds).await;
                    mini::spawn(holds);
                    met.wait().await;
                    drop(other.lock().await);
                });
                (end, task)
            })
            .into_iter()
            .unzip();
        until(|| !dump().circles().is_empty()).await;
        for text in [dump(), dump()].map(|dump| dump.to_string()) {
            assert!(has_line(&text, &["MAYBE A CIRCLE", "a deadlock, unless", "a lock has passed"]), "{text}");
            assert!(!text.contains("  CIRCLE") && !text.contains("most likely") && !text.contains("held by"), "{text}");
        }
        ends.into_iter().for_each(|end| end.send(()).unwrap());
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_lock_of_a_main_task_that_goes_to_a_task_with_its_future_is_no_certain_circle() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (lock, (end, ended)) = (Arc::new(Mutex::new(())), oneshot::channel());
        let mine = lock.clone();
        let mut holds: Boxed = Box::pin(async move {
            let _guard = mine.lock().await;
            ended.await.unwrap();
        });
        runtime.block_on(poll_once(&mut holds));
        runtime.block_on(async move {
            mini::spawn(holds);
            let looks = mini::spawn(async {
                while !has_line(&dump().to_string(), &["Lock at ", " by the main task"]) {
                    yield_now().await;
                }
                let text = dump().to_string();
                end.send(()).unwrap();
                text
            });
            drop(lock.lock().await);
            let text = looks.await.unwrap();
            assert!(text.contains("last taken by") && !text.contains("held by"), "{text}");
            assert!(!text.contains("  CIRCLE") && !text.contains("most likely"), "{text}");
        });
    });
}
