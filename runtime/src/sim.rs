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
//!   that need not wait, such as taking a free lock, as if it had spent its budget; also drawn from the seed.
//! - Time: [`sleep`](crate::time::sleep) and all that is built on it. Only [`mini::time`](crate::time) is virtual.
//! - [`spawn_blocking`](crate::spawn_blocking): the job runs on the same thread, after up to a millisecond of virtual
//!   time.
//! - What can never go on is a failure: a deadlock, if nothing is left that could wake a task; a livelock, if a million
//!   runs take no time; a program that takes more than an hour of virtual time.
//!
//! # What is not
//!
//! Files are those of the system: what it has cached comes at once, the rest is a blocking job.
//!
//! Sockets, pipes, signals and child processes: to wait for one fails. A thread that wakes a task: it fails too. A job
//! may not block on a task ([`block_on`](crate::block_on), `blocking_recv`), as there is no thread to run that: it
//! panics. A `HashMap` of the standard library has another order in each process, and other clocks and random numbers
//! than
//! [`Current::rand`] are the system's: where these matter, two runs of a seed differ, and `MINI_SIM_CHECK=1` says so.

mod current;
pub(crate) mod hosts;
mod network;
pub(crate) mod preempt;
mod run;
mod seeds;
mod steps;
mod strategy;
pub(crate) mod world;

pub use current::{Current, Settle, current, try_current};
pub use network::{Link, Names};
pub use run::{Failure, Sim};
#[doc(hidden)]
pub use seeds::{Outcome, Seeds};
