//! Steps that each may panic, as a waker is foreign code: all are done, and the first panic is resumed at the end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[derive(Default)]
pub(crate) struct Steps {
    first: Option<Box<dyn Any + Send>>,
}

impl Steps {
    pub(crate) fn run(&mut self, step: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(step)) {
            self.first.get_or_insert(panic);
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(panic) = self.first.take()
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
