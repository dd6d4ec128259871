//! Waiters that threads queue, move from waker to waker, leave and grant, all at once. For miri above all.

mod by_hand;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use by_hand::calling;
use mini_sync::{Barrier as TaskBarrier, Notify, OnceCell, RwLock, Semaphore, broadcast, watch};

const THREADS: usize = 3;
const ROUNDS: usize = if cfg!(miri) { 12 } else { 3_000 };

fn on_threads(run: impl Fn(usize) + Send + Sync + 'static) {
    let run = Arc::new((run, Barrier::new(THREADS)));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let run = run.clone();
            thread::spawn(move || {
                run.1.wait();
                (run.0)(n);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Polls with a waker that no other poll had.
fn poll_with_new_waker<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    let count = AtomicUsize::new(0);
    let waker = calling(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    future.poll(&mut Context::from_waker(&waker))
}

#[test]
fn waiters_take_move_and_cancel_and_no_permit_is_lost() {
    let semaphore = Arc::new(Semaphore::new(2));
    let shared = semaphore.clone();
    on_threads(move |n| {
        for round in 0..ROUNDS {
            let mut waiting = Box::pin(shared.acquire_many(1 + (n + round) as u32 % 2));
            for _ in 0..(n + round) % 4 {
                if let Poll::Ready(permit) = poll_with_new_waker(waiting.as_mut()) {
                    drop(permit.unwrap());
                    break;
                }
            }
        }
    });
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn a_waiter_goes_from_thread_to_thread_while_it_is_queued() {
    let (send, receive) = mpsc::channel();
    let poller = thread::spawn(move || {
        for mut waiting in receive {
            while poll_with_new_waker(Pin::as_mut(&mut waiting)).is_pending() {
                thread::yield_now();
            }
        }
    });
    for _ in 0..ROUNDS / 4 + 1 {
        let semaphore = Arc::new(Semaphore::new(0));
        let mut waiting = Box::pin(semaphore.clone().acquire_owned());
        assert!(poll_with_new_waker(waiting.as_mut()).is_pending());
        send.send(waiting).unwrap();
        semaphore.add_permits(1);
    }
    drop(send);
    poller.join().unwrap();
}

#[test]
fn readers_and_writers_that_give_up_leave_the_lock_free() {
    let lock = Arc::new(RwLock::new([0; 2]));
    let shared = lock.clone();
    on_threads(move |n| {
        for round in 0..ROUNDS {
            let polls = (n + round) % 4;
            if (n + round) % 3 == 0 {
                let mut writing = Box::pin(shared.write());
                let guard = (0..polls).find_map(|_| match poll_with_new_waker(writing.as_mut()) {
                    Poll::Ready(guard) => Some(guard),
                    Poll::Pending => None,
                });
                if let Some(mut guard) = guard {
                    guard.iter_mut().for_each(|one| *one += 1);
                    let guard = guard.downgrade();
                    assert_eq!(guard[0], guard[1]);
                }
            } else {
                let mut reading = Box::pin(shared.read());
                for _ in 0..polls {
                    if let Poll::Ready(guard) = poll_with_new_waker(reading.as_mut()) {
                        assert_eq!(guard[0], guard[1]);
                        break;
                    }
                }
            }
        }
    });
    assert!(lock.try_write().is_ok());
}

#[test]
fn waiters_for_notifications_come_move_and_leave() {
    let notify = Arc::new(Notify::new());
    let shared = notify.clone();
    on_threads(move |n| {
        for round in 0..ROUNDS {
            match (n + round) % 5 {
                0 => shared.notify_one(),
                1 => shared.notify_last(),
                2 => shared.notify_waiters(),
                polls => {
                    let mut waiting = Box::pin(shared.notified());
                    for _ in 1..polls {
                        if poll_with_new_waker(waiting.as_mut()).is_ready() {
                            break;
                        }
                    }
                }
            }
        }
    });
    // What is left is one permit at most.
    let mut rest = Box::pin(notify.notified());
    let _ = rest.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(Box::pin(notify.notified()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn waiters_at_a_barrier_come_and_give_up() {
    let barrier = Arc::new(TaskBarrier::new(2));
    let shared = barrier.clone();
    on_threads(move |n| {
        for round in 0..ROUNDS {
            let mut waiting = Box::pin(shared.wait());
            for _ in 0..(n + round) % 4 {
                if poll_with_new_waker(waiting.as_mut()).is_ready() {
                    break;
                }
            }
        }
    });
    assert!(format!("{barrier:?}").ends_with("arrived: 0 }"), "{barrier:?}");
}

#[test]
fn makers_of_a_value_fail_and_give_up() {
    let cell = Arc::new(OnceCell::<usize>::new());
    let shared = cell.clone();
    on_threads(move |n| {
        for round in 0..ROUNDS {
            let mut polls = 0;
            let make = || {
                std::future::poll_fn(move |_| {
                    polls += 1;
                    if polls == 1 { Poll::Pending } else { Poll::Ready(Err(())) }
                })
            };
            let mut making = Box::pin(shared.get_or_try_init(make));
            for _ in 0..(n + round) % 4 {
                if poll_with_new_waker(making.as_mut()).is_ready() {
                    break;
                }
            }
        }
    });
    cell.set(1).unwrap();
}

#[test]
fn waiters_for_values_and_messages_come_move_and_leave() {
    let (values, _) = watch::channel(0);
    let (messages, _) = broadcast::channel(2);
    let (sent_values, sent_messages) = (values.clone(), messages.clone());
    on_threads(move |n| {
        let (mut value, mut message) = (values.subscribe(), messages.subscribe());
        for round in 0..ROUNDS {
            match (n + round) % 5 {
                0 => values.send(round).unwrap(),
                1 => drop(messages.send(round)),
                2 => message = messages.subscribe(),
                polls => {
                    let mut changing = Box::pin(value.changed());
                    let mut receiving = Box::pin(message.recv());
                    for _ in 1..polls {
                        let _ = poll_with_new_waker(changing.as_mut());
                        let _ = poll_with_new_waker(receiving.as_mut());
                    }
                }
            }
        }
    });
    assert!(sent_messages.is_empty() && sent_values.is_closed());
}
