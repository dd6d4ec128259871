//! Tasks that wait for what another one has, or they themselves.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use mini::net::UnixStream;
use mini::runtime::Handle;
use mini::sync::{Barrier, Mutex, OnceCell, RwLock, Semaphore, oneshot};
use mini::task::{JoinHandle, yield_now};
use mini_tests::on_each_flavour;

use super::{End, at, hang, hang_in, task, until};

#[test]
fn two_locks_in_both_orders() {
    async fn program(_: End) {
        let (accounts, audit) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let both_have_one = Arc::new(Barrier::new(2));
        let (a, b, met) = (accounts.clone(), audit.clone(), both_have_one.clone());
        task("pay", async move {
            let _accounts = a.lock().await; // pay has
            met.wait().await;
            let _audit = b.lock().await; // pay waits
        });
        task("check", async move {
            let _audit = audit.lock().await; // check has
            both_have_one.wait().await;
            let _accounts = accounts.lock().await; // check waits
        });
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[
            &["MAYBE A CIRCLE", "none has made progress", "a deadlock, unless a lock has passed to another task"],
            &["\"pay\"", "waits for Lock", &at!("// pay waits"), "last taken by task", &at!("// check has")],
            &["\"check\"", "waits for Lock", &at!("// check waits"), "last taken by task", &at!("// pay has")],
        ];
        let json = hang(&builder, program, shown).to_json();
        let (_, circle) = json.split_once(r#""circles":[{"tasks":["#).expect("it was shown");
        let (circle, _) = circle.split_once('}').expect("it ends");
        assert!(
            circle.contains(r#""unchanged_seconds":"#)
                && circle.contains(r#""over_locks":true"#)
                && !circle.contains("waits_for_more"),
            "{circle}"
        );
    });
}

#[test]
fn a_lock_that_another_child_of_the_same_scope_has() {
    async fn program(end: End) {
        let lock = &Mutex::new(());
        mini::scope!(|scope| {
            scope.spawn(async move {
                let _guard = lock.lock().await;
                let _ = end.recv().await;
            });
            scope.spawn(async move { drop(lock.lock().await) });
        })
        .await;
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["MAYBE A CIRCLE", "unless one also waits for something else, or a lock has passed to another task"]];
        let json = hang(&builder, |end| async { mini::spawn(program(end)).await.unwrap() }, shown).to_json();
        assert!(json.contains(r#""circles":[{"tasks":["#) && json.contains(r#""waits_for_more":true"#), "{json}");
    });
}

#[test]
fn a_guard_kept_across_a_long_await() {
    async fn program(_: End) {
        let cache = Arc::new(Mutex::new(()));
        let (stream, _peer) = UnixStream::pair().unwrap();
        let (has, has_it) = oneshot::channel();
        let theirs = cache.clone();
        task("refresh", async move {
            let _guard = theirs.lock().await; // kept
            has.send(()).unwrap();
            let _ = stream.read(&mut [0; 8]).await; // too long
        });
        has_it.await.unwrap();
        for _ in 0..3 {
            let cache = cache.clone();
            mini::spawn(async move { drop(cache.lock().await) }); // requests
        }
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[
            &["3 tasks", &at!("// requests"), "waiting: Lock", "last taken by task", &at!("// kept")],
            &["\"refresh\"", "Read", &at!("// too long"), "unchanged since the dump before"],
        ];
        let dump = hang(&builder, program, shown);
        assert!(dump.circles().is_empty(), "{dump}");
    });
}

#[test]
fn a_lock_granted_to_a_future_that_is_not_polled() {
    async fn program(_: End) {
        let lock = Mutex::new(());
        let guard = lock.lock().await;
        task("waits", async {});
        let mut first = pin!(lock.lock()); // granted to this
        poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await; // as a `select!` that takes another branch does
        drop(guard);
        drop(lock.lock().await); // waits here
        drop(first.await);
    }
    on_each_flavour(|builder| {
        let in_a_task = |end| async move { task("lock", program(end)).await.unwrap() };
        let shown: &[&[&str]] = &[&[
            "\"lock\"",
            "waiting: Lock",
            &at!("// waits here"),
            "this task itself",
            &at!("// granted to this"),
            "not been polled since",
        ]];
        hang(&builder, in_a_task, shown);
    });
}

/// Once the holder has been polled, nothing is said of that, though others were waiting all the time.
#[test]
fn a_lock_granted_to_a_future_that_was_polled() {
    async fn program(_: End) {
        let lock = Arc::new(Mutex::new(()));
        let guard = lock.lock().await;
        for _ in 0..3 {
            let lock = lock.clone();
            let takes = async move {
                let _guard = lock.lock().await; // takes it
                pending::<()>().await
            };
            task("takes", takes);
        }
        while Handle::current().dump().tasks().iter().any(|task| task.waits_for().is_none()) {
            yield_now().await;
        }
        drop(guard);
        pending().await
    }
    on_each_flavour(|builder| {
        let takes = at!("// takes it");
        hang_in(builder.build().unwrap(), program, |handle| {
            let shown: &[&[&str]] = &[&["2 tasks \"takes\"", "waiting: Lock", &takes, "last taken by task", &takes]];
            while until(handle, shown).to_string().contains("not been polled") {
                std::thread::yield_now();
            }
        });
    });
}

/// A task that joined itself would end with a panic at once.
#[test]
fn two_tasks_that_join_each_other() {
    async fn program(_: End) {
        let (send, receive) = oneshot::channel::<JoinHandle<()>>();
        let first = task("first", async move { receive.await.unwrap().await.unwrap() }); // the first
        let second = task("second", async move { first.await.unwrap() }); // the second
        send.send(second).unwrap();
        pending().await
    }
    on_each_flavour(|builder| {
        let (first, second) = (at!("// the first"), at!("// the second"));
        let shown: &[&[&str]] = &[
            &["  CIRCLE", "a deadlock, most likely"],
            &["\"first\"", &first, "waits for Join of task", "spawned at", &second],
            &["\"second\"", &second, "waits for Join of task", "spawned at", &first],
        ];
        hang(&builder, program, shown);
    });
}

#[test]
fn permits_that_were_leaked() {
    async fn program(_: End) {
        let connections = Arc::new(Semaphore::new(2));
        let theirs = connections.clone();
        let leaks = task("leaks", async move {
            let permit = theirs.acquire_many(2).await.unwrap(); // leaked
            std::mem::forget(permit);
        });
        leaks.await.unwrap();
        task("next", async move { drop(connections.acquire().await) }); // waits for a permit
        pending().await
    }
    on_each_flavour(|builder| {
        let gone = "which has ended, or is no task of this runtime";
        let shown: &[&[&str]] =
            &[&["\"next\"", "Permit", &at!("// waits for a permit"), "last taken by", &at!("// leaked"), gone]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_writer_behind_a_reader_that_never_ends() {
    async fn program(end: End) {
        let config = Arc::new(RwLock::new(()));
        let (theirs, (has, has_it)) = (config.clone(), oneshot::channel());
        task("report", async move {
            let _guard = theirs.read().await; // reads
            has.send(()).unwrap();
            let _ = end.recv().await;
        });
        has_it.await.unwrap();
        let theirs = config.clone();
        task("reload", async move { drop(theirs.write().await) }); // writes
        while !mini::runtime::Handle::current().dump().to_string().contains("WriteLock") {
            mini::task::yield_now().await;
        }
        mini::spawn(async move { drop(config.read().await) });
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["\"reload\"", "WriteLock", &at!("// writes"), "last taken by task", &at!("// reads")]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_cell_whose_initialiser_asks_for_the_cell() {
    async fn program(_: End) {
        let cell = Arc::new(OnceCell::<u8>::new());
        let init = async move {
            let value = async { *cell.get_or_init(async || 1).await }; // asks again
            cell.get_or_init(|| value).await; // fills
        };
        let task = task("init", init);
        task.await.unwrap();
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["MAYBE A CIRCLE"], &["\"init\"", "Once", &at!("// asks again"), "this task itself", &at!("// fills")]];
        hang(&builder, program, shown);
    });
}

/// The guard of `std` is no guard of mini's: but the worker that waits for it is named, with the task.
#[test]
fn a_lock_of_std_kept_across_an_await() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let shown: &[&[&str]] = &[&["worker", "in task", "\"blocks\"", &at!("// waits for std")]];
        let lock = Arc::new(std::sync::Mutex::new(()));
        let here = lock.lock().unwrap(); // a task that holds it would not be `Send`: as a guard of a foreign lock is
        let theirs = lock.clone();
        let program = |_| async move {
            task("blocks", async move { drop(theirs.lock()) }); // waits for std
            pending().await
        };
        hang_in(runtime, program, |handle| {
            until(handle, shown);
            drop(here);
        });
    });
}
