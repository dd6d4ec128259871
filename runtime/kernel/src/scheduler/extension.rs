//! The seam to the layers above: what a runtime keeps for them, and tells them beside what observers hear.

use std::any::Any;

use crate::scheduler::shared::Shared;
use crate::task::{JoinError, Source};

/// The layers above a runtime. None of its calls may panic.
pub trait Extension: Send + Sync {
    /// A panic unwinds out of a `block_on`, whose future is gone.
    fn main_panicked(&self, shared: &Shared);

    /// A panic that no join handle will see.
    fn unseen_panic(&self, error: &JoinError);

    /// The text of an output that is an `Err`, of a task without a join handle; `None` if it is no failure.
    fn text_of(&self, type_name: &str, output: &dyn Any) -> Option<String>;

    /// The task `source` has ended with an error of that text, which no join handle will see.
    fn unseen_error(&self, source: Source, text: String);

    /// For the module that has set it.
    fn as_any(&self) -> &dyn Any;
}
