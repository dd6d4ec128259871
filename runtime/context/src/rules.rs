//! The numbers that decide which task runs, which worker is woken, and when a worker checks its driver: each a time, a
//! share or a size, with its reason. All numbers of that kind are here.
//!
//! Twelve are chosen, in the first three sections. All others follow from them, but for three: the length of a local
//! queue is a matter of memory, the width of the wheel's slots one of accuracy, and `IN_A_ROW` one of other crates.
//!
//! Read by the scheduler (`runtime/kernel/src/scheduler`), by the wheel (the wait for a crowd of timers), by the
//! reactor (the events of one turn), and by the budget. Not here: accuracy, memory, and what a builder sets.
//!
//! Rejected: counting polls instead of time (a poll takes 50 ns or 50 ms, so 64 of them delay a timer by 3 µs or 3 s).

use std::time::Duration;

// Times.

/// The delay that one task may impose on others: how often the monitor checks the workers, and workers compare their
/// queues.
pub const TICK: Duration = Duration::from_millis(1);

const COMPUTE_BOUND_TIME: Duration = Duration::from_micros(100);

/// A task that has run for this many nanoseconds since it last waited, and asks for another poll, is compute-bound.
///
/// Longer than two wakes of a worker: a task that needs less is done before another worker could have helped, and a
/// handler of requests that yields now and then stays among the woken ones. If many woken tasks wait, the limit is
/// [`CHECK_TIME`] divided by their number: otherwise a thousand tasks that compute would delay others by a tenth of a
/// second before they count as compute-bound.
#[cfg(not(any(loom, shuttle)))]
pub const COMPUTE_BOUND_AFTER: u32 = nanos(COMPUTE_BOUND_TIME) as u32;
/// In models, where each poll takes a nanosecond.
#[cfg(any(loom, shuttle))]
pub const COMPUTE_BOUND_AFTER: u32 = 2;

/// Nanoseconds that it costs to wake a parked worker: 15 µs of the waker, 23 µs until the other one runs, where a
/// processor must come out of its sleep on a virtual machine.
pub const WAKE_COST: u64 = nanos(Duration::from_micros(40));

/// Nanoseconds that it costs to move a task to another worker: a few cache lines. Shorter polls are not worth a worker
/// of their own.
pub const MOVE_COST: u64 = nanos(Duration::from_nanos(500));

/// Nanoseconds that a reading of the clock takes.
pub const READ_COST: u32 = 30;

/// The time that a thread waits for something that usually comes at once, before it continues without it. A person does
/// not notice this time.
pub const PATIENCE: Duration = Duration::from_millis(200);

// Shares.

/// While both classes have work, woken tasks get this many times the time of compute-bound ones.
///
/// Three quarters and a quarter; with the head start that is at least a fifth of any 5 ms for compute-bound tasks.
pub const WOKEN_SHARE: i64 = 3;

/// Gathering information may take one in this many parts of the time.
pub const OVERHEAD: u32 = 20;

// Sizes.

/// The most polls between two driver checks: a check costs a system call, about as much as eight short polls.
pub const CHECK_POLLS: u32 = 64;

/// The units that a task may spend in a poll before it has to yield.
pub const BUDGET: u8 = 128;

/// The units that a system call costs: it takes 0.3 to 3 µs, ten times as long as the other operations that are
/// counted. So a task whose sockets are always ready makes 16 calls in a poll, which is 5 to 50 µs; coming back costs a
/// hundredth of that.
pub const CALL: u8 = 8;

/// This many bytes cost as much as another call: copying them takes as long as the call itself.
pub const CALL_BYTES: usize = 16 << 10;

/// The number of times that the leaves of a task are refused in one poll after its budget is spent: no task has more
/// leaves at once. An executor inside a task does not let the poll end; if its leaves have no address, they are ready
/// after this many refusals.
pub const REFUSALS: u16 = (BUDGET as u16).pow(2);

/// The number of further refusals of a leaf in one poll, before an executor inside of the task is taken to poll it. A
/// set of futures of the crate `futures` polls a child twice, and streams of such sets nest.
pub const IN_A_ROW: u8 = 16;

// Driver checks and classes.

/// The time from one driver check of a worker to the next, in nanoseconds; the poll in progress comes on top.
///
/// It bounds the delay of an event while tasks run that never wait, by half of the delay that one task may impose:
/// there is a driver check in each such time. With checks every 100 µs the 99th percentile of an echo with 64
/// connections doubled: a check that finds one event at a time costs a system call for each.
pub const CHECK_TIME: u64 = nanos(TICK) / 2;

