//! The numbers that decide who runs and who is woken, each a time, a share or a size, with its reason.
//!
//! Read by the worker's loop (`worker.rs`), by the rule that wakes workers (`wake.rs`), by the monitor and the local
//! queue. A number that decides who runs, who is woken or when a worker looks around stands here or nowhere.
//!
//! Rejected: counting runs instead of time (a run takes 50 ns or 50 ms, so 64 of them delay a timer by 3 µs or by 3 s).

use std::time::Duration;

/// A worker looks at its driver and the injector after this time plus the run in progress.
///
/// It bounds how late an event is seen beside tasks that never wait. With looks every 100 µs the 99th percentile of an
/// echo with 64 connections doubled: a look that finds one event at a time costs a system call for each. Where tasks of
/// the class *again* wait, and no woken one, a worker looks after [`WAKE_COST`]: what comes then waits for them alone.
pub(crate) const LOOK_TIME: u64 = nanos(Duration::from_micros(500));

/// A worker looks after this many runs too: a look costs a system call, about as much as eight short runs.
pub(crate) const LOOK_RUNS: u32 = 64;

/// A task that has run for this long since it last waited, and asks to run once more, is of the class *again*.
///
/// As long as two wakes of a worker: a task that runs for less is done before another worker could have helped. If many
/// woken tasks wait it is [`LOOK_TIME`] divided by their number: a thousand tasks that compute would delay others by a
/// tenth of a second before they were of that class.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const AGAIN_AFTER: u32 = nanos(Duration::from_micros(100)) as u32;
/// In models, where each run takes a nanosecond.
#[cfg(any(loom, shuttle))]
pub(crate) const AGAIN_AFTER: u32 = 2;

/// The least that this comes to. One in eight short runs is measured, and charged with 2 µs at most: after a few such
/// samples, and not after one, tasks that do the same are of the same class.
pub(crate) const AGAIN_AT_LEAST: u32 = AGAIN_AFTER / 10;

/// While both classes have work, woken tasks get this many times the time of those of the class *again*.
///
/// Three quarters and a quarter; with the head start that is at least a fifth of any 5 ms for *again*.
pub(crate) const WOKEN_SHARE: i64 = 3;

/// Woken tasks may run this long before the share of *again* is looked at, so that a batch of them is not interrupted: the
/// delay that one task may impose on others.
pub(crate) const HEAD_START: i64 = nanos(TICK) as i64;

/// What is owed to *again* at most, in nanoseconds: after one long woken run others that were woken do not wait for a
/// third of it.
pub(crate) const MOST_OWED: i64 = 4 * HEAD_START;

/// By how much *again* may be ahead of its share, in nanoseconds: a run that the system has stopped for a while is no
/// reason to stop the class.
pub(crate) const MOST_AHEAD: i64 = 1_000 * HEAD_START;

/// How many tasks a worker takes from its inbox between two runs: other threads may post faster than it runs.
pub(crate) const MAIL_LIMIT: usize = LOOK_RUNS as usize;

/// What it costs to wake a parked worker: 15 µs of the waker, 23 µs until the other one runs, where a processor must
/// come out of its sleep on a virtual machine.
pub(crate) const WAKE_COST: u64 = nanos(Duration::from_micros(40));

/// What it costs to move a task to another worker: a few cache lines. Shorter runs are not worth a worker of their own.
pub(crate) const MOVE_COST: u64 = nanos(Duration::from_nanos(500));

/// Nanoseconds that a reading of the time takes. While runs are so short that readings would take more than a twentieth
/// of their time, some of them are left out.
pub(crate) const READ_COST: u32 = 12;

/// How many runs one reading serves at most. More would save less than a nanosecond a run, and leave more runs
/// unmeasured when some become long.
pub(crate) const READ_INTERVAL: u32 = 8;

/// How often the monitor looks, and how often workers compare their queues: the delay that one task may impose on
/// others.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// How much CPU time a run may take within a tick before its worker counts as stalled: from here on it delays its look.
pub(crate) const STALL: Duration = Duration::from_nanos(LOOK_TIME);

/// What a thief takes at most. It copies all of them before it knows whether it gets them, and the owner runs on
/// meanwhile.
pub(crate) const STEAL_BATCH: u32 = 128;

/// What a local queue holds: as many tasks as one turn of the driver brings.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const LOCAL_QUEUE: u32 = 1024;
#[cfg(any(loom, shuttle))]
pub(crate) const LOCAL_QUEUE: u32 = 4;

const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
