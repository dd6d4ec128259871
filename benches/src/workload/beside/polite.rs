//! Short tasks that yield: a scheduler that puts yielding tasks last must not punish these.
//!
//! - [`Handler`]: answers a request in small turns of 80 µs in all, and yields or wakes itself after each, as an HTTP/2
//!   connection does.
//! - [`Holder`]: yields while it holds a lock that others wait for.
//! - [`Saturated`]: what computing tasks get where tasks that wake one another could take everything.
//!
//! The last two have a figure for either side: a runtime that gives all to one of them must not look best.

use std::future::{Future, poll_fn};
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use smol::lock::Mutex;

use super::{Flavour, Load, Row, Rt, Started, Stop, Subject, both, compute_and_yield, outside, send_stamps};
use crate::measured::{Figure, Group, Unit};
use crate::stats::percentile;

/// Of the computing tasks beside a [`Handler`], and beside the others.
const LONG_TURN: Duration = Duration::from_micros(200);
const SHORT_TURN: Duration = Duration::from_micros(100);

/// Between two requests: more than a handler needs where each of its turns waits for one of every computing task.
const PACE: Duration = Duration::from_millis(10);

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = both::<Handler<false>>().into();
    rows.extend(both::<Handler<true>>());
    rows.extend(both::<Contested<Holder>>());
    rows.extend(both::<Contested<Saturated>>());
    rows.into_iter().map(Row::without_monoio).map(Row::in_five_rounds).collect()
}

fn span(load: Load) -> Duration {
    load.pick(Duration::from_millis(500), Duration::from_millis(50))
}

/// Answers a thread's requests in eight turns of 10 µs each, beside four tasks that compute for 200 µs at a time.
///
/// `WAKES_ITSELF`: it wakes itself in its poll, instead of the runtime's `yield_now`.
struct Handler<const WAKES_ITSELF: bool>;

impl<const WAKES_ITSELF: bool> Subject for Handler<WAKES_ITSELF> {
    fn name() -> String {
        let how = if WAKES_ITSELF { "wakes itself" } else { "yields" };
        format!("request beside 4 x 200 us, its handler {how} 8 times")
    }

    fn group() -> Group {
        Group::Fairness
    }

