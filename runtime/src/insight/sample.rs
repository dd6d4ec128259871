//! `Sample`: what a thread writes down of itself in a signal handler, for another thread that asks.
//!
//! One thread asks, the watcher. It waits for an answer, and after a while withdraws the question: the thread may block
//! the signal, or be in an uninterruptible wait in the kernel. When its handler runs at last, no question is pending.
//!
//! ```text
//!            1 ask(thread)         3 answer(thread)         4 its end
//!     free ---------------> asked ------------------> taking ---------> taken
//!      ^                      |                                           |
//!      |      2 withdraw      |                  5 take                   |
//!      +----------------------+<------------------------------------------+
//! ```
//!
//! An answer that comes while the question is withdrawn stays *taken* until the next question, which begins with a
//! *take*. A handler that never ends, as in a child of fork(2), ends all questions.

use mini_kernel::primitives::atomic::Ordering::{Acquire, Relaxed, Release};
use mini_kernel::primitives::atomic::{AtomicI32, AtomicUsize};

/// States other than *asked*, in which the state is the number of the thread, from 1 on.
const FREE: i32 = 0;
const TAKING: i32 = -1;
const TAKEN: i32 = -2;

pub(super) struct Sample {
    state: AtomicI32,
    /// How many words of the answer there are.
    length: AtomicUsize,
    words: Box<[AtomicUsize]>,
}

impl Sample {
    /// With room for so many words.
    pub(super) fn new(room: usize) -> Self {
        let words = (0..room).map(|_| AtomicUsize::new(0)).collect();
        Self { state: AtomicI32::new(FREE), length: AtomicUsize::new(0), words }
    }

    /// Asks `thread`; `false` if another one has not ended its answer to a question before.
    pub(super) fn ask(&self, thread: i32) -> bool {
        let _ = self.take();
        self.state.compare_exchange(FREE, thread, Release, Relaxed).is_ok()
    }

    /// Whether a handler has begun an answer and not ended it, to whatever question.
    pub(super) fn is_being_answered(&self) -> bool {
        self.state.load(Acquire) == TAKING
    }

    /// Asks no longer.
    pub(super) fn withdraw(&self, thread: i32) {
        let _ = self.state.compare_exchange(thread, FREE, Relaxed, Relaxed);
    }

    /// The answer, if it has come.
    pub(super) fn take(&self) -> Option<Vec<usize>> {
        if self.state.load(Acquire) != TAKEN {
            return None;
        }
        let words = self.words.iter().take(self.length.load(Relaxed)).map(|word| word.load(Relaxed)).collect();
        self.state.store(FREE, Relaxed); // the next question releases it
        Some(words)
    }

    /// Answers in the handler of `thread`, if that is asked: `fill` writes the words, and returns how many there are.
    /// Takes no lock, allocates nothing and does not panic.
    pub(super) fn answer(&self, thread: i32, fill: impl FnOnce(&[AtomicUsize]) -> usize) {
        if self.state.compare_exchange(thread, TAKING, Acquire, Relaxed).is_err() {
            return;
        }
        self.length.store(fill(&self.words), Relaxed);
        self.state.store(TAKEN, Release);
    }
}

#[cfg(all(test, loom))]
#[path = "sample/models.rs"]
mod models;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// An answer of these words.
    fn answer(sample: &Sample, thread: i32, words: &[usize]) {
        sample.answer(thread, |room| {
            room.iter().zip(words).for_each(|(word, &new)| word.store(new, Relaxed));
            words.len()
        });
    }

    #[test]
    fn who_is_asked_answers_once() {
        let sample = Sample::new(3);
        answer(&sample, 7, &[1]);
        assert_eq!(sample.take(), None, "nobody asks");
        assert!(sample.ask(7));
        answer(&sample, 8, &[1]);
        assert_eq!(sample.take(), None, "another one is asked");
        answer(&sample, 7, &[1, 2]);
        answer(&sample, 7, &[3, 4]);
        assert_eq!(sample.take(), Some(vec![1, 2]));
        assert_eq!(sample.take(), None);
    }

    #[test]
    fn who_answers_too_late_is_not_heard() {
        let sample = Sample::new(3);
        assert!(sample.ask(7));
        sample.withdraw(7);
        answer(&sample, 7, &[1]);
        assert_eq!(sample.take(), None);
    }

    #[test]
    fn an_answer_that_came_with_the_withdrawal_is_forgotten_by_the_next_question() {
        let sample = Sample::new(3);
        assert!(sample.ask(7));
        answer(&sample, 7, &[1]);
        sample.withdraw(7);
        assert!(sample.ask(7));
        assert_eq!(sample.take(), None);
    }

    #[test]
    fn while_an_answer_is_written_nobody_is_asked() {
        let sample = Sample::new(3);
        assert!(sample.ask(7));
        sample.answer(7, |_| {
            sample.withdraw(7);
            assert!(sample.is_being_answered() && !sample.ask(8));
            0
        });
        assert!(!sample.is_being_answered());
        assert_eq!(sample.take(), Some(vec![]));
    }
}
