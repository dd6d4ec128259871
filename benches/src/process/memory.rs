//! Rows of memory: what a sleeping task and a waiting connection take of a process, beyond their future.
//!
//! The difference in resident memory between few and many, divided by how many; less the future that was spawned (its
//! size is known) and, for connections, less the buffer of the read. What is left is the runtime's: header, queues,
//! timers, readiness. What the kernel holds for a socket does not count. One process per sample, so that no heap
//! remembers an earlier one. Called by [`rows`](super::rows); [`main`] is the child of the tasks' rows.
//!
//! Rejected: counting in the allocator. It misses what the allocator itself wastes, for instance on alignment.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smol::{Executor, LocalExecutor, Timer};

use super::child::{self, Child, Memory, noted};
use super::load::{Load, Run, Shape};
use super::server::{Kind, Layout};
use super::{ProcessRow, Server, beside, machine, peers, plan};
use crate::measured::{Figure, Group, Unit};
use crate::options::Options;
use crate::peer::Peer;

const HOUR: Duration = Duration::from_secs(3600);

/// Tasks that are spawned before they are waited for: no queue grows to the number of all tasks.
const BATCH: u64 = 1000;

/// Memory hardly differs from one round to the next.
const ROUNDS: usize = 3;

/// Tasks that have been polled.
static POLLED: AtomicU64 = AtomicU64::new(0);

pub(super) fn rows() -> Vec<ProcessRow> {
    let figures = || vec![Figure::lower("beyond the future", Unit::Bytes), Figure::lower("in all", Unit::Bytes)];
    let tasks = [Layout::One, Layout::Shared].map(|layout| ProcessRow {
        group: Group::Memory,
        name: format!("sleeping task, {}", layout.name()),
        figures: figures(),
        peers: runtimes(layout),
        rounds: ROUNDS,
        sample: Box::new(move |peer, options| of_tasks(peer, layout, options)),
    });
    let connections = ProcessRow {
        group: Group::Memory,
        name: "idle TCP connection, 1 worker".to_owned(),
        figures: figures(),
        peers: runtimes(Layout::One),
        rounds: ROUNDS,
        sample: Box::new(|peer, options| beside(Layout::One, || of_connections(peer, options))),
    };
    tasks.into_iter().chain([connections]).collect()
}

/// A bare loop has no tasks to weigh.
fn runtimes(layout: Layout) -> Vec<Peer> {
    peers(layout).into_iter().filter(|&peer| peer != Peer::Limit).collect()
}

fn of_connections(peer: Peer, options: &Options) -> Result<Vec<f64>, String> {
    let (few, many) = if options.quick { (100, 1000) } else { (100, 10_000) };
    let mut server = Server::start(plan(peer, Layout::One, Kind::Idle))?;
    let _few = talk_once(server.port, few)?;
    let before = server.child.memory()?;
    let _many = talk_once(server.port, many)?;
    let after = server.child.memory()?;
    Ok(figures(before, after, many as u64, Kind::Idle.buffer() as u64))
}

/// Connections that wait in a read: an echo has gone over each.
fn talk_once(port: u16, count: usize) -> Result<Load, String> {
    let fail = |error| format!("load: {error}");
    let mut load = Load::connect(port, count, Shape::echo(true)).map_err(fail)?;
    load.run(count, Run::Messages(1)).map_err(fail)?;
    Ok(load)
}

fn of_tasks(peer: Peer, layout: Layout, options: &Options) -> Result<Vec<f64>, String> {
    let tasks: u64 = if options.quick { 10_000 } else { 100_000 };
    let mut child = Child::start("memory", [peer.name().to_owned(), format!("{layout:?}"), tasks.to_string()])?;
    let [before, after, future] = child.numbers()?;
    let memory = |resident| Memory { resident, future };
    Ok(figures(memory(before), memory(after), tasks, 0))
}

/// Bytes of each beyond its future and its buffer, and with them.
fn figures(before: Memory, after: Memory, count: u64, buffer: u64) -> Vec<f64> {
    let each = (after.resident as f64 - before.resident as f64) / count as f64;
    vec![each - (after.future + buffer) as f64, each]
}

