//! Concurrency inside of one task: scopes with children that borrow, joins and races of futures.
//!
//! Here is what the macros expand to. Programs use the macros, and the types of [`task`](crate::task).

pub(crate) mod branches;
mod child;
mod join;
mod macros;
mod output;
mod race;
mod ready;
mod scope;
mod wakers;

pub use branches::Empty;
pub use join::{awaited, branch, done, identity, infallible, join, maybe, whole};
pub use output::ScopedJoinHandle;
pub use race::{Outcome, biased, fair, no_branch_left, racer};
pub use scope::{LocalScope, Scope, TryLocalScope, TryScope};
