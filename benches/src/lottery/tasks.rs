//! The tasks of a run, kind by kind. Each does its events in the order of their times and returns what became of them.
//!
//! [`perform`] starts them all. What comes from outside of the runtime is sent by the thread of `outside.rs`; messages
//! carry no times, since the n-th message to a task is its n-th event.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};

use super::draw::{Draw, Kind, Part};
use super::outside::{Outside, Target};
use super::stage::{Record, Stage};
use crate::clock::Stopwatch;
use crate::rt::{Rt, Stream};
use crate::workload::tcp::{MESSAGE, connect};

/// A limit that no message reaches.
const LIMIT: Duration = Duration::from_secs(30);

/// Bytes that a read of a server offers.
const BUFFER: usize = 1024;

/// The end of a task.
type Ended = Pin<Box<dyn Future<Output = Record> + Send>>;

/// Runs `draw` to its end; a record for each of its parts. Starts the thread outside, and joins it.
pub(super) async fn perform<R: Rt>(draw: Draw, stage: Arc<Stage>, mut outside: Outside) -> (Vec<Record>, Duration) {
    let mut parts = Vec::with_capacity(draw.parts.len());
    for part in &draw.parts {
        let mut tasks = Vec::with_capacity(part.tasks.len());
        start::<R>(part, &stage, &mut outside, &mut tasks);
        parts.push(tasks);
    }
    let thread = outside.start(stage);
    let mut records = Vec::with_capacity(parts.len());
    for tasks in parts {
        let mut record = Record::default();
        for task in tasks {
            record.merge(task.await);
        }
        records.push(record);
    }
    (records, thread.join().expect("the thread outside ends"))
}

fn start<R: Rt>(part: &Part, stage: &Arc<Stage>, outside: &mut Outside, tasks: &mut Vec<Ended>) {
    let (run, turns) = (part.run, part.turns);
    let mut consumers = Vec::new();
    for times in &part.tasks {
        let (stage, times) = (stage.clone(), times.clone());
        match part.kind {
            Kind::Compute => tasks.push(spawn::<R>(compute::<R>(stage, times, run, turns))),
            Kind::Sleep => tasks.push(spawn::<R>(sleep::<R>(stage, times, run))),
            Kind::Spawn => tasks.push(spawn::<R>(spawn_each::<R>(stage, times, run))),
            Kind::Blocking => tasks.push(spawn::<R>(block::<R>(stage, times, run))),
            Kind::Request => {
                let (client, server) = connect().expect("loopback connects");
                let server = R::Stream::from_std(server).expect("the runtime takes the server");
                outside.add(Target::Socket(client), &times);
                tasks.push(spawn::<R>(serve(stage, times, run, server)));
            }
            Kind::Thread => {
                let (sender, receiver) = async_channel::unbounded();
                outside.add(Target::Channel(sender), &times);
                tasks.push(spawn::<R>(consume(stage, times, run, receiver)));
            }
            Kind::Channel => {
                let (sender, receiver) = async_channel::unbounded();
                R::spawn_detached(produce::<R>(stage.clone(), vec![(times.clone(), sender)]));
                tasks.push(spawn::<R>(consume(stage, times, run, receiver)));
            }
            Kind::Timeout => {
                let (sender, receiver) = async_channel::unbounded();
                consumers.push((times.clone(), sender));
                tasks.push(spawn::<R>(consume_in_time::<R>(stage, times, run, receiver)));
            }
        }
    }
    if !consumers.is_empty() {
        R::spawn_detached(produce::<R>(stage.clone(), consumers));
    }
}

fn spawn<R: Rt>(task: impl Future<Output = Record> + Send + 'static) -> Ended {
    Box::pin(R::spawn(task))
}

async fn compute<R: Rt>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration, turns: u64) -> Record {
    let mut record = Record::default();
    for (index, &time) in times.iter().enumerate() {
        stage.wait::<R>(time).await;
        for turn in 1..=turns {
            if stage.is_over() {
                record.miss_jobs(&stage, &times[index..]);
                return record;
            }
            record.run(&stage, run);
            if turn == turns {
                record.complete(&stage, time); // before the yield, which is no part of the job
            }
            R::yield_now().await;
        }
    }
    record
}

async fn sleep<R: Rt>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration) -> Record {
    let stage = &*stage;
    let sleeps = |time| async move {
        stage.wait::<R>(time).await;
        true
    };
    run_each(stage, &times, run, sleeps).await
}

