//! The seam to the layers above: what a runtime keeps for them, and tells them beside what observers hear.

use std::any::Any;

use crate::scheduler::shared::Shared;
use crate::task::{JoinError, TaskError};

/// The layers above a runtime. None of its calls may panic.
pub(crate) trait Extension: Send + Sync {
    /// A panic unwinds out of a `block_on`, whose future is gone.
    fn main_panicked(&self, shared: &Shared);

    /// A panic that no join handle will see.
    fn unseen_panic(&self, error: &JoinError);

    /// An error that no join handle will see.
    fn unseen_error(&self, error: TaskError);

    /// For the module that has set it.
    fn as_any(&self) -> &dyn Any;
}
