//! Simulation: runs a program under a virtual clock, with a schedule and random numbers that a seed determines.
//!
//! The scheduler and the clock, tasks and timers are the ones that run in production. Two things differ: the function
//! that picks the next task, and a clock that jumps to the next deadline when no task can run. So one test tries many
//! schedules, an hour passes in no time, and a seed that fails will fail again.
//!
//! [`#[mini::test(sim, seeds = 200)]`](crate::test) runs a test under many seeds; [`Sim`] runs one. In either,
//! [`current`] is the simulation.
//!
//! # What is simulated
//!
//! - Tasks of [`spawn`](crate::spawn) and [`spawn_local`](crate::spawn_local): the seed draws one of four strategies
//!   that choose the next task; one of them lets a task fall far behind the others. A task may also yield at operations
//!   of mini that need not wait, such as taking a free lock, as if it had spent its budget; the seed decides where. The
//!   seed also orders the runnable children of a [`scope!`](crate::scope) and similar macros, and each child may yield
//!   in the same way. The [ids](crate::task::Id) of tasks are counted from 1 in each simulation.
//! - Time: [`sleep`](crate::time::sleep) and all that is built on it. Only [`mini::time`](crate::time) is virtual; with
//!   [`interpose!`] the standard library's clocks are too.
//! - [`spawn_blocking`](crate::spawn_blocking): the job runs on the same thread, after up to a millisecond of virtual
//!   time.
//! - The network: [`Current::host`] adds hosts, which have addresses, names, ports and tasks of their own, and can
//!   crash, restart and pause; links between them have a latency, lose packets if asked to, and can be cut in one
//!   direction or both. The TCP and UDP types of [`mini::net`](crate::net), and everything built on them, are the ones
//!   of production. Connections behave as on Linux: lost packets are retransmitted, buffers fill, a closed port
//!   refuses, a host that is off does not answer. By default the network is [rough](Current::rough).
//! - Signals: [`Current::signal`] sends one to the listeners of a host.
//! - Files, all of [`mini::fs`](crate::fs): a file system in memory, which begins empty. [`Disk`] is the disk of a
//!   host. It has a capacity, operations on it fail at a configurable rate, and a crash of the host loses data that
//!   were not synced.
//! - Lack of progress is a failure: in a deadlock, nothing is left that could wake a task; in a livelock, a million
//!   polls take no virtual time; and a program may take at most an hour of virtual time. `step_limit` and `time_limit`
//!   of `#[mini::test(sim)]` and of [`Sim`] change these numbers. A poll that does not return, because it waits for the
//!   system or computes forever, can only be reported: after a second of real time a line on stderr names its task, the
//!   thread and the seed, unless `MINI_WARN=0` is set. The report comes once per line of code and process.
//!
//! # What is not
//!
//! Unix sockets, pipes and other descriptors that an [`AsyncFd`](crate::io::AsyncFd) may hold are real ones. They work
//! among the tasks of a simulation, whatever the host. Each host has its own names for Unix sockets; these names are
//! not files. A simulated socket has no meaningful descriptor: giving it to the standard library or to an `AsyncFd` is
//! an error. A TCP or UDP socket of the standard library cannot become one of mini's either. Joining a multicast group,
//! sending to one, and broadcasting are errors; urgent data are not simulated.
//!
//! Starting a child process is an error, and so is reading the standard input; output to the standard output is written
//! as usual. If another thread wakes a task, the simulation fails. A job that blocks on a task
//! ([`block_on`](crate::block_on), `blocking_recv`) panics, as there is no thread to run that task. The clock cannot be
//! [resumed](crate::time::resume).
//!
//! A `HashMap` of the standard library has another order in each process, and other clocks and random numbers than
//! [`Current::rand`] are the system's, unless the test binary calls [`interpose!`]. If these matter, two runs of a seed
//! differ, and `MINI_SIM_CHECK=1` reports it.
//!
//! # Faults
//!
//! A simulation injects faults that the program must survive: in its network, on its disks, at a [`buggify!`] of the
//! program, and where [`Current::cancel_at_random`] drops a future. Faults are numbered in the order in which they
//! occur. [`Failure::faults`] lists the faults of a failed run, and [`Sim::skip`] leaves some out.
//!
//! If a seed of a `#[mini::test(sim)]` fails, it is run again without some of its faults, until none can be left out,
//! for at most ten seconds and 300 runs. A run counts if it fails in the same way: with the same kind of failure, at
//! the same place, and in the same words except for numbers. Without a fault the program takes another path and meets
//! other faults. So the remaining numbers have a meaning only together: all others are skipped, even numbers that the
//! first run did not reach. The report and its picture show a last run with only these faults.
//!
//! The panics of these runs are not printed: a hook suppresses them. It is set when the first seed of a process has
//! failed, and passes on all other panics. The program's own output appears once per run.
//!
//! A seed, with the faults to skip, is valid for one build. The report names the compiler, if the executable contains
//! its version, and a hash of `Cargo.lock`.

mod buggify;
mod by_task;
mod cancel;
mod coverage;
mod current;
#[cfg_attr(not(feature = "fs"), path = "sim/no_disk.rs")]
pub(crate) mod disk;
mod failure;
pub(crate) mod hosts;
mod interpose;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[doc(hidden)]
pub mod interposed;
mod last;
mod machines;
pub(crate) mod names;
mod network;
mod panics;
mod picks;
mod picture;
pub(crate) mod preempt;
mod rerun;
mod run;
mod seeds;
mod shrink;
mod sites;
mod skips;
mod steps;
mod strategy;
mod tasks;
mod toolchain;
pub(crate) mod unseen;
mod wish;
pub(crate) mod world;

#[doc(inline)]
pub use crate::{
    __interpose as interpose, __sim_assert_always as assert_always, __sim_assert_reachable as assert_reachable,
    __sim_assert_sometimes as assert_sometimes, __sim_buggify as buggify,
};
#[doc(hidden)]
pub use buggify::misbehaves;
pub use cancel::CancelAtRandom;
#[doc(hidden)]
pub use coverage::{note_always, note_reachable, note_sometimes};
pub use current::{Current, Settle, current, rand, try_current};
#[cfg(feature = "fs")]
pub use disk::Disk;
pub use failure::Failure;
pub use mini_context::sim::Fault;
#[doc(hidden)]
pub use mini_context::sim::is_simulated;
pub use names::Names;
pub use network::Link;
pub use run::Sim;
pub use seeds::Outcome;
#[doc(hidden)]
pub use seeds::Seeds;
