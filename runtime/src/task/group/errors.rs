//! `Errors`: what groups know of the errors and panics of their tasks, until that is said of one whose handle was
//! dropped.
//!
//! A group can show errors of any type (`outcome.rs`), and the runtime only those of some types (`task/unseen.rs`). But
//! the group judges an output before it is known whether the output will be read. So each error is left here, and found
//! by the id of the task when its output is dropped: by the thread that has just polled the task, or later with its
//! handle. An error that was read instead is not looked for; later errors replace it.
//!
//! Rejected: reporting the error from the future of the task (a handle may be dropped after that). A place in the label
//! of the task (16 bytes for each task of a group). Judging the output once more when it is dropped (a reference to the
//! group for each task).

use std::collections::VecDeque;

use mini_kernel::primitives::{Mutex, lock};

use super::super::Id;

/// How many errors are kept. One is missed only if so many tasks fail between the end of a task and the drop of its
/// handle; the runtime's own text is said then.
const KEPT: usize = 128;

/// Errors of tasks of one runtime; the last ones come last.
#[derive(Default)]
pub(crate) struct Errors(Mutex<VecDeque<(Id, GroupError)>>);

/// An error of a task in a group.
pub(crate) struct GroupError {
    /// How messages name the group.
    pub(crate) group: String,
    pub(crate) text: String,
}

impl Errors {
    /// Leaves the error of a task that is about to end.
    pub(super) fn leave(&self, task: Id, error: GroupError) {
        let mut errors = lock(&self.0);
        if errors.len() == KEPT {
            errors.pop_front();
        }
        errors.push_back((task, error));
    }

    /// The error of a task whose output is dropped.
    pub(crate) fn take(&self, task: Id) -> Option<GroupError> {
        let mut errors = lock(&self.0);
        let place = errors.iter().rposition(|(id, _)| *id == task)?;
        errors.remove(place).map(|(_, error)| error)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_last_errors_are_kept_and_each_is_taken_once() {
        let (errors, ids) =
            (Errors::default(), [(); KEPT + 1].map(|()| crate::block_on(async { crate::spawn(async {}).id() })));
        for id in ids {
            errors.leave(id, GroupError { group: String::new(), text: id.to_string() });
        }
        assert!(errors.take(ids[0]).is_none(), "it gave way to the last one");
        for id in &ids[1..] {
            assert_eq!(errors.take(*id).unwrap().text, id.to_string());
            assert!(errors.take(*id).is_none());
        }
    }
}
