//! What the error of a time limit says: what its own future waited for, and where.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use futures::future::{Either, join, select};
use mini::net::UnixStream;
use mini::runtime::Builder;
use mini::task::block_in_place;
use mini::time::{Duration, Instant, error::Elapsed, pause, sleep, timeout, timeout_at};
use mini_tests::{LIMIT, line_of, multi_thread, within};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

/// Runs `body` with a paused clock.
fn paused<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            body().await;
        });
    });
}

fn place(mark: &str) -> String {
    format!("{}:{}:", file!(), line_of(include_str!("elapsed.rs"), mark))
}

/// What stands behind "waiting for".
fn waited(elapsed: &Elapsed) -> String {
    elapsed.to_string().split(" while waiting for ").nth(1).unwrap_or_default().to_owned()
}

/// The output of `future`, which `neighbour` is polled before, in each poll of the task.
async fn beside<N: Future, F: Future>(neighbour: N, future: F) -> F::Output {
    match select(Box::pin(neighbour), Box::pin(future)).await {
        Either::Right((output, _)) => output,
        Either::Left(_) => panic!("the neighbour waits for ever"),
    }
}

#[test]
fn it_names_the_socket_and_the_line() {
    paused(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        let mut buf = [0];
        let read = a.read(&mut buf); // the read
        let elapsed = timeout(5 * SECOND, read).await.unwrap_err(); // its limit
        let text = elapsed.to_string();
        assert!(text.starts_with("deadline has elapsed after 5s while waiting for Read on fd "), "{text}");
        assert!(text.contains(&place("// the read")), "{text}");
        assert!(elapsed.location().to_string().starts_with(&place("// its limit")), "{elapsed:?}");
        assert!(elapsed.waited_for().unwrap().location().to_string().starts_with(&place("// the read")));
        assert_eq!(io::Error::from(elapsed).to_string(), text);
    });
}

#[test]
fn it_names_the_spawn_of_the_task_that_was_joined() {
    paused(|| async {
        let task = mini::spawn(pending::<()>()); // the task
        let elapsed = timeout(SECOND, task).await.unwrap_err();
        let text = elapsed.to_string();
        assert!(text.contains("waiting for Join of task ") && text.contains(&place("// the task")), "{text}");
    });
}

#[test]
fn what_others_have_made_is_unknown_whatever_the_neighbours_wait_for() {
    paused(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        let (_sender, receiver) = async_channel::bounded::<()>(1);
        let foreign = async {
            let limited = timeout(SECOND, receiver.recv()); // no more is known
            limited.await
        };
        let mut buf = [0];
        let neighbours = join(a.read(&mut buf), sleep(LONG));
        let elapsed = beside(neighbours, foreign).await.unwrap_err();
        assert_eq!(elapsed.waited_for(), None);
        let unknown = "something unknown, with a time limit at ";
        assert!(waited(&elapsed).starts_with(&format!("{unknown}{}", place("// no more is known"))), "{elapsed}");
    });
}

#[test]
fn it_tells_of_children_and_signals() {
    paused(|| async {
        let mut child = mini::process::Command::new("sleep").arg("1000").kill_on_drop(true).spawn().unwrap();
        let text = timeout(SECOND, child.wait()).await.unwrap_err().to_string(); // the child
        assert!(text.contains(" while waiting for Child ") && text.contains(&place("// the child")), "{text}");

        let mut hangups = mini::signal::unix::signal(mini::signal::unix::SignalKind::hangup()).unwrap();
        let text = timeout(SECOND, hangups.recv()).await.unwrap_err().to_string(); // the signal
        assert!(text.contains(" while waiting for Signal ") && text.contains(&place("// the signal")), "{text}");
    });
}

/// The call that is known is in the crate that has the trait.
#[test]
fn what_waits_in_another_crate_is_told_with_the_line_of_the_limit() {
    paused(|| async {
        let (mut a, _b) = UnixStream::pair().unwrap();
        let mut buf = [0; 4];
        let limited = timeout(SECOND, mini::io::AsyncReadExt::read_exact(&mut a, &mut buf)); // through a trait
        let text = limited.await.unwrap_err().to_string();
        let limit = format!(", with a time limit at {}:", file!());
        assert!(text.starts_with("deadline has elapsed after 1s while waiting for Read on fd "), "{text}");
        assert!(text.contains(&limit), "{text}");
    });
}

#[test]
fn a_wait_that_is_over_is_not_told_of() {
    paused(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let limited = timeout(SECOND, async {
            let mut buf = [0];
            timeout(SECOND / 2, a.read(&mut buf)).await.unwrap_err();
            b.write_all(b"x").await.unwrap();
            a.read(&mut buf).await.unwrap();
            pending::<()>().await;
        });
        assert!(waited(&limited.await.unwrap_err()).starts_with("something unknown"));
    });
}

#[test]
fn a_wait_beside_a_timer_is_told_of_first() {
    paused(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        let mut buf = [0];
        let limited = timeout_at(Instant::now() + SECOND, timeout(LONG, a.read(&mut buf)));
        let text = limited.await.unwrap_err().to_string();
        assert!(text.starts_with("deadline has elapsed while waiting for Read on fd "), "{text}");
        assert!(text.ends_with(", or a timer"), "{text}");
    });
}

#[test]
fn what_is_polled_in_block_in_place_is_no_part_of_the_wait() {
    within(LIMIT, || {
        multi_thread(2).build().unwrap().block_on(async {
            let limited = timeout(
                Duration::ZERO,
                poll_fn(|_| -> Poll<()> {
                    block_in_place(|| {
                        mini::block_on(async {
                            let (a, _b) = UnixStream::pair().unwrap();
                            assert!(timeout(Duration::ZERO, a.read(&mut [0])).await.is_err());
                        });
                    });
                    Poll::Pending
                }),
            );
            let (a, _b) = UnixStream::pair().unwrap();
            let elapsed = beside(a.read(&mut [0]), limited).await.unwrap_err();
            assert_eq!(elapsed.waited_for(), None, "neither the one before nor the one in there");
        });
    });
}

#[test]
fn what_a_runtime_polls_inside_is_no_part_of_the_wait() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let limited = timeout(
            Duration::ZERO,
            poll_fn(|_| -> Poll<()> {
                runtime.block_on(async {
                    let (a, _b) = UnixStream::pair().unwrap();
                    let mut buf = [0];
                    let mut read = a.read(&mut buf);
                    assert!(poll_fn(|cx| Poll::Ready(pin!(&mut read).poll(cx).is_pending())).await);
                    std::mem::forget(read); // and with it, its note
                });
                Poll::Pending
            }),
        );
        assert_eq!(futures_lite::future::block_on(limited).unwrap_err().waited_for(), None);
    });
}

#[test]
fn all_errors_are_equal() {
    paused(|| async {
        assert_eq!(timeout(SECOND, sleep(LONG)).await, Err(Elapsed::new()));
        assert_eq!(Elapsed::new(), Elapsed::default());
        assert_eq!(Elapsed::new().location().line(), line!());
        assert_eq!(Elapsed::default().location().line(), line!());
    });
}
