//! Who looks for events in the place of another: busy workers, and those about to rest, in that of the one who waits
//! for them, the monitor in that of owners who are stuck in long polls.
//!
//! `epoll_wait` is stood in for here, to hold the threads of one test at chosen places; it does what it always does. So
//! this is for the epoll backend alone.

#![cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#![allow(unsafe_code)]

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::{slice, thread};

use mini::net::UdpSocket;
use mini::runtime::Runtime;
use mini::task::{Idle, block_in_place, idle, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::net_support::udp;
use mini_tests::{Counts, LIMIT, multi_thread, oneshot, poll_with, until, within};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};

/// What has happened in a test, in this order.
mod step {
    pub(super) const SOCKET: u8 = 1;
    pub(super) const OTHER_LOOKS: u8 = 2;
    pub(super) const OWNER_WAITS: u8 = 3;
    pub(super) const RUNG: u8 = 4;
    pub(super) const OTHER_HAS_LOOKED: u8 = 5;
}

/// A test, and its threads by name: one looks for events in the place of the other.
struct Script {
    other: &'static str,
    owner: &'static str,
    step: AtomicU8,
}

static BUSY: Script = Script { other: "held-1", owner: "owner", step: AtomicU8::new(0) };
static ALONE: Script = Script { other: "alone-monitor", owner: "sole owner", step: AtomicU8::new(0) };
static SLOW: Script = Script { other: "nobody", owner: "slow", step: AtomicU8::new(step::OTHER_LOOKS) };
static CALLED: Script = Script { other: "nobody", owner: "called", step: AtomicU8::new(step::OTHER_LOOKS) };
static CALM: Script = Script { other: "nobody", owner: "calm", step: AtomicU8::new(step::OTHER_LOOKS) };

/// Counts the looks of the thread of this name.
const COUNTED: &str = "counted";
static LOOKS: AtomicU8 = AtomicU8::new(0);

impl Script {
    fn is_at(&self, step: u8) -> bool {
        self.step.load(SeqCst) >= step
    }

    fn wait_for(&self, step: u8) {
        while !self.is_at(step) {
            thread::yield_now();
        }
    }

    /// Makes the step, if it is the next one.
    fn make(&self, step: u8) -> bool {
        self.step.compare_exchange(step - 1, step, SeqCst, SeqCst).is_ok()
    }

    /// Holds nobody any longer.
    fn finish(&self) {
        self.step.store(step::OTHER_HAS_LOOKED, SeqCst);
    }
}

/// Stands in for epoll_wait(2) of the C library.
///
/// # Safety
///
/// As there: `list` has room for `room` events.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(epoll: i32, list: *mut MaybeUninit<Event>, room: i32, millis: i32) -> i32 {
    let name = thread::current().name().unwrap_or_default().to_owned();
    if name == COUNTED && millis == 0 {
        LOOKS.fetch_add(1, SeqCst);
    }
    let script =
        [&BUSY, &ALONE, &SLOW, &CALLED, &CALM].into_iter().find(|script| script.other == name || script.owner == name);
    let looking = script.filter(|script| name == script.other && millis == 0 && script.make(step::OTHER_LOOKS));
    if let Some(script) = looking {
        script.wait_for(step::RUNG);
    }
    if let Some(script) = script.filter(|script| name == script.owner && millis != 0 && script.make(step::OWNER_WAITS))
    {
        script.wait_for(step::OTHER_HAS_LOOKED);
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
    if let Some(script) = looking {
        assert!(script.make(step::OTHER_HAS_LOOKED));
    }
    filled
}

/// Runs a future that has a socket on the owner, and wakes it from another thread while that waits, and another one
/// looks. `waits` is called once in between.
fn wake_while_another_looks(script: &'static Script, runtime: &Runtime, waits: impl Fn() + Sync) {
    let place = Mutex::new(None::<Waker>);
    thread::scope(|scope| {
        scope.spawn(|| {
            script.wait_for(step::OWNER_WAITS);
            place.lock().unwrap().take().unwrap().wake();
            assert!(script.make(step::RUNG));
        });
        let owner = thread::Builder::new().name(script.owner.to_owned());
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
                    assert!(script.make(step::SOCKET));
                    waits();
                    Poll::Pending
                })
                .await;
            })
        };
        owner.spawn_scoped(scope, body).unwrap().join().unwrap();
    });
}

/// A busy worker looks for events; then the owner of the other core goes to wait for them, and is rung for; the busy
/// one hears that, not the owner.
#[test]
fn a_busy_worker_takes_no_bell_away() {
    within(LIMIT, || {
        let runtime = multi_thread(2).thread_name("held").build().unwrap();
        wake_while_another_looks(&BUSY, &runtime, || {
            // By now the owner has the first core, so it is the other one's thread that comes for the task.
            drop(runtime.spawn(until(|| BUSY.is_at(step::OTHER_LOOKS))));
            BUSY.wait_for(step::OTHER_LOOKS);
        });
    });
}

