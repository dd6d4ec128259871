//! A reader's view of a task that is polled at the same time, under loom.

use loom::{sync::Arc, thread};
use mini_context::{Note, Notes, Reason, Wait};

use super::*;
use crate::task::state::{OnPending, OnWake};
use crate::task::wait::LastWait;

/// A task, as far as it changes while it is looked at.
struct Model {
    state: State,
    stage: StageWord,
    wait: WaitSlot,
    refs: RefCount,
    local: LocalCount,
}

/// What a reader has seen: the number of polls, and what the task waits for since then.
type Seen = Option<(u32, Option<LastWait>)>;

impl Model {
    /// A task that is queued, with the references of the runtime and of a handle.
    fn new(state: State) -> Arc<Self> {
        let (stage, wait) = (StageWord::new(), WaitSlot::new());
        Arc::new(Self { state, stage, wait, refs: RefCount::new(), local: LocalCount::new() })
    }

    fn parts(&self) -> Parts<'_> {
        Parts { state: &self.state, stage: &self.stage, wait: &self.wait, refs: &self.refs, local: &self.local }
    }

    /// Polls the task, which is then pending for the join of a task that has the number of the poll.
    fn poll(&self) {
        let _ = self.state.start();
        self.stage.count_poll();
        let notes = Notes { wait: Some(join(self.stage.polls())), timer: None };
        self.wait.fill(notes, false, || 1);
        assert_eq!(self.state.finish_pending(), OnPending::Idle);
    }

    /// As `Task::sight` does.
    fn look(&self) -> Seen {
        let (polls, standing, words) = self.parts().read();
        let is_same = self.parts().is_at(polls, standing).is_ok();
        (is_same && standing == Standing::Waits).then(|| (polls, words.wait().get()))
    }
}

/// Each at a line of its own.
fn join(polls: u32) -> Wait {
    let location = if polls == 1 { Location::caller() } else { other_line() };
    Wait::from(Note { reason: Reason::Join(polls.into()), location })
}

#[track_caller]
fn other_line() -> &'static Location<'static> {
    Location::caller()
}

fn kinds(model: fn(State)) {
    for state in [State::shared, State::owned] {
        loom::model(move || model(state()));
    }
}

/// Fails when `count_poll` or an owned task's `finish_pending` is Relaxed, when `fill` or `read` is, and when `is_at`
/// does not compare the number of polls.
#[test]
fn a_task_that_waits_is_seen_with_the_wait_of_its_last_poll() {
    kinds(|state| {
        let task = Model::new(state);
        let reader = look_from_elsewhere(&task, Model::look);
        task.poll();
        assert_eq!(task.state.wake(), OnWake::Enqueue);
        task.poll();
        if let Some((polls, wait)) = reader.join().unwrap() {
            assert_eq!(wait, Some(LastWait::Known(join(polls))));
        }
        assert_eq!(task.look(), Some((2, Some(LastWait::Known(join(2))))));
    });
}

fn look_from_elsewhere<T: 'static>(task: &Arc<Model>, look: fn(&Model) -> T) -> thread::JoinHandle<T> {
    let task = task.clone();
    thread::spawn(move || look(&task))
}

/// Fails when `LocalCount::release` or the load in `others` is Relaxed.
#[test]
fn a_task_whose_last_waker_has_woken_it_does_not_seem_lost() {
    kinds(|state| {
        let task = Model::new(state);
        task.local.retain(&task.refs); // in the poll
        task.poll();
        let reader = look_from_elsewhere(&task, |task| task.parts().seems_lost(1, || 0));
        assert_eq!(task.state.wake(), OnWake::Enqueue);
        task.local.release(&task.refs);
        assert!(!reader.join().unwrap());
        task.poll();
        assert!(task.parts().seems_lost(2, || 0));
    });
}

/// Fails when `seems_lost` does not look at the state again.
#[test]
fn a_task_that_is_woken_from_elsewhere_does_not_seem_lost() {
    kinds(|state| {
        let task = Model::new(state);
        task.refs.retain(); // a waker that another thread has
        task.poll();
        let reader = look_from_elsewhere(&task, |task| task.parts().seems_lost(1, || 0));
        if task.state.is_shared() {
            assert_eq!(task.state.wake(), OnWake::Enqueue);
        } else {
            let _ = task.state.remote_wake();
        }
        let _ = task.refs.release();
        assert!(!reader.join().unwrap());
    });
}

/// A reference that goes from one count to the other. Fails when `seems_lost` counts once.
#[test]
fn a_task_whose_waker_is_cloned_does_not_seem_lost() {
    kinds(|state| {
        let task = Model::new(state);
        task.local.retain(&task.refs); // in the poll
        task.poll();
        let reader = look_from_elsewhere(&task, |task| task.parts().seems_lost(1, || 0));
        task.refs.retain(); // cloned elsewhere
        task.local.release(&task.refs);
        assert!(!reader.join().unwrap());
    });
}