/// Does a run for each of `times`, once the future that `arrives` returns for it is ready. `false` ends the task.
async fn run_each<F>(stage: &Stage, times: &[u64], run: Duration, mut arrives: impl FnMut(u64) -> F) -> Record
where
    F: Future<Output = bool>,
{
    let mut record = Record::default();
    for (index, &time) in times.iter().enumerate() {
        if !arrives(time).await || stage.is_over() {
            record.miss(stage, &times[index..]);
            break;
        }
        record.begin(stage, time);
        record.run(stage, run);
    }
    record
}

async fn spawn_each<R: Rt>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration) -> Record {
    let mut record = Record::default();
    let mut tasks = Vec::with_capacity(times.len());
    for (index, &time) in times.iter().enumerate() {
        stage.wait::<R>(time).await;
        if stage.is_over() {
            record.miss(&stage, &times[index..]);
            break;
        }
        let stage = stage.clone();
        tasks.push(R::spawn(async move {
            if stage.is_over() {
                return (stage.end(), false);
            }
            let began = stage.now().min(stage.end());
            stage.compute(run);
            (began, !stage.is_over())
        }));
    }
    for (task, &time) in tasks.into_iter().zip(&*times) {
        let (began, is_done) = task.await;
        record.note_wake(&stage, time, began.saturating_sub(time));
        record.runs += u64::from(is_done);
    }
    record
}

/// The latency is all but the CPU time of the job: the way to the pool, the waits for a CPU, and the way back.
async fn block<R: Rt>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration) -> Record {
    let mut record = Record::default();
    for (index, &time) in times.iter().enumerate() {
        stage.wait::<R>(time).await;
        if stage.is_over() {
            record.miss(&stage, &times[index..]);
            break;
        }
        let job = stage.clone();
        let done = R::spawn_blocking(move || {
            let watch = Stopwatch::start_of_thread();
            if !job.is_over() {
                job.compute(run);
            }
            (watch.stop().cpu.as_nanos() as u64, !job.is_over())
        });
        let (cpu, is_done) = done.await;
        let latency = stage.now().saturating_sub(time + cpu);
        record.note_wake(&stage, time, latency.min(stage.end().saturating_sub(time)));
        record.runs += u64::from(is_done);
    }
    record
}

async fn serve<S: Stream>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration, mut stream: S) -> Record {
    let mut record = Record::default();
    let (mut buf, mut received, mut served) = (vec![0; BUFFER], 0, 0);
    let mut answer = vec![0; MESSAGE];
    'connection: while served < times.len() {
        let result;
        (result, buf) = stream.read(buf).await;
        match result {
            Ok(0) | Err(_) => break, // the thread outside has ended
            Ok(length) => received += length,
        }
        while received >= MESSAGE {
            if stage.is_over() {
                break 'connection;
            }
            received -= MESSAGE;
            record.begin(&stage, times[served]);
            record.run(&stage, run);
            served += 1;
            let result;
            (result, answer) = stream.write_all(answer, MESSAGE).await;
            if result.is_err() {
                break 'connection;
            }
        }
    }
    record.miss(&stage, &times[served..]);
    record
}

/// Sends every item at its time. A consumer that has gone does not matter: then the time is over.
async fn produce<R: Rt>(stage: Arc<Stage>, consumers: Vec<(Arc<[u64]>, Sender<()>)>) {
    let mut items: Vec<_> = Vec::new();
    for (consumer, (times, _)) in consumers.iter().enumerate() {
        items.extend(times.iter().map(|&time| (time, consumer)));
    }
    items.sort_unstable();
    for (time, consumer) in items {
        stage.wait::<R>(time).await;
        if stage.is_over() {
            break;
        }
        let _ = consumers[consumer].1.try_send(());
    }
}

async fn consume(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration, items: Receiver<()>) -> Record {
    let items = &items;
    run_each(&stage, &times, run, |_| async move { items.recv().await.is_ok() }).await
}

async fn consume_in_time<R: Rt>(stage: Arc<Stage>, times: Arc<[u64]>, run: Duration, items: Receiver<()>) -> Record {
    let items = &items;
    let comes = |_| async move {
        let mut has_come = false;
        let came = R::timeout(LIMIT, async { has_come = items.recv().await.is_ok() });
        assert!(came.await, "no run takes that long");
        has_come
    };
    run_each(&stage, &times, run, comes).await
}
