//! The promises of a shared task's state, under loom.

use super::*;
use crate::primitives::atomic::{AtomicU32, Ordering::Acquire};
use loom::{sync::Arc, thread};

/// What the last poll saw, once the state has gone idle. The task yields `yields` times first.
fn poll_until_idle((state, data): &(State, AtomicU32), mut yields: u32) -> u32 {
    loop {
        let _ = state.start();
        let seen = data.load(Relaxed);
        if yields > 0 {
            yields -= 1;
            assert_eq!(state.finish_yielded(), OnPending::Requeue);
        } else if let OnPending::Idle = state.finish_pending() {
            return seen;
        }
    }
}

/// Fails when `wake` (but for the exchange of an idle task), `start`'s exchange or `finish_pending` is Relaxed, or when
/// `wake` returns early for a task that is already queued.
#[test]
fn a_wake_is_never_lost_and_publishes_what_came_before_it() {
    woken_task(|state| state.wake() == OnWake::Enqueue);
    woken_task(|state| state.wake_owing() || state.wake() == OnWake::Enqueue);
}

fn woken_task(wake: fn(&State) -> bool) {
    loom::model(move || {
        let task = Arc::new((State::shared(), AtomicU32::new(0)));
        let queued = Arc::new(AtomicU32::new(0));
        let (other, queue) = (task.clone(), queued.clone());
        let waker = thread::spawn(move || {
            other.1.store(1, Relaxed);
            if wake(&other.0) {
                queue.swap(1, Release);
            }
        });
        let mut seen = poll_until_idle(&task, 1);
        if queued.swap(0, Acquire) == 1 {
            seen = poll_until_idle(&task, 0);
            assert_eq!(seen, 1);
        }
        waker.join().unwrap();
        if queued.swap(0, Acquire) == 1 {
            seen = poll_until_idle(&task, 0);
        }
        assert_eq!(seen, 1);
    });
}

/// Fails when `finish_pending` or `finish_yielded` forgets to check CANCELLED: no side would drop the future.
#[test]
fn a_cancelled_task_is_dropped_by_exactly_one_side() {
    cancelled_task(State::finish_pending);
    cancelled_task(|state| match state.finish_yielded() {
        OnPending::Requeue => match state.start().0 {
            OnStart::Drop => OnPending::Drop,
            OnStart::Poll => state.finish_pending(),
        },
        other => other,
    });
}

fn cancelled_task(finish: impl Fn(&State) -> OnPending + Send + Sync + 'static) {
    loom::model(move || {
        let state = Arc::new(State::shared());
        let other = state.clone();
        let canceller = thread::spawn(move || other.cancel());
        let mut drops = 0;
        let poll = |drops: &mut u32| match state.start().0 {
            OnStart::Drop => {
                *drops += 1;
                state.finish_done();
            }
            OnStart::Poll => {
                if let OnPending::Drop = finish(&state) {
                    *drops += 1;
                    state.finish_done();
                }
            }
        };
        poll(&mut drops);
        if let OnWake::Enqueue = canceller.join().unwrap() {
            poll(&mut drops);
        }
        assert_eq!(drops, 1);
    });
}

/// Two foreign threads wake an owned task while its owner drains, starts and finishes a poll.
///
/// Fails when `take_remote` is a load and a store instead of a swap, or `notify` is Relaxed.
#[test]
fn a_remote_wake_reaches_the_owner_exactly_once_or_more_but_never_zero_times() {
    loom::model(|| {
        let task = Arc::new((State::owned(), AtomicU32::new(0), AtomicU32::new(0)));
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || {
                    task.1.fetch_add(1, Relaxed); // what the wake announces
                    if let OnRemote::Post = task.0.remote_wake() {
                        task.2.fetch_add(1, Release); // the inbox
                    }
                })
            })
            .collect();
        let state = &task.0;
        let mut seen = 0;
        let mut poll = || {
            let _ = state.start();
            seen = task.1.load(Relaxed);
            let _ = state.finish_pending();
        };
        poll();
        let drain = |poll: &mut dyn FnMut()| {
            if task.2.swap(0, AcqRel) > 0 && state.take_remote() == OnWake::Enqueue {
                poll();
            }
        };
        drain(&mut poll);
        for waker in wakers {
            waker.join().unwrap();
        }
        drain(&mut poll);
        assert_eq!(seen, 2);
    });
}

/// Another thread cancels an owned task while its owner polls it: the future is dropped once.
///
/// Planted: `take_remote` that looks at the bits, and clears them by a store.
#[test]
fn a_remote_cancel_drops_an_owned_task_once() {
    loom::model(|| {
        let task = Arc::new((State::owned(), AtomicU32::new(0)));
        let others = [State::remote_wake as fn(&State) -> OnRemote, State::remote_cancel].map(|notify| {
            let task = task.clone();
            thread::spawn(move || {
                if notify(&task.0) == OnRemote::Post {
                    task.1.fetch_add(1, Release); // the inbox
                }
            })
        });
        let (state, mut drops) = (&task.0, 0);
        let mut poll = || {
            let is_cancelled = state.start().0 == OnStart::Drop || state.finish_pending() == OnPending::Drop;
            if is_cancelled {
                drops += 1;
                state.finish_done();
            }
        };
        let mut drain = || {
            for _ in 0..task.1.swap(0, AcqRel) {
                if state.take_remote() == OnWake::Enqueue {
                    poll();
                }
            }
        };
        let _ = state.start();
        let _ = state.finish_pending();
        drain();
        for other in others {
            other.join().unwrap();
        }
        drain();
        assert_eq!(drops, 1);
    });
}

/// A task ends while another thread wakes it: what is posted then finds it done, and nothing is posted later.
///
/// Planted: `finish_done` that leaves the remote word as it is; `take_remote` that does not ask whether it is done.
#[test]
fn a_finished_task_is_posted_once_at_most() {
    loom::model(|| {
        let task = Arc::new(State::owned());
        let other = task.clone();
        let waker = thread::spawn(move || other.remote_wake() == OnRemote::Post);
        let _ = task.start();
        task.finish_done();
        assert_eq!(task.remote_wake(), OnRemote::Nothing);
        if waker.join().unwrap() {
            assert_eq!(task.take_remote(), OnWake::Nothing);
        }
        assert_eq!(task.remote_wake(), OnRemote::Nothing);
    });
}