/// A child's life: counts its memory, says it and ends.
pub(super) fn main(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let mut word = || args.next().ok_or("memory needs a peer, a layout and a number of tasks");
    let (peer, layout, tasks) = (word()?, word()?, word()?);
    let peer = Peer::parse(&peer)?;
    let layout = Layout::parse(&layout)?;
    let tasks = tasks.parse().map_err(|_| format!("`{tasks}` is not a number of tasks"))?;
    let fail = |error: io::Error| error.to_string();
    machine::pin(layout.server_cpus()).map_err(fail)?;
    let (before, after) = count(peer, layout, tasks).map_err(fail)?;
    child::say(&format!("{} {} {}", before.resident, after.resident, after.future));
    Ok(())
}

fn count(peer: Peer, layout: Layout, tasks: u64) -> io::Result<(Memory, Memory)> {
    match (peer, layout) {
        (Peer::Mini, _) => on_mini(layout, tasks),
        (Peer::Tokio, _) => on_tokio(layout, tasks),
        (Peer::Smol, Layout::Shared) => on_shared_smol(tasks),
        (Peer::Smol, _) => on_local_smol(tasks),
        (Peer::Monoio, Layout::One) => {
            monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().enable_timer().build()?.block_on(on_monoio(tasks))
        }
        (Peer::MonoioUring, Layout::One) => {
            monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().enable_timer().build()?.block_on(on_monoio(tasks))
        }
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "no such runtime")),
    }
}

fn on_mini(layout: Layout, tasks: u64) -> io::Result<(Memory, Memory)> {
    let runtime = match layout {
        Layout::Shared => mini::runtime::Builder::new_multi_thread().worker_threads(2).build()?,
        _ => mini::runtime::Builder::new_current_thread().build()?,
    };
    let spawn = || drop(mini::spawn(noted(sleeper(|| mini::time::sleep(HOUR)))));
    runtime.block_on(measure(tasks, spawn, mini::time::sleep))
}

fn on_tokio(layout: Layout, tasks: u64) -> io::Result<(Memory, Memory)> {
    let runtime = match layout {
        Layout::Shared => tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    let spawn = || drop(tokio::spawn(noted(sleeper(|| tokio::time::sleep(HOUR)))));
    runtime.block_on(measure(tasks, spawn, tokio::time::sleep))
}

fn on_local_smol(tasks: u64) -> io::Result<(Memory, Memory)> {
    let local = LocalExecutor::new();
    let spawn = || local.spawn(noted(sleeper(|| Timer::after(HOUR)))).detach();
    smol::block_on(local.run(measure(tasks, spawn, Timer::after)))
}

fn on_shared_smol(tasks: u64) -> io::Result<(Memory, Memory)> {
    static SHARED: Executor<'static> = Executor::new();
    for _ in 0..2 {
        std::thread::spawn(|| smol::block_on(SHARED.run(smol::future::pending::<()>())));
    }
    let spawn = || SHARED.spawn(noted(sleeper(|| Timer::after(HOUR)))).detach();
    smol::block_on(measure(tasks, spawn, Timer::after))
}

async fn on_monoio(tasks: u64) -> io::Result<(Memory, Memory)> {
    let spawn = || drop(monoio::spawn(noted(sleeper(|| monoio::time::sleep(HOUR)))));
    measure(tasks, spawn, monoio::time::sleep).await
}

/// The task that is weighed.
async fn sleeper<S: Future>(sleep: impl FnOnce() -> S) {
    POLLED.fetch_add(1, Ordering::Relaxed);
    sleep().await;
}

/// The memory with a few tasks, and with `tasks` more; all of them asleep.
async fn measure<P: Future>(
    tasks: u64,
    spawn: impl Fn(),
    pause: impl Fn(Duration) -> P,
) -> io::Result<(Memory, Memory)> {
    spawn_all(BATCH, &spawn, &pause).await;
    let before = Memory::now()?;
    spawn_all(tasks, &spawn, &pause).await;
    Ok((before, Memory::now()?))
}

/// Returns when all of them are asleep; the counter moves just before.
async fn spawn_all<P: Future>(tasks: u64, spawn: &impl Fn(), pause: &impl Fn(Duration) -> P) {
    let target = POLLED.load(Ordering::Relaxed) + tasks;
    let mut spawned = 0;
    while POLLED.load(Ordering::Relaxed) < target {
        let batch = BATCH.min(tasks - spawned);
        (0..batch).for_each(|_| spawn());
        spawned += batch;
        pause(Duration::from_millis(1)).await;
    }
    pause(Duration::from_millis(10)).await;
}
