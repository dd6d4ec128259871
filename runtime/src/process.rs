//! Child processes: start one, talk to it through pipes, wait for its end.
//!
//! [`Command`] configures the program to start, like the standard library's. [`output`](Command::output) and
//! [`status`](Command::status) run it to its end; [`spawn`](Command::spawn) returns a [`Child`]. A child whose
//! [`Child`] is dropped keeps running; [`kill_on_drop`](Command::kill_on_drop) kills it. The runtime sees to it that no
//! child stays a zombie.
//!
//! # Examples
//!
//! ```
//! # mini::block_on(async {
//! use mini::process::Command;
//!
//! let output = Command::new("echo").arg("hello").output().await?;
//! assert_eq!(output.stdout, b"hello\n");
//! # std::io::Result::Ok(()) }).unwrap();
//! ```

// A child is started by the standard library; `process/watch.rs` notices its end. Its pipes are those of
// `mini_net`.
//
// # Who reaps
//
// A child that has ended stays in the system's table as a *zombie* until its parent asks for its status (wait(2)), and
// until then no other process gets its id. Exactly one value owns the right to ask, and moves:
//
// 1. `Child` itself, in `wait` and `try_wait`.
// 2. A `Child` that is dropped before that leaves it to a thread, which ends with the child (`process/orphans.rs`).
//
// Only the owner gives a process id to kill(2), and not after it has asked with success. So a signal never meets
// another process that has got the same number.
//
// # Rejected
//
// - Reaping by SIGCHLD on Linux too: the signal does not say whose end it announces, so each one is a question about
//   every child; a pidfd wakes the task that waits.
// - waitpid(-1): it takes the status of children that other libraries wait for.

mod child;
mod command;
mod orphans;
mod output;
#[cfg_attr(not(feature = "sim"), path = "process/not_simulated.rs")]
mod simulated;
mod stdin;
mod sys;
mod watch;

pub use child::{Child, Wait};
pub use command::Command;
pub use output::{ChildOutput, ChildStderr, ChildStdout, kind};
pub use stdin::{ChildStdin, Write, WriteAll};
