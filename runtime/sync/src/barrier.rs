//! A barrier: a count of tasks that have arrived, and a round that ends with the last one.
//!
//! Rejected: counting a task whose future was dropped while it waited (the others would pass with one too few, and a
//! task that tries again would count twice).

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mini_context::{Lock, SyncKind};
use pin_project_lite::pin_project;

use crate::rounds::{self, HasRounds, RoundWait, Rounds};

/// Makes a number of tasks wait until all of them have arrived; then it can be used again.
///
/// # Examples
///
/// ```
/// use mini::sync::Barrier;
/// use std::sync::Arc;
///
/// # mini::block_on(async {
/// let barrier = Arc::new(Barrier::new(3));
/// let come = || {
///     let barrier = barrier.clone();
///     mini::spawn(async move { barrier.wait().await.is_leader() })
/// };
/// let (one, two, three) = (come(), come(), come());
/// let leaders = [one.await.unwrap(), two.await.unwrap(), three.await.unwrap()];
/// assert_eq!(leaders.iter().filter(|is_leader| **is_leader).count(), 1);
/// # });
/// ```
pub struct Barrier {
    count: usize,
    state: Lock<State>,
}

pub(crate) struct State {
    /// The number of tasks that have arrived in this round.
    arrived: usize,
    rounds: Rounds<()>,
}

impl HasRounds for &Barrier {
    const KIND: SyncKind = SyncKind::Barrier;
    type State = State;

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock())
    }

    fn rounds(state: &mut State) -> &mut Rounds<()> {
        &mut state.rounds
    }
}

impl Barrier {
    /// Creates a barrier for `count` tasks. With 0 or 1, no task waits.
    pub fn new(count: usize) -> Self {
        Self { count: count.max(1), state: Lock::new(State { arrived: 0, rounds: Rounds::new() }) }
    }

    /// Waits until all tasks of the barrier have arrived.
    ///
    /// The task counts from the first poll on.
    ///
    /// # Cancel safety
    ///
    /// A task whose future is dropped while it waits has not arrived: the others wait for one more.
    #[track_caller]
    pub fn wait(&self) -> BarrierWait<'_> {
        BarrierWait { round: None, is_over: false, wait: RoundWait::new(self) }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrived = self.state.lock().arrived;
        f.debug_struct("Barrier").field("count", &self.count).field("arrived", &arrived).finish()
    }
}

/// The result of a wait at a [`Barrier`].
#[derive(Clone, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns `true` for exactly one of the tasks that waited together: the last to arrive.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

pin_project! {
    /// Future of [`Barrier::wait`]: resolves to a [`BarrierWaitResult`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct BarrierWait<'a> {
        // The round in which it has come, until it has seen the end of that.
        round: Option<u64>,
        is_over: bool,
        #[pin]
        wait: RoundWait<&'a Barrier>,
    }

    impl PinnedDrop for BarrierWait<'_> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(round) = this.round {
                let mut state = this.wait.place().state.lock();
                if state.rounds.round() == round {
                    state.arrived -= 1;
                }
            }
        }
    }
}

impl Future for BarrierWait<'_> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let this = self.project();
        assert!(!*this.is_over, "polled after it was ready: it would arrive at the barrier again");
        let round = match *this.round {
            Some(round) => round,
            None => {
                ready!(mini_context::check_budget(cx, &*this.round));
                let (is_leader, round) = arrive(this.wait.place());
                if is_leader {
                    *this.is_over = true;
                    mini_context::spend(1);
                    return Poll::Ready(BarrierWaitResult(true));
                }
                *this.round = Some(round);
                round
            }
        };
        ready!(this.wait.poll_until(cx, |state| (state.rounds.round() != round).then_some(())));
        (*this.round, *this.is_over) = (None, true);
        Poll::Ready(BarrierWaitResult(false))
    }
}

/// Returns whether that was the last one, and the round.
fn arrive(barrier: &&Barrier) -> (bool, u64) {
    let mut round = 0;
    let is_leader = rounds::end_if(barrier, |state| {
        round = state.rounds.round();
        state.arrived = (state.arrived + 1) % barrier.count;
        state.arrived == 0
    });
    (is_leader, round)
}

impl fmt::Debug for BarrierWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWait").field("has_come", &self.round.is_some()).finish()
    }
}