    fn figures() -> Vec<Figure> {
        vec![Figure::lower("p50", Unit::Microseconds), Figure::lower("max", Unit::Microseconds)]
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let sample = move || {
            let took = rt.block_on(async move { R::spawn(requests::<R, WAKES_ITSELF>(flavour, load)).await });
            vec![percentile(&took, 50.0), percentile(&took, 100.0)]
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

async fn requests<R: Rt, const WAKES_ITSELF: bool>(flavour: Flavour, load: Load) -> Vec<f64> {
    let stop = Stop::new();
    let computing: Vec<_> = (0..4).map(|_| R::spawn(compute_and_yield::<R>(LONG_TURN, load, stop.clone()))).collect();
    let (sender, receiver) = async_channel::unbounded();
    let thread = outside(flavour, move || send_stamps(&sender, PACE, span(load)));
    let took = R::spawn(handle::<R, WAKES_ITSELF>(receiver, load)).await;
    stop.end();
    for task in computing {
        task.await;
    }
    thread.join().expect("it only sends");
    took
}

async fn handle<R: Rt, const WAKES_ITSELF: bool>(requests: Receiver<Instant>, load: Load) -> Vec<f64> {
    let mut took = Vec::new();
    while let Ok(sent) = requests.recv().await {
        for _ in 0..8 {
            load.compute_for(Duration::from_micros(10));
            if WAKES_ITSELF { wake_itself().await } else { R::yield_now().await }
        }
        took.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    took
}

/// Ends this poll with a wake of the task itself.
async fn wake_itself() {
    let mut has_woken = false;
    poll_fn(|cx| {
        if mem::replace(&mut has_woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Two figures of tasks that wake one another beside tasks that compute for 100 µs at a time: what either side gets.
trait Contest: 'static {
    const NAME: &'static str;
    /// What the tasks that wake one another count.
    const COUNTED: &'static str;
    const COMPUTING: usize;

    /// Starts tasks that go on until `stop`, and then return what they have counted.
    fn start_others<R: Rt>(load: Load, stop: &Stop) -> Vec<Counting>;
}

/// The end of a task that counts.
type Counting = Pin<Box<dyn Future<Output = u64> + Send>>;

/// A [`Contest`] as a [`Subject`].
struct Contested<C>(PhantomData<C>);

impl<C: Contest> Subject for Contested<C> {
    fn name() -> String {
        format!("{} beside {} x 100 us", C::NAME, C::COMPUTING)
    }

    fn group() -> Group {
        Group::Fairness
    }

    fn figures() -> Vec<Figure> {
        vec![Figure::higher(C::COUNTED, Unit::PerSecond), Figure::higher("time for computing", Unit::Percent)]
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let cpus = if flavour == Flavour::TWO { 2.0 } else { 1.0 };
        let sample = move || {
            let (counted, turns) = rt.block_on(async move { R::spawn(contend::<R, C>(load)).await });
            let span = span(load).as_secs_f64();
            vec![counted as f64 / span, 100.0 * turns as f64 * SHORT_TURN.as_secs_f64() / (cpus * span)]
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

/// What the others counted, and the turns of the computing tasks.
async fn contend<R: Rt, C: Contest>(load: Load) -> (u64, u64) {
    let stop = Stop::after(span(load));
    let others = C::start_others::<R>(load, &stop);
    let computing: Vec<_> =
        (0..C::COMPUTING).map(|_| R::spawn(compute_and_yield::<R>(SHORT_TURN, load, stop.clone()))).collect();
    let (mut counted, mut turns) = (0, 0);
    for task in others {
        counted += task.await;
    }
    for task in computing {
        turns += task.await;
    }
    (counted, turns)
}

/// Eight tasks that want one lock, work for 5 µs with it, yield, and work on.
struct Holder;

impl Contest for Holder {
    const NAME: &'static str = "a lock whose holder yields";
    const COUNTED: &'static str = "locked";
    const COMPUTING: usize = 4;

    fn start_others<R: Rt>(load: Load, stop: &Stop) -> Vec<Counting> {
        let lock = Arc::new(Mutex::new(()));
        (0..8).map(|_| Box::pin(R::spawn(hold::<R>(lock.clone(), load, stop.clone()))) as Counting).collect()
    }
}

async fn hold<R: Rt>(lock: Arc<Mutex<()>>, load: Load, stop: Stop) -> u64 {
    let mut locked = 0;
    while !stop.is_over() {
        let guard = lock.lock().await;
        load.compute_for(Duration::from_micros(5));
        R::yield_now().await;
        load.compute_for(Duration::from_micros(5));
        drop(guard);
        locked += 1;
    }
    locked
}

/// Four pairs of tasks that pass a message to and fro and work on it for 5 µs: there is always one to run.
struct Saturated;

impl Contest for Saturated {
    const NAME: &'static str = "messages without end";
    const COUNTED: &'static str = "messages";
    const COMPUTING: usize = 2;

    fn start_others<R: Rt>(load: Load, stop: &Stop) -> Vec<Counting> {
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (to_first, from_second) = async_channel::bounded(1);
            let (to_second, from_first) = async_channel::bounded(1);
            to_second.try_send(()).expect("there is room");
            tasks.push(Box::pin(R::spawn(pass_on(from_second, to_second, load, stop.clone()))) as Counting);
            tasks.push(Box::pin(R::spawn(pass_on(from_first, to_first, load, stop.clone()))) as Counting);
        }
        tasks
    }
}

/// Ends with `stop`, or with the other side.
async fn pass_on(from: Receiver<()>, to: Sender<()>, load: Load, stop: Stop) -> u64 {
    let mut passed = 0;
    while !stop.is_over() && from.recv().await.is_ok() {
        load.compute_for(Duration::from_micros(5));
        if to.send(()).await.is_err() {
            break;
        }
        passed += 1;
    }
    passed
}
