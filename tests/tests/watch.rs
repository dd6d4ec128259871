//! Who looks for events in the place of another: busy workers in that of the one who waits for them, the watch in that of
//! owners who are stuck in long polls.
//!
//! `epoll_wait` is stood in for here, to hold the threads of one test at chosen places; it does what it always does.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::{slice, thread};

use mini::task::yield_now;
use mini::time::{Duration, sleep};
use mini_tests::net_support::udp;
use mini_tests::{Counts, LIMIT, multi_thread, poll_with, until, within};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};

/// What has happened in `a_busy_worker_takes_no_bell_away`, in this order.
mod step {
    pub(super) const SOCKET: u8 = 1;
    pub(super) const BUSY_ONE_LOOKS: u8 = 2;
    pub(super) const OWNER_WAITS: u8 = 3;
    pub(super) const RUNG: u8 = 4;
    pub(super) const BUSY_ONE_HAS_LOOKED: u8 = 5;
}

static STEP: AtomicU8 = AtomicU8::new(0);

fn wait_for(step: u8) {
    while STEP.load(SeqCst) < step {
        thread::yield_now();
    }
}

/// Makes the step, if it is the next one.
fn make(step: u8) -> bool {
    STEP.compare_exchange(step - 1, step, SeqCst, SeqCst).is_ok()
}

/// Stands in for epoll_wait(2) of the C library.
///
/// # Safety
///
/// As there: `list` has room for `room` events.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(epoll: i32, list: *mut MaybeUninit<Event>, room: i32, millis: i32) -> i32 {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let is_looking = name == "held-1" && millis == 0 && make(step::BUSY_ONE_LOOKS);
    if is_looking {
        wait_for(step::RUNG);
    }
    if name == "owner" && millis != 0 && make(step::OWNER_WAITS) {
        wait_for(step::BUSY_ONE_HAS_LOOKED);
    }
    // SAFETY: the caller has the descriptor open for the time of the call.
    let epoll = unsafe { BorrowedFd::borrow_raw(epoll) };
    // SAFETY: the caller says so.
    let list = unsafe { slice::from_raw_parts_mut(list, room as usize) };
    let limit = (millis >= 0).then(|| Timespec { tv_sec: 0, tv_nsec: i64::from(millis) * 1_000_000 });
    let filled = loop {
        match epoll::wait(epoll, &mut *list, limit.as_ref()) {
            Ok((filled, _)) => break filled.len() as i32,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("epoll_wait: {error}"),
        }
    };
    if is_looking {
        assert!(make(step::BUSY_ONE_HAS_LOOKED));
    }
    filled
}

/// A busy worker looks for events; then the owner of the other core goes to wait for them, and is rung for; the busy one hears
/// that, not the owner.
#[test]
fn a_busy_worker_takes_no_bell_away() {
    within(LIMIT, || {
        let runtime = multi_thread(2).thread_name("held").build().unwrap();
        let busy = runtime.spawn(until(|| STEP.load(SeqCst) >= step::BUSY_ONE_LOOKS));
        let place = Mutex::new(None::<Waker>);
        thread::scope(|scope| {
            scope.spawn(|| {
                wait_for(step::OWNER_WAITS);
                place.lock().unwrap().take().unwrap().wake();
                assert!(make(step::RUNG));
            });
            let owner = thread::Builder::new().name("owner".to_owned());
            let body = || {
                runtime.block_on(async {
                    let socket = udp().await;
                    let mut buf = [0; 8];
                    let mut receive = pin!(socket.recv(&mut buf));
                    assert!(receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                    let mut is_woken = false;
                    poll_fn(|cx| {
                        if std::mem::replace(&mut is_woken, true) {
                            return Poll::Ready(());
                        }
                        *place.lock().unwrap() = Some(cx.waker().clone());
                        assert!(make(step::SOCKET));
                        wait_for(step::BUSY_ONE_LOOKS);
                        Poll::Pending
                    })
                    .await;
                })
            };
            owner.spawn_scoped(scope, body).unwrap().join().unwrap();
        });
        runtime.block_on(busy).unwrap();
    });
}

/// Each owner goes on counting its runs where the last one stopped: the watch adds up what there is between two looks.
#[test]
fn the_watch_outlives_any_number_of_owners() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let busy = runtime.spawn(until(move || is_over.load(SeqCst)));
        for _ in 0..100 {
            runtime.block_on(async {
                for _ in 0..100 {
                    yield_now().await;
                }
                // Only the watch can fire it.
                let (mut nap, fired) = (sleep(Duration::from_micros(100)), Counts::new());
                if poll_with(&mut nap, &fired).is_pending() {
                    while fired.wakes() == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        over.store(true, SeqCst);
        runtime.block_on(busy).unwrap();
        drop(runtime); // waits for the watch, which must be there to end
    });
}