/// If compute-bound tasks wait, and no woken task, a driver check comes after this many nanoseconds, or rather
/// after the poll that ends nearest to then, judging by the mean of such polls. A newcomer then waits for compute-bound
/// tasks only, and no longer than for a task that is not of that class yet.
///
/// A check that finds something costs 5 to 6 µs: the call, a smaller batch for the task that it wakes, colder caches.
/// So this is the shortest interval of which a check takes one part in [`OVERHEAD`]. With 40 µs a QUIC stream lost 8 %.
pub const COMPUTE_BOUND_CHECK: u64 = nanos(COMPUTE_BOUND_TIME);

/// The lower limit of [`COMPUTE_BOUND_AFTER`] if many tasks wait: a tenth. A measured short poll is also charged with
/// the unmeasured polls around it. So tasks that do the same get into the same class after a few such samples, not
/// after one.
pub const COMPUTE_BOUND_AT_LEAST: u32 = COMPUTE_BOUND_AFTER / 10;

/// Woken tasks may run for this many nanoseconds before the share of compute-bound tasks is considered, so that a batch
/// of them is not interrupted.
pub const HEAD_START: i64 = nanos(TICK) as i64;

/// The most nanoseconds that are owed to compute-bound tasks. One head start is made up for at a time. After one
/// long woken poll, other woken tasks do not wait for a third of it.
pub const MOST_OWED: i64 = (WOKEN_SHARE + 1) * HEAD_START;

/// The most nanoseconds that a poll counts as when classes share the time: if the system stops a poll for a while, that
/// is no reason to stop its class.
pub const LONGEST_POLL: u64 = nanos(PATIENCE);

/// The number of tasks that a worker takes from its inbox between two polls: other threads may post faster than it
/// polls.
pub const MAIL_LIMIT: usize = CHECK_POLLS as usize;

/// The largest part of [`CHECK_POLLS`] that goes to an injector: tasks in the worker's own queues get a quarter,
/// however many come from outside, as compute-bound tasks do while woken tasks run.
pub const INJECTED_SHARE: u32 = CHECK_POLLS / (WOKEN_SHARE as u32 + 1) * WOKEN_SHARE as u32;

/// The most polls that one reading of the clock serves. With twice as many, a poll would save less than a nanosecond,
/// and more polls would go unmeasured when some become long.
pub const READ_INTERVAL: u32 = (READ_COST / 2).next_power_of_two();

/// After a long poll that was not known to be long and not measured, every poll is measured until this many were short.
pub const SURPRISE: u32 = CHECK_POLLS;

/// The CPU time that a poll may take within a tick before its worker counts as stalled: from here on it delays its
/// driver check.
pub const STALL: Duration = Duration::from_nanos(CHECK_TIME);

// Queues.

/// The most tasks that a thief takes, which is work until its second driver check. The thief copies them all before it
/// knows whether it gets them, and the owner keeps running during the copy.
pub const STEAL_BATCH: u32 = 2 * CHECK_POLLS;

/// The capacity of a local queue: 8 KiB of memory.
#[cfg(not(any(loom, shuttle)))]
pub const LOCAL_QUEUE: u32 = 1024;
#[cfg(any(loom, shuttle))]
pub const LOCAL_QUEUE: u32 = 4;

/// The most events that one turn of a reactor returns: as many as a local queue holds.
pub const EVENTS: usize = 1024;

// Spins.

/// The longest spin for a job, whose thread may spin too.
pub const SPIN_FOR_JOB: Duration = Duration::from_nanos(WAKE_COST / 2);

/// The longest spin for a wake by any thread: what a wait costs, as that thread may have to be woken first.
pub const SPIN_FOR_WAKE: Duration = Duration::from_nanos(WAKE_COST);

/// After spins that found nothing, one wait in this many begins with a spin, at most [`WAKE_COST`] long: that costs a
/// four-hundredth more, and a change is found in time.
pub const MOST_WAITS: u32 = OVERHEAD * OVERHEAD;

// Timers.

/// Timers that are fired or filed again under one lock.
pub const TIMER_BATCH: usize = CHECK_POLLS as usize;

/// A turn of the timers ends after this many nanoseconds, even if more timers are due or have to be filed again: other
/// timers and tasks do not wait for a million of them. The next turn continues.
pub const TIMER_TIME: u64 = WAKE_COST;

/// Up to this many timers can be filed again in the time that a wake costs, as each takes about as long as a reading of
/// the clock. A wheel with more timers files them again ahead of time.
pub const FEW_TIMERS: usize = (WAKE_COST / READ_COST as u64) as usize;

/// The width of a near slot of the wheel, a tick of its own, as a power of two of nanoseconds: 65.5 µs.
pub const SLOT_BITS: u32 = 16;

/// The most slots that the first timer of a crowd waits: as late as a worker with work sees an event.
pub const CROWD_SLOTS: u64 = CHECK_TIME.div_ceil(1 << SLOT_BITS);

/// Fewer timers are no crowd: this many wakes fit into the time between two driver checks.
pub const LEAST_CROWD: usize = CHECK_TIME.div_ceil(WAKE_COST) as usize;

const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
