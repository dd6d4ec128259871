//! Simulation: a program under a virtual clock, with a schedule and random numbers that a seed determines.
//!
//! The scheduler and the clock, tasks and timers are the ones that run in production; what differs is one function,
//! which picks the task that runs next, and a clock that jumps to the next deadline when no task can run. So one test
//! tries many schedules, an hour passes in no time, and a seed that fails fails again.
//!
//! [`#[mini::test(sim, seeds = 200)]`](crate::test) runs a test under many seeds; [`Sim`] runs one. In either,
//! [`current`] is the simulation.
//!
//! # What is simulated
//!
//! - Tasks of [`spawn`](crate::spawn) and [`spawn_local`](crate::spawn_local): four strategies of choice, drawn from
//!   the seed, among them one that lets a task fall far behind the others. A task also yields at operations of mini
//!   that need not wait, such as taking a free lock, as if it had spent its budget; also drawn from the seed. Of the
//!   children of a [`scope!`](crate::scope) and its kin that could run, the seed says which goes first, and each may
//!   yield so. The [ids](crate::task::Id) of tasks are counted from 1 in each simulation.
//! - Time: [`sleep`](crate::time::sleep) and all that is built on it. Only [`mini::time`](crate::time) is virtual; with
//!   [`interpose!`] the standard library's clocks are too.
//! - [`spawn_blocking`](crate::spawn_blocking): the job runs on the same thread, after up to a millisecond of virtual
//!   time.
//! - The network: [`Current::host`] adds hosts, which have addresses, names, ports and tasks of their own, and can
//!   crash, restart and pause; links between them have a latency, lose packets, and can be cut in one direction or
//!   both. The types of [`mini::net`](crate::net) for TCP and UDP, and what is built on them, are the ones of
//!   production. Connections behave as those of Linux: lost packets come again later, buffers fill, a closed port
//!   refuses, a host that is off says nothing. By default the network is [rough](Current::rough).
//! - Signals: [`Current::signal`] sends one to the listeners of a host.
//! - Files, all of [`mini::fs`](crate::fs): a file system in memory, which begins empty. [`Disk`] is that of a host: a
//!   crash of it loses what was not synced, it fails at a rate, it has a capacity.
//! - What can never go on is a failure: a deadlock, if nothing is left that could wake a task; a livelock, if a million
//!   runs take no time; a program that takes more than an hour of virtual time. `step_limit` and `time_limit` of
//!   `#[mini::test(sim)]` and of [`Sim`] change these numbers. A poll that does not return, as it waits for the system
//!   or computes for ever, can only be told of: after a second of real time a line on stderr names its task, the thread
//!   and the seed, unless `MINI_WARN=0` says otherwise. It comes once for a line of code in a process.
//!
//! # What is not
//!
//! Unix sockets, pipes and what else an [`AsyncFd`](crate::io::AsyncFd) may hold are the system's, too. They work among
//! the tasks of a simulation, whatever the host; Unix sockets have names of their own for each host, which are no
//! files. A simulated socket has no descriptor that means anything: it cannot be given to the standard library or to an
//! `AsyncFd`, and says so; nor does a socket of the standard library for TCP or UDP become one of mini's. To join a
//! multicast group and to send to one, or to all, is an error; urgent data are not simulated.
//!
//! Child processes: to start one is an error, and so is reading the standard input; what is written to the standard
//! output goes out. A thread that wakes a task: the simulation fails. A job may not block on a task
//! ([`block_on`](crate::block_on), `blocking_recv`), as there is no thread to run that: it panics. The clock cannot be
//! [resumed](crate::time::resume).
//!
//! A `HashMap` of the standard library has another order in each process, and other clocks and random numbers than
//! [`Current::rand`] are the system's, unless the test binary says [`interpose!`]: where these matter, two runs of a
//! seed differ, and `MINI_SIM_CHECK=1` says so.
//!
//! # Faults
//!
//! A simulation does to a program what the program must bear: in its network, on its disks, at a [`buggify!`] of the
//! program, and where [`Current::cancel_at_random`] drops a future. Each fault has a number, in the order in which they
//! are met. [`Failure::faults`] lists those of a run that failed, and [`Sim::skip`] leaves some out.
//!
//! A seed of a `#[mini::test(sim)]` that fails is run again without some of its faults, until none can be left out, for
//! ten seconds and 300 runs at most. A run counts if it fails in the same way: of the same kind, at the same place, in
//! the same words but for numbers. A program goes another way without a fault, and meets others then, so the numbers
//! that are left mean what they say only together, and all others are skipped, those too that the first run has not
//! met. What is shown is a last run with only these faults, and so is the picture of it.
//!
//! The panics of these runs are not printed, by a hook that is set when the first seed of a process has failed, and
//! passes on all others. What the program prints by itself is there once for each run.
//!
//! The seed, with the faults to skip, is for one build: the report names the compiler, as far as the executable tells
//! it, and a hash of `Cargo.lock`.

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
