//! Concurrency inside of one task: scopes with children that borrow.

mod macros;
mod output;
mod ready;
mod scope;

pub use output::ScopedJoinHandle;
pub use scope::{LocalScope, Scope, TryLocalScope, TryScope};
