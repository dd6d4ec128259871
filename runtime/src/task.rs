//! Tasks: futures that the runtime polls, the handles to them, and what a task may ask about itself.
//!
//! [`spawn`] starts one and gives a [`JoinHandle`], which waits for its output and can cancel it; a [`JoinSet`] has
//! many. [`spawn_blocking`] takes a closure that may block, [`spawn_local`] a future that is not `Send`.
//!
//! # Examples
//!
//! ```
//! # mini::block_on(async {
//! use mini::task::JoinSet;
//!
//! let one = mini::spawn(async { 1 + 1 });
//! assert_eq!(one.await.unwrap(), 2);
//!
//! let mut many: JoinSet<u32> = JoinSet::new();
//! for number in 1..=3 {
//!     many.spawn(async move { number * number });
//! }
//! let mut sum = 0;
//! while let Some(square) = many.join_next().await {
//!     sum += square.unwrap();
//! }
//! assert_eq!(sum, 14);
//! # });
//! ```

mod budget;
mod builder;
mod cancel;
pub mod coop;
pub(crate) mod group;
mod idle;
mod in_place;
mod join_set;
pub(crate) mod large;
mod local;
mod shield;
mod span;
mod spawn;
mod unseen;

#[cfg(feature = "futures-task")]
pub use crate::futures_task::LocalSpawner;
pub use crate::structure::{LocalScope, Scope, ScopedJoinHandle, TryLocalScope, TryScope};
pub use budget::{ConsumeBudget, Unconstrained, consume_budget, unconstrained};
pub use builder::{Builder, try_name};
pub use cancel::{CancelOnDrop, CancelToken, Cancelled, Reason, Run, WaitForCancel, WaitForCancelOwned};
pub use group::{FailedTask, Group, Outcome, Report, ShutdownGroup, Straggler, WaitGroup};
pub use idle::{Idle, idle};
pub use in_place::block_in_place;
pub use join_set::{JoinNext, JoinNextWithId, JoinSet};
#[doc(hidden)]
pub use local::LocalPlace;
pub use local::{AccessError, LocalKey, TaskLocalFuture};
pub(crate) use mini_kernel::task::Source;
pub use mini_kernel::task::{AbortHandle, Cancel, Id, JoinError, JoinHandle, SharedJoinHandle};
pub use shield::{Shield, shield};
pub use spawn::{YieldNow, id, spawn, spawn_blocking, spawn_local, try_id, yield_now};
pub(crate) use spawn::{spawn_blocking_on, spawn_local_from, spawn_on};
pub use unseen::TaskError;
pub(crate) use unseen::{describe, with_causes};
