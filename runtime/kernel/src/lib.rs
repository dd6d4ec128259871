//! The kernel of the [mini](https://github.com/mini-rt/mini) runtime: tasks, and the scheduler that runs them.
//!
//! A part of `mini-rt`, which builds, enters and ends a [`Shared`](scheduler::shared::Shared) and puts its layers on
//! four seams: [`Pick`](scheduler::pick::Pick), [`Observe`](scheduler::observe::Observe),
//! [`Extension`](scheduler::extension::Extension), and the walk over all tasks of a core. It knows none of them, and
//! has no features. It has no use by itself, and what it shows may change with any version.

// The types that `mini-rt` shows to users have pages. All other items are for that crate.
#![allow(rustdoc::private_intra_doc_links)]
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default)]

pub mod primitives;
#[macro_use]
pub mod say;
pub mod blocking;
pub mod scheduler;
pub mod task;
pub mod threads;

/// The path of this file, as debug information has it.
pub const ROOT: &str = file!();
