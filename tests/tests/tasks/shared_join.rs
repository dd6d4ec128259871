//! Several that await one task: all are woken, each gets the output, and nothing is left behind.

use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use mini::runtime::Builder;
use mini::task::{JoinError, SharedJoinHandle};
use mini_tests::net_support::in_each_runtime;
use mini_tests::{Counts, LIMIT, caught, oneshot, poll_with, until, within};

#[test]
fn all_are_woken_and_get_the_output() {
    in_each_runtime(|| async {
        let (send, receive) = oneshot::<String>();
        let task = mini::spawn(async move { receive.await.unwrap() }).shared();
        let joiners: Vec<_> = (0..10).map(|_| mini::spawn(task.clone())).collect();
        let elsewhere: Vec<_> = (0..2)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || mini::block_on(task))
            })
            .collect();
        mini::task::yield_now().await;
        assert!(!task.is_finished());
        send.send("done".to_owned());
        for joiner in joiners {
            assert_eq!(joiner.await.unwrap().unwrap(), "done");
        }
        for joiner in elsewhere {
            let joined = mini::spawn_blocking(|| joiner.join().unwrap()).await.unwrap();
            assert_eq!(joined.unwrap(), "done");
        }
        let mut late = task.clone();
        assert_eq!((&mut late).await.unwrap(), "done");
        assert_eq!(late.await.unwrap(), "done", "and again");
    });
}

#[test]
fn each_waker_is_woken_once_and_those_of_dropped_handles_are_not() {
    in_each_runtime(|| async {
        let (send, receive) = oneshot::<u32>();
        let task = mini::spawn(async move { receive.await.unwrap() }).shared();
        let counts: Vec<_> = (0..3).map(|_| Counts::new()).collect();
        let mut handles: Vec<_> = (0..3).map(|_| task.clone()).collect();
        for (handle, counts) in handles.iter_mut().zip(&counts) {
            assert!(poll_with(handle, counts).is_pending());
            assert!(poll_with(handle, counts).is_pending());
        }
        drop(handles.remove(1));
        send.send(7);
        assert_eq!(task.await.unwrap(), 7);
        until(|| counts[2].wakes() > 0).await; // the task may wake one waiter after the other
        assert_eq!(counts.iter().map(|counts| counts.wakes()).collect::<Vec<_>>(), [1, 0, 1]);
        for (mut handle, counts) in handles.into_iter().zip([&counts[0], &counts[2]]) {
            let Poll::Ready(output) = poll_with(&mut handle, counts) else { panic!("it is over") };
            assert_eq!(output.unwrap(), 7);
        }
    });
}

#[test]
fn a_panic_or_an_abort_reaches_all() {
    in_each_runtime(|| async {
        let panics: SharedJoinHandle<()> = mini::spawn(async { panic!("on purpose") }).shared();
        let others = [panics.clone(), panics.clone()];
        assert!(panics.await.unwrap_err().is_panic());
        for other in others {
            let error = other.await.unwrap_err();
            assert!(error.to_string().contains("on purpose") && error.location().file() == file!());
        }
        let never = mini::spawn(std::future::pending::<()>()).shared();
        let joiner = mini::spawn(never.clone());
        never.abort();
        assert!(never.await.unwrap_err().is_cancelled());
        assert!(joiner.await.unwrap().unwrap_err().is_cancelled());
    });
}

/// Whether somebody has waited before makes no difference: the waker that is left with the task keeps no handle.
#[test]
fn when_all_are_dropped_the_task_is_detached() {
    within(LIMIT, || {
        for is_polled in [false, true] {
            let (told, errors) = mpsc::channel();
            let mut builder = Builder::new_current_thread();
            builder.on_task_panic(move |error| drop(told.send(error.to_string())));
            builder.build().unwrap().block_on(async {
                let (send, receive) = oneshot::<()>();
                let mut task = mini::spawn(async move {
                    receive.await;
                    panic!("unseen")
                })
                .shared();
                let other: SharedJoinHandle<()> = task.clone();
                if is_polled {
                    assert!(poll_with(&mut task, &Counts::new()).is_pending());
                }
                drop((task, other));
                send.send(());
                mini::task::yield_now().await;
            });
            assert!(errors.try_recv().unwrap().contains("unseen"));
        }
    });
}

#[test]
fn a_task_that_waits_for_itself_is_told() {
    within(LIMIT, || {
        mini::block_on(async {
            let (send, receive) = oneshot::<SharedJoinHandle<()>>();
            let task = mini::spawn(async move {
                let mut own = receive.await.unwrap();
                let seen = caught(|| poll_with(&mut own, &Counts::new()).is_ready());
                assert!(seen.message.contains("waits for itself"), "{}", seen.message);
            })
            .shared();
            send.send(task.clone());
            task.await.unwrap();
        });
    });
}

/// Each costs as much as the first: what looks for a waiter among all others takes minutes here.
#[test]
fn a_crowd_may_wait_for_one_task() {
    within(LIMIT, || {
        mini::block_on(async {
            let (send, receive) = oneshot::<u32>();
            let task = mini::spawn(async move { receive.await.unwrap() }).shared();
            let counts = Counts::new();
            let mut handles: Vec<_> = (0..300_000).map(|_| task.clone()).collect();
            for _ in 0..2 {
                assert!(handles.iter_mut().all(|handle| poll_with(handle, &counts).is_pending()));
            }
            handles.truncate(200_000);
            send.send(7);
            assert_eq!(task.await.unwrap(), 7);
            assert_eq!(counts.wakes(), 200_000);
            for handle in handles {
                assert_eq!(handle.await.unwrap(), 7);
            }
            assert_eq!(std::sync::Arc::strong_count(&counts), 1, "no waker is left");
        });
    });
}

/// A waker whose destructor asks the handle, which is shared by then.
struct Asks(Mutex<Option<SharedJoinHandle<()>>>);

impl Wake for Asks {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Asks {
    fn drop(&mut self) {
        let handle = self.0.get_mut().unwrap().take();
        let _ = handle.map(|handle| handle.is_finished());
    }
}

#[test]
fn the_waker_of_a_poll_before_the_sharing_is_dropped_without_a_lock() {
    within(LIMIT, || {
        mini::block_on(async {
            let mut handle = mini::spawn(std::future::pending::<()>());
            let asks = Arc::new(Asks(Mutex::new(None)));
            let waker = Waker::from(asks.clone());
            assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
            let mut shared = handle.shared();
            *asks.0.lock().unwrap() = Some(shared.clone());
            drop((asks, waker)); // a clone of it is left where the poll has left one
            assert!(Pin::new(&mut shared).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            shared.abort();
        })
    });
}

/// Prints the error that is printed into it.
struct Again(Arc<JoinError>, String);

impl std::fmt::Write for Again {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.1 = format!("{text} {}", self.0);
        Ok(())
    }
}

#[test]
fn an_error_may_be_printed_while_it_is_printed() {
    within(LIMIT, || {
        mini::block_on(async {
            let error = mini::spawn(async { panic!("loud") }).shared().await.unwrap_err();
            let mut again = Again(error.clone(), String::new());
            std::fmt::write(&mut again, format_args!("{error}")).unwrap();
            assert!(again.1.ends_with("panicked: loud"), "{}", again.1);
        })
    });
}
