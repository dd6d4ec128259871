//! Timers in mini's hierarchical wheel, in a binary heap and in a B-tree.
//!
//! ```console
//! $ cargo bench -p mini-benches --bench timers
//! ```
//!
//! Two figures, each beside 10, 10,000 and 1,000,000 timers that are pending: to insert one and take it back, as a
//! timeout does that is not needed; and to let all of them fire, for each of them. mini's are what a program pays: a
//! `Sleep` that is polled, its lock, and its drop. The heap forgets a timer that was taken back when it comes to its
//! top, and is built anew when most of it is forgotten.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mini::runtime::{Builder, Runtime};
use mini::time::{Sleep, advance, sleep};
use mini_benches::random::Random;

const PENDING: [usize; 3] = [10, 10_000, 1_000_000];

/// Deadlines lie within a minute, as those of timeouts do; in nanoseconds.
const SPAN: u64 = 60_000_000_000;

fn deadline(random: &mut Random) -> u64 {
    random.uniform(1.0, SPAN as f64) as u64
}

/// A queue of timers.
trait Queue: Default {
    type Key;

    fn insert(&mut self, deadline: u64, waker: Waker) -> Self::Key;

    fn cancel(&mut self, key: Self::Key);

    /// Wakes all that are due.
    fn fire(&mut self, now: u64);
}

#[derive(Default)]
struct Tree {
    timers: BTreeMap<(u64, u64), Waker>,
    last: u64,
}

impl Queue for Tree {
    type Key = (u64, u64);

    fn insert(&mut self, deadline: u64, waker: Waker) -> (u64, u64) {
        self.last += 1;
        self.timers.insert((deadline, self.last), waker);
        (deadline, self.last)
    }

    fn cancel(&mut self, key: (u64, u64)) {
        self.timers.remove(&key);
    }

    fn fire(&mut self, now: u64) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            first.remove().wake();
        }
    }
}

#[derive(Default)]
struct Heap {
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// `None`: taken back, and still in the heap.
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
    dead: usize,
}

impl Queue for Heap {
    type Key = usize;

    fn insert(&mut self, deadline: u64, waker: Waker) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.wakers.push(None);
            self.wakers.len() - 1
        });
        self.wakers[place] = Some(waker);
        self.timers.push(Reverse((deadline, place)));
        place
    }

    fn cancel(&mut self, place: usize) {
        self.wakers[place] = None;
        self.dead += 1;
        if self.dead > self.timers.len() / 2 {
            let (wakers, free) = (&self.wakers, &mut self.free);
            self.timers.retain(|Reverse((_, place))| {
                let is_alive = wakers[*place].is_some();
                if !is_alive {
                    free.push(*place);
                }
                is_alive
            });
            self.dead = 0;
        }
    }

    fn fire(&mut self, now: u64) {
        while let Some(Reverse((deadline, place))) = self.timers.peek().copied() {
            if deadline > now {
                break;
            }
            self.timers.pop();
            self.free.push(place);
            match self.wakers[place].take() {
                Some(waker) => waker.wake(),
                None => self.dead -= 1,
            }
        }
    }
}

/// Inserts one and takes it back, `times`; `pending` others are there.
fn take_back<Q: Queue>(pending: usize, times: u64) -> Duration {
    let (mut queue, mut random) = (Q::default(), Random::new(1));
    for _ in 0..pending {
        queue.insert(deadline(&mut random), Waker::noop().clone());
    }
    let begin = Instant::now();
    for _ in 0..times {
        let key = queue.insert(deadline(&mut random), Waker::noop().clone());
        queue.cancel(black_box(key));
    }
    begin.elapsed()
}

/// Lets `pending` timers fire, `times`.
fn fire<Q: Queue>(pending: usize, times: u64) -> Duration {
    let mut took = Duration::ZERO;
    for round in 0..times {
        let (mut queue, mut random) = (Q::default(), Random::new(round));
        for _ in 0..pending {
            queue.insert(deadline(&mut random), Waker::noop().clone());
        }
        let begin = Instant::now();
        queue.fire(black_box(SPAN));
        took += begin.elapsed();
    }
    took
}

fn runtime() -> Runtime {
    Builder::new_current_thread().start_paused(true).build().expect("the system lets it run")
}

/// Sleeps that were polled once.
fn sleeps(count: usize, random: &mut Random, cx: &mut Context<'_>) -> Vec<Pin<Box<Sleep>>> {
    (0..count)
        .map(|_| {
            let mut sleep = Box::pin(sleep(Duration::from_nanos(deadline(random))));
            assert!(sleep.as_mut().poll(cx).is_pending());
            sleep
        })
        .collect()
}

fn take_back_from_wheel(pending: usize, times: u64) -> Duration {
    runtime().block_on(poll_fn(|_| {
        let (mut random, mut cx) = (Random::new(1), Context::from_waker(Waker::noop()));
        let _others = sleeps(pending, &mut random, &mut cx);
        let begin = Instant::now();
        for _ in 0..times {
            let mut sleep = std::pin::pin!(sleep(Duration::from_nanos(deadline(&mut random))));
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
        }
        Poll::Ready(begin.elapsed())
    }))
}

fn fire_from_wheel(pending: usize, times: u64) -> Duration {
    runtime().block_on(async {
        let mut took = Duration::ZERO;
        for round in 0..times {
            let mut random = Random::new(round);
            let all = sleeps(pending, &mut random, &mut Context::from_waker(Waker::noop()));
            let begin = Instant::now();
            advance(Duration::from_nanos(SPAN)).await;
            took += begin.elapsed();
            drop(all);
        }
        took
    })
}

/// Lets a number of timers be pending, and measures so many times.
type Measure = fn(usize, u64) -> Duration;

fn timers(criterion: &mut Criterion) {
    let taken_back: [(&str, Measure); 3] =
        [("wheel", take_back_from_wheel), ("heap", take_back::<Heap>), ("tree", take_back::<Tree>)];
    let fired: [(&str, Measure); 3] = [("wheel", fire_from_wheel), ("heap", fire::<Heap>), ("tree", fire::<Tree>)];
    for pending in PENDING {
        group(criterion, "insert and take back", pending, None, taken_back);
        group(criterion, "fire", pending, Some(Throughput::Elements(pending as u64)), fired);
    }
}

fn group(
    criterion: &mut Criterion,
    name: &str,
    pending: usize,
    throughput: Option<Throughput>,
    queues: [(&str, Measure); 3],
) {
    let mut group = criterion.benchmark_group(name);
    throughput.map(|throughput| group.throughput(throughput));
    for (queue, measure) in queues {
        group.bench_with_input(BenchmarkId::new(queue, pending), &pending, |bencher, &pending| {
            bencher.iter_custom(|times| measure(pending, times));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = timers
}
criterion_main!(benches);
