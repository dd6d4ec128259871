//! What `Debug` says of where a task waits: the leaf of its own last poll, or that it is unknown.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

use mini::net::UnixStream;
use mini::task::{JoinHandle, JoinSet, block_in_place, yield_now};
use mini::time::{Duration, Instant, interval_at, sleep, timeout};
use mini_tests::{line_of, multi_thread, on_each_flavour, oneshot, until};

const LONG: Duration = Duration::from_secs(3600);

/// What stands behind `last_wait`, once `is_meant`.
async fn last_wait<T>(task: &JoinHandle<T>, is_meant: impl Fn(&str) -> bool) -> String {
    let mut seen = String::new();
    let look = || {
        let text = format!("{task:?}");
        seen = text.split("last_wait: ").nth(1).unwrap_or_default().trim_end_matches([' ', '}', ')']).to_owned();
        is_meant(&seen)
    };
    until(look).await;
    seen
}

/// Polls `future` once, and goes on.
async fn polled_once<F: Future + Unpin>(future: &mut F) {
    poll_fn(|cx| {
        assert!(pin!(&mut *future).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

fn place(mark: &str) -> String {
    format!("{}:{}:", file!(), line_of(include_str!("last_wait.rs"), mark))
}

#[test]
fn the_wait_of_block_on_is_not_taken_for_that_of_a_task() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut own = sleep(LONG);
            let task = mini::spawn(pending::<()>());
            polled_once(&mut own).await;
            assert_eq!(last_wait(&task, |wait| !wait.is_empty()).await, "unknown");
        });
    });
}

#[test]
fn a_wait_for_something_foreign_takes_the_place_of_the_former() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let (a, b) = UnixStream::pair().unwrap();
            let (send, receive) = oneshot::<()>();
            let task = mini::spawn(async move {
                a.read(&mut [0]).await.unwrap(); // the read
                receive.await;
            });
            let read = last_wait(&task, |wait| !wait.is_empty()).await;
            assert!(read.starts_with("Read on fd ") && read.contains(&place("// the read")), "{read}");
            b.write_all(b"x").await.unwrap();
            assert_eq!(last_wait(&task, |wait| wait != read).await, "unknown");
            send.send(());
            task.await.unwrap();
        });
    });
}

#[test]
fn a_time_limit_does_not_hide_what_it_limits() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let said = |wait: &str| !wait.is_empty();
            let (a, _b) = UnixStream::pair().unwrap();
            let task = mini::spawn(async move {
                let mut buf = [0];
                let read = a.read(&mut buf); // limited
                timeout(LONG, read).await.is_ok()
            });
            let wait = last_wait(&task, said).await;
            assert!(wait.starts_with("Read on fd ") && wait.contains(&place("// limited")), "{wait}");
            assert!(wait.ends_with(", or a timer"), "{wait}");

            let joined = mini::spawn(pending::<()>());
            let start = format!("Join of task {}, spawned at ", joined.id());
            let wait = last_wait(&mini::spawn(timeout(LONG, joined)), said).await;
            assert!(wait.starts_with(&start) && wait.ends_with(", or a timer"), "{wait}");

            let line = line!() + 1;
            let task = mini::spawn(timeout(LONG, timeout(LONG * 2, sleep(LONG))));
            let wait = last_wait(&task, said).await;
            assert!(wait.starts_with(&format!("Timer at {}:{line}:", file!())), "{wait}");

            let limit = timeout(LONG, pending::<()>()); // the limit
            let wait = last_wait(&mini::spawn(timeout(LONG, limit)), said).await;
            assert!(wait.starts_with(&format!("unknown, with a time limit at {}", place("// the limit"))), "{wait}");
        });
    });
}

#[test]
fn a_leaf_that_was_dropped_is_not_waited_for() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let (a, _b) = UnixStream::pair().unwrap();
            let task = mini::spawn(async move {
                polled_once(&mut sleep(LONG)).await;
                polled_once(&mut a.read(&mut [0])).await;
                polled_once(&mut mini::spawn(pending::<()>())).await;
                polled_once(&mut mini::task::idle()).await;
                polled_once(&mut interval_at(Instant::now() + LONG, LONG).tick()).await;
                let (mut b, mut c) = UnixStream::pair().unwrap();
                polled_once(&mut mini::io::copy(&mut b, &mut c)).await;
                polled_once(&mut mini::io::copy_bidirectional(&mut b, &mut c)).await;
                pending::<()>().await
            });
            assert_eq!(last_wait(&task, |wait| !wait.is_empty()).await, "unknown");

            let (a, _b) = UnixStream::pair().unwrap();
            let task = mini::spawn(async move {
                polled_once(&mut a.read(&mut [0])).await;
                sleep(LONG).await; // what is left
            });
            let wait = last_wait(&task, |wait| !wait.is_empty()).await;
            assert!(wait.starts_with(&format!("Timer at {}", place("// what is left"))), "{wait}");
        });
    });
}

#[test]
fn what_runs_in_block_in_place_leaves_the_wait_of_the_task_alone() {
    multi_thread(2).build().unwrap().block_on(async {
        let (a, _b) = UnixStream::pair().unwrap();
        let other_loop = || block_in_place(|| mini::block_on(async { polled_once(&mut sleep(LONG)).await }));
        let task = mini::spawn(async move {
            let mut buf = [0];
            let mut read = a.read(&mut buf); // kept
            polled_once(&mut read).await;
            other_loop();
            pending::<()>().await
        });
        let wait = last_wait(&task, |wait| !wait.is_empty()).await;
        assert!(wait.starts_with("Read on fd ") && wait.contains(&place("// kept")), "{wait}");

        let task = mini::spawn(async move {
            let mut inner = Box::pin(async { polled_once(&mut sleep(LONG)).await });
            block_in_place(|| mini::block_on(&mut inner));
            pending::<()>().await
        });
        assert_eq!(last_wait(&task, |wait| !wait.is_empty()).await, "unknown");
    });
}

#[test]
fn who_waits_for_a_whole_set_shows_the_line() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let line = line!() + 1;
            let task = mini::spawn(async { JoinSet::from_iter([pending::<()>()]).join_all().await });
            let wait = last_wait(&task, |wait| !wait.is_empty()).await;
            assert!(wait.starts_with(&format!("Join of one task at {}:{line}:", file!())), "{wait}");
        });
    });
}

#[test]
fn a_task_that_yields_waits_for_nothing() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let task = mini::spawn(async {
                loop {
                    yield_now().await;
                }
            });
            assert_eq!(last_wait(&task, |wait| !wait.is_empty()).await, "nothing, as it has yielded");
        });
    });
}