/// The same with the monitor, which looks in the place of an only worker that blocks, and is not done when that goes
/// on.
#[test]
fn the_monitor_takes_no_bell_away_from_an_only_worker() {
    within(LIMIT, || {
        let runtime = multi_thread(1).thread_name("alone").build().unwrap();
        wake_while_another_looks(&ALONE, &runtime, || block_in_place(|| ALONE.wait_for(step::OTHER_LOOKS)));
    });
}

/// Calls `body` with the waker of a `block_on` future whose worker waits for events, and does not get to run until the
/// end.
fn beside_a_poller<T>(script: &'static Script, runtime: &Runtime, body: impl FnOnce(&Waker) -> T) -> T {
    let place = Mutex::new(None::<Waker>);
    thread::scope(|scope| {
        let owner = thread::Builder::new().name(script.owner.to_owned());
        let wait = || {
            runtime.block_on(async {
                let (socket, mut buf) = (udp().await, [0; 8]);
                let mut receive = pin!(socket.recv(&mut buf));
                poll_fn(|cx| {
                    if script.is_at(step::OTHER_HAS_LOOKED) {
                        return Poll::Ready(());
                    }
                    *place.lock().unwrap() = Some(cx.waker().clone());
                    receive.as_mut().poll(cx).map(|_| ())
                })
                .await;
            })
        };
        owner.spawn_scoped(scope, wait).unwrap();
        script.wait_for(step::OWNER_WAITS);
        let waker = place.lock().unwrap().take().unwrap();
        let result = body(&waker);
        script.finish();
        waker.wake();
        result
    })
}

/// Receives a datagram that is sent when the future has begun to wait for it.
async fn receive_own(socket: &UdpSocket, sender: &std::net::UdpSocket) {
    let (mut buf, mut is_sent) = ([0; 8], false);
    let mut receive = pin!(socket.recv(&mut buf));
    let received = poll_fn(|cx| {
        let polled = receive.as_mut().poll(cx);
        if !std::mem::replace(&mut is_sent, true) {
            sender.send_to(b"event", socket.local_addr().unwrap()).unwrap();
        }
        polled
    });
    assert_eq!(received.await.unwrap(), 5);
}

/// The worker that waits for events does not get to run. The other one goes through all it has, and finds the event
/// that its last task has brought about before it goes to rest.
#[test]
fn who_goes_to_rest_looks_for_events_first() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        beside_a_poller(&SLOW, &runtime, |_| {
            runtime.block_on(async {
                let (socket, sender) = (udp().await, std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
                receive_own(&socket, &sender).await;
            });
        });
    });
}

/// The same, but the one who waits has been rung for: whoever looks then takes the ring away, and has to pass it on.
#[test]
fn who_goes_to_rest_leaves_the_ring_of_another_alone() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        beside_a_poller(&CALLED, &runtime, |poller| {
            poller.wake_by_ref();
            let parks = runtime.metrics().total_park_count();
            let (end, is_over) = oneshot();
            thread::scope(|scope| {
                let body = || runtime.block_on(is_over);
                thread::Builder::new().name(COUNTED.to_owned()).spawn_scoped(scope, body).unwrap();
                while runtime.metrics().total_park_count() == parks {
                    thread::yield_now();
                }
                end.send(());
            });
        });
        assert_eq!(LOOKS.load(SeqCst), 0);
    });
}

/// Polls a future that waits for a lull, from within the wake.
struct Calm {
    root: Waker,
    lull: Mutex<Option<Idle>>,
}

impl Wake for Calm {
    fn wake(self: Arc<Self>) {
        let mut lull = idle();
        match pin!(&mut lull).poll(&mut Context::from_waker(&self.root)) {
            Poll::Pending => *self.lull.lock().unwrap() = Some(lull),
            Poll::Ready(()) => self.root.wake_by_ref(),
        }
    }
}

/// What a last look at the events brings about may be no task, but somebody who waits for there to be none.
#[test]
fn who_waits_for_a_lull_since_the_last_look_is_released() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        beside_a_poller(&CALM, &runtime, |_| {
            runtime.block_on(async {
                let (socket, sender) = (udp().await, std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
                let (mut buf, mut calm) = ([0; 8], None::<Arc<Calm>>);
                let mut receive = pin!(socket.recv(&mut buf));
                poll_fn(|cx| {
                    if let Some(calm) = &calm {
                        let mut lull = calm.lull.lock().unwrap();
                        return lull.as_mut().map_or(Poll::Pending, |lull| pin!(lull).poll(cx));
                    }
                    let fresh = Arc::new(Calm { root: cx.waker().clone(), lull: Mutex::new(None) });
                    let waker = Waker::from(calm.insert(fresh).clone());
                    assert!(receive.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                    sender.send_to(b"event", socket.local_addr().unwrap()).unwrap();
                    Poll::Pending
                })
                .await;
            });
        });
    });
}

/// Each owner goes on counting its runs where the last one stopped: the monitor adds up what there is between two
/// looks.
#[test]
fn the_monitor_outlives_any_number_of_owners() {
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
                // Only the monitor can fire it.
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
        drop(runtime); // waits for the monitor, which must be there to end
    });
}
