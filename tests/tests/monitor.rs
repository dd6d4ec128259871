//! Looks for events in the place of another thread: by busy workers instead of the poller, by the monitor instead of
//! owners that are stuck in long polls.
//!
//! `epoll_wait` is replaced here, to hold the threads of one test at chosen places; it does what it always does. So
//! this is only for the epoll backend.

#![cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#![allow(unsafe_code)]

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use std::{hint, slice, thread};

use mini::io::AsyncFd;
use mini::runtime::Runtime;
use mini::task::{block_in_place, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::net_support::udp;
use mini_tests::{Counts, LIMIT, multi_thread, poll_with, until, within};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};

/// What has happened in a test, in this order.
mod step {
    pub(super) const SOCKET: u8 = 1;
    pub(super) const OTHER_LOOKS: u8 = 2;
    pub(super) const OWNER_WAITS: u8 = 3;
    pub(super) const NOTIFIED: u8 = 4;
    pub(super) const OTHER_HAS_LOOKED: u8 = 5;
}

/// A test, and the two threads of its runtime by their names: one looks for events in the place of the other.
struct Script {
    others: &'static [&'static str],
    /// A worker that has a socket.
    owner: OnceLock<String>,
    /// What wakes its task.
    waker: Mutex<Option<Waker>>,
    step: AtomicU8,
}

static BUSY: Script = Script::new(&["held-0", "held-1"]);
static ALONE: Script = Script::new(&["alone-monitor"]);

impl Script {
    const fn new(others: &'static [&'static str]) -> Self {
        Self { others, owner: OnceLock::new(), waker: Mutex::new(None), step: AtomicU8::new(0) }
    }

    fn is_owner(&self, name: &str) -> bool {
        self.owner.get().is_some_and(|owner| owner == name)
    }

    fn is_other(&self, name: &str) -> bool {
        self.others.contains(&name) && !self.is_owner(name)
    }

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
}

/// Stands in for epoll_wait(2) of the C library.
///
/// # Safety
///
/// As there: `list` has room for `room` events.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(epoll: i32, list: *mut MaybeUninit<Event>, room: i32, millis: i32) -> i32 {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let mut scripts = [&BUSY, &ALONE].into_iter();
    let looking =
        scripts.clone().find(|script| script.is_other(&name) && millis == 0 && script.make(step::OTHER_LOOKS));
    if let Some(script) = looking {
        script.wait_for(step::NOTIFIED);
    }
    if let Some(script) = scripts.find(|script| script.is_owner(&name) && millis != 0 && script.make(step::OWNER_WAITS))
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

/// Runs a task that has a socket on a worker, the owner. Wakes it from another thread while the owner waits, and a
/// third one looks. `waits` is called once in between.
fn wake_while_another_looks(script: &'static Script, runtime: &Runtime, waits: impl Fn() + Send + 'static) {
    let task = move || async move {
        let socket = udp().await;
        let mut buf = [0; 8];
        let mut receive = pin!(socket.recv(&mut buf));
        assert!(receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        script.owner.set(thread::current().name().unwrap().to_owned()).unwrap();
        let mut is_woken = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut is_woken, true) {
                return Poll::Ready(());
            }
            *script.waker.lock().unwrap() = Some(cx.waker().clone());
            assert!(script.make(step::SOCKET));
            waits();
            Poll::Pending
        })
        .await;
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            script.wait_for(step::OWNER_WAITS);
            script.waker.lock().unwrap().take().unwrap().wake();
            assert!(script.make(step::NOTIFIED));
        });
        let pinned = runtime.spawn(async move {
            let here = mini::spawn_local(task());
            here.await
        });
        runtime.block_on(pinned).unwrap().unwrap();
    });
}

/// A busy worker looks for events; then the owner of the other core begins to wait for them and is notified; the busy
/// worker consumes the notification instead of the owner.
#[test]
fn a_busy_worker_takes_no_notification_away() {
    within(LIMIT, || {
        let runtime = multi_thread(2).thread_name("held").build().unwrap();
        wake_while_another_looks(&BUSY, &runtime, || {
            // The owner is in this poll, so the other worker comes for the task.
            drop(mini::spawn(until(|| BUSY.is_at(step::OTHER_LOOKS))));
            BUSY.wait_for(step::OTHER_LOOKS);
        });
    });
}

/// The same with the monitor, which looks instead of an only worker that blocks, and still looks when that worker goes
/// on.
#[test]
fn the_monitor_takes_no_notification_away_from_an_only_worker() {
    within(LIMIT, || {
        let runtime = multi_thread(1).thread_name("alone").build().unwrap();
        wake_while_another_looks(&ALONE, &runtime, || block_in_place(|| ALONE.wait_for(step::OTHER_LOOKS)));
    });
}

/// A thread that only enters the runtime registers its first socket while one worker computes and the other has parked,
/// as there was nothing to poll: the parked one is woken to poll.
#[test]
fn a_first_socket_beside_a_stall_is_polled() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (is_stalled, is_served) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                wait_for(&is_stalled);
                let _entered = runtime.enter();
                let (socket, sender) = (
                    AsyncFd::new(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap(),
                    UdpSocket::bind("127.0.0.1:0").unwrap(),
                );
                let (woken, mut readable) = (Counts::new(), Box::pin(socket.readable()));
                assert!(poll_with(&mut readable, &woken).is_pending());
                sender.send_to(b"event", socket.get_ref().local_addr().unwrap()).unwrap();
                while woken.wakes() == 0 {
                    thread::yield_now();
                }
                is_served.store(true, SeqCst);
            });
            // The thread of the last core comes for a task, and parks after it.
            drop(runtime.spawn(async {}));
            while runtime.metrics().worker_park_count(1) == 0 {
                thread::yield_now();
            }
            runtime.block_on(async {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(10) {
                    hint::spin_loop(); // the monitor sees a stall, and nothing to do about it
                }
                is_stalled.store(true, SeqCst);
                wait_for(&is_served);
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

/// Beside threads that compute, each wake of the worker makes it wait for a CPU, and then it does not seem to be
/// stalled.
#[test]
fn a_stall_goes_on_while_the_worker_waits_for_a_cpu() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (wake, wakes) = std::sync::mpsc::channel::<()>();
        let stuck = runtime.spawn(async move { while wakes.recv().is_ok() {} });
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().unwrap().get() {
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        std::hint::spin_loop()
                    }
                });
            }
            let (mut first, mut looks) = (None, 0);
            while looks < 100 {
                wake.send(()).unwrap();
                let begin = Instant::now();
                let json = runtime.handle().dump().to_json();
                let Some(stalled) = json.split("\"state\":\"stalled\"").nth(1) else { continue };
                let seconds = stalled.split("\"seconds\":").nth(1).unwrap();
                let seconds: f64 = seconds[..seconds.find(['}', ',']).unwrap()].parse().unwrap();
                let known = begin.saturating_duration_since(*first.get_or_insert_with(Instant::now)).as_secs_f64();
                if seconds < known {
                    is_over.store(true, SeqCst);
                    panic!("{seconds} s, and it was stalled {known} s ago");
                }
                looks += 1;
            }
            is_over.store(true, SeqCst);
        });
        drop(wake);
        runtime.block_on(stuck).unwrap();
    });
}
