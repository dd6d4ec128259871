//! What a task of the model does at each poll, and what has happened to it, as it says itself.

use std::future::Future;
use std::mem::take;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};

use mini::task::{AbortHandle, yield_now};

/// What a task does at its next poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    #[default]
    Wait,
    WakeSelf,
    Yield,
    AbortSelf,
    Finish,
    Panic,
}

/// What has happened to a task, as it says itself.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) next: Mutex<Step>,
    pub(super) polls: AtomicUsize,
    pub(super) drops: AtomicUsize,
    pub(super) dropped_on: Mutex<Option<ThreadId>>,
    pub(super) outputs: AtomicUsize,
    pub(super) output_drops: AtomicUsize,
    pub(super) wakers: Mutex<Vec<Waker>>,
    pub(super) itself: Mutex<Option<AbortHandle>>,
}

/// The future of a task.
pub(super) struct Script {
    pub(super) facts: Arc<Facts>,
    /// Its destructor wakes the task.
    pub(super) cries: bool,
}

/// What a task returns, or panics with.
pub(super) struct Output(Arc<Facts>);

impl Future for Script {
    type Output = Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        let facts = &self.facts;
        facts.polls.fetch_add(1, SeqCst);
        let mine = cx.waker().clone();
        let mut wakers = facts.wakers.lock().unwrap();
        if wakers.len() < 4 {
            wakers.push(mine);
        }
        drop(wakers);
        let step = take(&mut *facts.next.lock().unwrap());
        match step {
            Step::Wait => {}
            Step::WakeSelf => cx.waker().wake_by_ref(),
            Step::Yield => assert!(pin!(yield_now()).poll(cx).is_pending()),
            Step::AbortSelf => {
                let itself = facts.itself.lock().unwrap().clone();
                itself.expect("it has not ended").abort();
            }
            Step::Finish => return Poll::Ready(Output::new(facts)),
            Step::Panic => resume_unwind(Box::new(Output::new(facts))),
        }
        Poll::Pending
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.facts.drops.fetch_add(1, SeqCst);
        *self.facts.dropped_on.lock().unwrap() = Some(thread::current().id());
        if self.cries {
            let wakers = self.facts.wakers.lock().unwrap().clone();
            wakers.iter().for_each(Waker::wake_by_ref);
            if let Some(itself) = self.facts.itself.lock().unwrap().clone() {
                itself.abort();
            }
        }
    }
}

impl Output {
    fn new(facts: &Arc<Facts>) -> Self {
        facts.outputs.fetch_add(1, SeqCst);
        Self(Arc::clone(facts))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.0.output_drops.fetch_add(1, SeqCst);
    }
}
