//! The number of polls of a task, and the content of its cell, in four bytes.
//!
//! The runner counts the polls, for threads that print the task. The stage is for the functions in `cell.rs`, which
//! have the right to the stage when they call; kept here and not in an enum of future and output, it costs an idle task
//! nothing.

use crate::primitives::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The content of a cell.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Future,
    Output,
    Empty,
}

const SHIFT: u32 = 30;
const COUNT: u32 = (1 << SHIFT) - 1;

#[derive(Debug)]
pub(super) struct StageWord(AtomicU32);

impl StageWord {
    /// Never polled, with a future.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Modulo 2^30.
    pub(super) fn polls(&self) -> u32 {
        // Acquire: what a reader reads after it, the state and what a poll changes, is not older (`sight.rs`).
        self.0.load(Acquire) & COUNT
    }

    /// The runner polls the future, which is what the cell holds.
    pub(super) fn count_poll(&self) {
        // Release: pairs with the Acquire in `polls`.
        self.0.store(self.0.load(Relaxed).wrapping_add(1) & COUNT, Release);
    }

    /// Whether that is what the cell holds.
    pub(super) fn is(&self, stage: Stage) -> bool {
        self.0.load(Relaxed) >> SHIFT == stage as u32
    }

    /// The caller has the right to the stage, which is handed on with the state or the references of the task.
    pub(super) fn set_stage(&self, stage: Stage) {
        // Release: as in `count_poll`, whose number it writes again.
        self.0.store(self.polls() | (stage as u32) << SHIFT, Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_count_wraps_without_touching_the_stage() {
        let stage = StageWord(AtomicU32::new(COUNT - 1));
        stage.count_poll();
        stage.count_poll();
        assert_eq!((stage.polls(), stage.is(Stage::Future)), (0, true));
        stage.count_poll();
        for next in [Stage::Output, Stage::Empty] {
            stage.set_stage(next);
            assert_eq!((stage.polls(), stage.is(next), stage.is(Stage::Future)), (1, true, false));
        }
    }
}
