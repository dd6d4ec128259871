//! What the model knows of a task, and what must have happened to it once it has run.

use std::fmt;
use std::future::Future;
use std::mem::{replace, take};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use mini::task::{AbortHandle, Cancel, JoinError, JoinHandle, unconstrained};

use super::script::{Facts, Output, Step};

pub(super) enum Join {
    Handle(JoinHandle<Output>),
    Cancel(Cancel<Output>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Finished,
    Panicked,
    Cancelled,
}

/// What was asked of a task since it ran last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) wake: bool,
    pub(super) remote_wake: bool,
    pub(super) cancel: bool,
    pub(super) remote_cancel: bool,
}

pub(super) struct Known {
    pub(super) facts: Arc<Facts>,
    pub(super) is_shared: bool,
    /// It lies in the inbox, where its owner does not know it yet.
    pub(super) is_posted: bool,
    pub(super) join: Option<Join>,
    pub(super) aborts: Vec<AbortHandle>,
    pub(super) asked: Asked,
    pub(super) step: Step,
    pub(super) polls: usize,
    pub(super) end: Option<End>,
    pub(super) joiner: Option<Arc<Joiner>>,
}

/// Counts wakes.
#[derive(Default)]
pub(super) struct Joiner(pub(super) AtomicUsize);

impl Known {
    pub(super) fn note_cancel(&mut self, is_remote: bool) {
        // The owner does not know yet what is in its inbox, and asks as other threads do.
        let is_remote = is_remote || self.is_posted;
        self.asked.cancel |= !is_remote || self.is_shared;
        self.asked.remote_cancel |= is_remote && !self.is_shared;
    }

    /// Whether what was asked of it has happened.
    pub(super) fn is_settled(&self) -> bool {
        let (is_dropped, polls) = (self.facts.drops.load(SeqCst) == 1, self.facts.polls.load(SeqCst));
        let ends = matches!(self.step, Step::Finish | Step::Panic | Step::AbortSelf);
        match self.asked {
            _ if self.end.is_some() => true,
            asked if asked.cancel || asked.remote_cancel => is_dropped,
            asked if asked.wake || asked.remote_wake => {
                if ends {
                    is_dropped
                } else {
                    polls >= self.polls + self.least()
                }
            }
            _ => true,
        }
    }

    /// The polls that a wake is for.
    fn least(&self) -> usize {
        1 + usize::from(matches!(self.step, Step::WakeSelf | Step::Yield))
    }

    /// Compares what has happened with what was asked, and takes note of it.
    pub(super) fn account(&mut self) {
        self.is_posted = false;
        let asked = take(&mut self.asked);
        let step = take(&mut self.step);
        let polls = self.facts.polls.load(SeqCst);
        let polled = polls - replace(&mut self.polls, polls);
        if self.end.is_some() {
            return assert_eq!(polled, 0, "polled after its end");
        }
        let ways = if self.is_shared { usize::from(asked.is_woken()) } else { asked.ways() };
        let extra = usize::from(matches!(step, Step::WakeSelf | Step::Yield));
        let (least, most) = match asked {
            Asked { cancel: true, .. } => (0, 0),
            // The owner may run the task before it hears of the cancellation, but only for a reason.
            Asked { remote_cancel: true, wake, .. } => (0, usize::from(wake) * (1 + extra)),
            _ if ways == 0 => (0, 0),
            _ if matches!(step, Step::Finish | Step::Panic | Step::AbortSelf) => (1, 1),
            _ => (1 + extra, ways + extra),
        };
        assert!((least..=most).contains(&polled), "{polled} polls of {least} to {most}: {asked:?}, {step:?}, {self:?}");
        self.end = match step {
            Step::Finish if polled > 0 => Some(End::Finished),
            Step::Panic if polled > 0 => Some(End::Panicked),
            Step::AbortSelf if polled > 0 => Some(End::Cancelled),
            _ if asked.cancel || asked.remote_cancel => Some(End::Cancelled),
            _ => None,
        };
        self.check_end();
    }

    fn check_end(&mut self) {
        let ended = usize::from(self.end.is_some());
        let outputs = usize::from(matches!(self.end, Some(End::Finished | End::Panicked)));
        let facts = &self.facts;
        assert_eq!(facts.drops.load(SeqCst), ended, "{self:?}");
        assert_eq!(facts.outputs.load(SeqCst), outputs, "{self:?}");
        let dropped = if self.join.is_none() { outputs } else { 0 };
        assert_eq!(facts.output_drops.load(SeqCst), dropped, "{self:?}");
        assert!(ended == 0 || *facts.dropped_on.lock().unwrap() == Some(thread::current().id()));
        if let Some(joiner) = &self.joiner {
            assert_eq!(joiner.0.load(SeqCst), ended, "{self:?}");
        }
        if self.end.is_some() {
            *facts.itself.lock().unwrap() = None;
        }
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.facts;
        let numbers =
            [&facts.polls, &facts.drops, &facts.outputs, &facts.output_drops].map(|number| number.load(SeqCst));
        f.debug_struct("Known")
            .field("is_shared", &self.is_shared)
            .field("asked", &self.asked)
            .field("step", &self.step)
            .field("polls_before", &self.polls)
            .field("end", &self.end)
            .field("is_detached", &self.join.is_none())
            .field("polls, drops, outputs, output drops", &numbers)
            .finish_non_exhaustive()
    }
}

impl Asked {
    fn is_woken(self) -> bool {
        self.wake || self.remote_wake
    }

    pub(super) fn is_any(self) -> bool {
        self.is_woken() || self.cancel || self.remote_cancel
    }

    /// How often an owned task may hear of its wakes.
    fn ways(self) -> usize {
        usize::from(self.wake) + usize::from(self.remote_wake)
    }
}

impl End {
    pub(super) fn of(result: &Result<Output, JoinError>) -> Self {
        match result {
            Ok(_) => End::Finished,
            Err(error) if error.is_panic() => End::Panicked,
            Err(_) => End::Cancelled,
        }
    }
}

impl Join {
    /// Without the budget, of which the model knows nothing.
    pub(super) fn poll(mut self, waker: &Waker) -> (Self, Poll<Result<Output, JoinError>>) {
        let mut cx = Context::from_waker(waker);
        let polled = match &mut self {
            Join::Handle(handle) => pin!(unconstrained(handle)).poll(&mut cx),
            Join::Cancel(cancel) => pin!(unconstrained(cancel)).poll(&mut cx),
        };
        (self, polled)
    }
}

impl Wake for Joiner {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
