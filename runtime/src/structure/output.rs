//! The output of a child of a scope, and the handle that waits for it.

use std::fmt;
use std::mem;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Lock, Note, Reason};

use super::child::Joined;

/// The place where a child leaves its output for its handle.
#[derive(Debug)]
pub(super) struct Output<T> {
    state: Lock<State<T>>,
    /// Where the child was spawned.
    location: &'static Location<'static>,
}

#[derive(Debug)]
enum State<T> {
    Running(Option<Waker>),
    Done(T),
    /// The output was taken.
    Taken,
    /// The child was dropped before it was ready.
    GivenUp,
}

impl<T> Output<T> {
    pub(super) fn new(location: &'static Location<'static>) -> Self {
        Self { state: Lock::new(State::Running(None)), location }
    }

    /// The child is ready.
    pub(super) fn fill(&self, output: T) {
        self.end(State::Done(output));
    }

    /// The child is dropped. Nothing happens if it was ready.
    pub(super) fn give_up(&self) {
        self.end(State::GivenUp);
    }

    fn end(&self, end: State<T>) {
        let mut state = self.state.lock();
        if let State::Running(waker) = &mut *state {
            let waker = waker.take();
            *state = end;
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut new = None;
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                State::Running(Some(waker)) if waker.will_wake(cx.waker()) => return Poll::Pending,
                State::Running(waker) => match new.take() {
                    Some(new) => {
                        let old = waker.replace(new);
                        drop(state);
                        drop(old);
                        return Poll::Pending;
                    }
                    // Cloned without the lock.
                    None => {
                        drop(state);
                        new = Some(cx.waker().clone());
                        state = self.state.lock();
                    }
                },
                State::Done(_) => {
                    let State::Done(output) = mem::replace(&mut *state, State::Taken) else { unreachable!() };
                    return Poll::Ready(output);
                }
                State::Taken => {
                    drop(state); // the hook of the panic is user code
                    panic!("polled after it was ready")
                }
                State::GivenUp => {
                    drop(state);
                    panic!("the child spawned at {} was dropped with its scope", self.location)
                }
            }
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        !matches!(*self.state.lock(), State::Running(_))
    }
}

/// Handle of a child of a scope: a future that resolves to the child's output.
///
/// Dropping the handle detaches it: the child keeps running. The handle may leave the scope, where it still has the
/// output of a child that is done.
///
/// # Panics
///
/// If it is awaited after the scope has cancelled the child, or again after it was ready.
///
/// # Cancel safety
///
/// Safe for `&mut handle`: awaiting it again continues the wait.
pub struct ScopedJoinHandle<T> {
    output: Joined<T>,
}

/// No code of users runs under the lock of the output.
impl<T> UnwindSafe for ScopedJoinHandle<T> {}
impl<T> RefUnwindSafe for ScopedJoinHandle<T> {}

impl<T> ScopedJoinHandle<T> {
    pub(super) fn new(output: Joined<T>) -> Self {
        Self { output }
    }

    /// Returns `true` if the child has ended.
    pub fn is_finished(&self) -> bool {
        self.output.is_finished()
    }
}

impl<T> Future for ScopedJoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        ready!(mini_context::check_budget(cx, &*self));
        let polled = mini_context::spend_if_ready(self.output.poll(cx));
        if polled.is_pending() {
            mini_context::leave_note(Note { reason: Reason::JoinSet(1), location: self.output.location });
        }
        polled
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = &self.output;
        let mut debug = f.debug_struct("ScopedJoinHandle");
        debug.field("spawned_at", &format_args!("{}", output.location));
        debug.field("is_finished", &output.is_finished()).finish()
    }
}
