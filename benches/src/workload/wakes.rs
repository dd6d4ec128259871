//! Workloads of waking: a task by a task, a task by a thread, a task by a job that blocked.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;

use async_channel::{Receiver, Sender};

use super::bell::Bell;
use super::timed::{Clocks, Workload};
use crate::clock::{Stopwatch, Took};
use crate::cpus;
use crate::load::Load;
use crate::measured::Group;
use crate::rt::Rt;

/// Two tasks that pass a number to and fro; a hop is an operation.
pub(super) struct PingPong;

impl Workload for PingPong {
    const NAME: &'static str = "ping-pong, per hop";
    const GROUP: Group = Group::Wakes;

    fn operations(_: Load) -> u64 {
        2
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let (to_pong, from_ping) = async_channel::bounded(1);
        let (to_ping, from_pong) = async_channel::bounded(1);
        let watch = Stopwatch::start();
        let pong = R::spawn(pong(from_ping, to_ping));
        let ping = R::spawn(ping(rounds, to_pong, from_pong));
        assert_eq!(ping.await, rounds);
        pong.await;
        watch.stop()
    }
}

/// Sends `0`, and each answer back, until `rounds` is reached.
async fn ping(rounds: u64, to_pong: Sender<u64>, from_pong: Receiver<u64>) -> u64 {
    let mut number = 0;
    while number < rounds {
        to_pong.send(number).await.expect("pong listens");
        number = from_pong.recv().await.expect("pong answers");
    }
    number
}

/// Answers with the next number until ping has gone.
async fn pong(from_ping: Receiver<u64>, to_ping: Sender<u64>) {
    while let Ok(number) = from_ping.recv().await {
        to_ping.send(number + 1).await.expect("ping listens");
    }
}

/// [`PingPong`] with nothing but wakers: each task keeps the other's and wakes it in every poll.
pub(super) struct Hop;

impl Workload for Hop {
    const NAME: &'static str = "bare waker, per hop";
    const GROUP: Group = Group::Wakes;

    fn operations(_: Load) -> u64 {
        2
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let net = Arc::new(Net::default());
        let watch = Stopwatch::start();
        let sides = [0, 1].map(|side| {
            let net = net.clone();
            R::spawn(async move {
                let other = net.meet(side).await;
                net.play(side, 2 * rounds, &other).await;
            })
        });
        for side in sides {
            side.await;
        }
        watch.stop()
    }
}

/// What [`Hop`]'s two tasks share.
#[derive(Default)]
struct Net {
    wakers: Mutex<[Option<Waker>; 2]>,
    hops: AtomicU64,
}

impl Net {
    /// The other task's waker, once it has come.
    async fn meet(&self, side: usize) -> Waker {
        poll_fn(|cx| {
            let mut wakers = self.wakers.lock().expect("nobody panics");
            wakers[side] = Some(cx.waker().clone());
            match wakers[1 - side].clone() {
                Some(other) => {
                    other.wake_by_ref();
                    Poll::Ready(other)
                }
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Takes every other hop of `hops`: those whose number has `side` in its lowest bit.
    async fn play(&self, side: usize, hops: u64, other: &Waker) {
        poll_fn(|_| {
            // Acquire and Release: what came before a hop is seen after it.
            let hop = self.hops.load(Acquire);
            if hop < hops && hop % 2 == side as u64 {
                self.hops.store(hop + 1, Release);
                other.wake_by_ref();
            }
            if hop + 1 >= hops { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A thread outside of the runtime wakes a task, the task unparks the thread. `FAR`: the thread has another CPU.
pub(super) struct Foreign<const FAR: bool>;

impl<const FAR: bool> Workload for Foreign<FAR> {
    const NAME: &'static str =
        if FAR { "wake by a thread and back, other CPU" } else { "wake by a thread and back, same CPU" };
    const GROUP: Group = Group::Wakes;
    const CLOCKS: Clocks = Clocks::Both;

    fn operations(_: Load) -> u64 {
        1
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let asked = Arc::new(Bell::default());
        let answered = Arc::new(Bell::default());
        let thread = thread::spawn({
            let (asked, answered) = (asked.clone(), answered.clone());
            move || ask(&asked, &answered, rounds, FAR)
        });
        for round in 0..=rounds {
            asked.wait(round + 1).await;
            answered.ring(round + 1);
            thread.thread().unpark();
        }
        thread.join().expect("the thread ends")
    }
}

/// The thread's side of [`Foreign`]. The first round is not timed: it starts the two.
fn ask(asked: &Bell, answered: &Bell, rounds: u64, far: bool) -> Took {
    if far {
        cpus::bind_to_other();
    }
    let round_trip = |number| {
        asked.ring(number);
        while !answered.reached(number) {
            thread::park();
        }
    };
    round_trip(1);
    let watch = Stopwatch::start();
    (1..=rounds).for_each(|round| round_trip(round + 1));
    watch.stop()
}

/// A job on a thread that may block, awaited; then the next.
pub(super) struct Blocking;

impl Workload for Blocking {
    const NAME: &'static str = "spawn_blocking and back";
    const GROUP: Group = Group::Wakes;
    const CLOCKS: Clocks = Clocks::Both;

    fn operations(_: Load) -> u64 {
        1
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let watch = Stopwatch::start();
        for round in 0..rounds {
            assert_eq!(R::spawn_blocking(move || round).await, round);
        }
        watch.stop()
    }
}
