//! A task's seat in its group: what the task carries, and gives up when it has been dropped.
//!
//! The future is the first field of [`Member`] and the [`MemberSeat`] the second, so that the group learns of the end
//! when the future is gone, even if its destructor panics.
//!
//! While a task is polled or dropped, [`CURRENT`] is its seat: a shield reads it to find its group, and a shutdown to
//! find the task that waits for it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::scheduler::current;
use mini_kernel::task::error;
use mini_kernel::task::slab::NONE;
use pin_project_lite::pin_project;

use super::super::{JoinHandle, TaskLocalFuture};
use super::node::Node;
use super::report::FailedTask;
use super::{Called, GroupError, abandon};
use crate::runtime::layers::Layers;

crate::task_local! {
    static CURRENT: Membership;
}

/// The place of a task in its group.
#[derive(Clone)]
pub(super) struct Membership {
    pub(super) node: Arc<Node>,
    pub(super) key: u32,
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Finished,
    /// Told already.
    Failed,
    /// Before it was ready.
    Dropped,
}

/// A seat, until it is dropped.
pub(super) struct MemberSeat {
    place: Membership,
    fate: Fate,
    location: &'static Location<'static>,
}

/// Says what has failed, if anything has.
pub(super) type Judge<T> = fn(&T) -> Option<String>;

impl Membership {
    /// The place of the task that is polled on this thread.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_get().ok()
    }

    /// Starts a task in a place that was reserved.
    pub(super) fn take<T>(
        self,
        location: &'static Location<'static>,
        start: impl FnOnce(MemberSeat) -> JoinHandle<T>,
    ) -> JoinHandle<T> {
        let unwound = FreeOnUnwind(&self);
        let handle = start(MemberSeat::new(self.clone(), location));
        std::mem::forget(unwound);
        self.node.seat(self.key, handle.abort_handle());
        handle
    }

    /// Whether it is a place in the group of `node` itself.
    pub(super) fn is_in(&self, node: &Arc<Node>) -> bool {
        self.key != NONE && Arc::ptr_eq(&self.node, node)
    }

    /// Whether it is a place in the group of `node` or below.
    pub(super) fn is_below(&self, node: &Arc<Node>) -> bool {
        self.node.up().any(|above| Arc::ptr_eq(above, node))
    }
}

/// No handle comes for a task that could not be started.
struct FreeOnUnwind<'a>(&'a Membership);

impl Drop for FreeOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.node.free_seat(self.0.key);
    }
}

impl MemberSeat {
    /// For a place that was reserved, or has the number [`NONE`].
    pub(super) fn new(place: Membership, location: &'static Location<'static>) -> Self {
        Self { place, fate: Fate::Dropped, location }
    }

    /// Runs `step` of the task, and notes how it ends.
    fn watch<T>(&mut self, judge: Judge<T>, step: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let judged = || step().map(|output| (judge(&output), output)); // a user's code, both
        match catch_unwind(AssertUnwindSafe(judged)) {
            Ok(Poll::Pending) => {
                if self.place.node.is_left_to_task.load(Relaxed) {
                    self.place.node.is_left_to_task.store(false, Relaxed); // set by this thread
                    abandon(&self.place.node);
                }
                Poll::Pending
            }
            Ok(Poll::Ready((None, output))) => {
                self.fate = Fate::Finished;
                Poll::Ready(output)
            }
            Ok(Poll::Ready((Some(error), output))) => {
                self.fail(error, false);
                Poll::Ready(output)
            }
            Err(payload) => {
                self.fail(error::message(&*payload).to_owned(), true);
                resume_unwind(payload)
            }
        }
    }

    /// Also leaves it for the case that the handle is dropped.
    fn fail(&mut self, error: String, is_panic: bool) {
        self.fate = Fate::Failed;
        if let Some(task) = current::task() {
            let error = GroupError { group: Called(&self.place.node).to_string(), text: error.clone() };
            current::with_shared(|shared| Layers::of(shared).group_errors.leave(task, error));
        }
        let (name, location) = (current::task_name(), self.location);
        self.place.node.fail(FailedTask { name, group: None, location, error, is_panic });
    }
}

impl Drop for MemberSeat {
    fn drop(&mut self) {
        if self.place.key != NONE {
            self.place.node.leave(self.place.key, self.fate);
        }
    }
}

pin_project! {
    /// The future of a task in a group. One that was refused has none, and never ends by itself.
    pub(crate) struct Member<F: Future> {
        #[pin]
        future: Option<TaskLocalFuture<Membership, F>>,
        seat: MemberSeat,
        judge: Judge<F::Output>,
    }
}

impl<F: Future> Member<F> {
    pub(super) fn new(future: Option<F>, seat: MemberSeat, judge: Judge<F::Output>) -> Self {
        let future = future.map(|future| CURRENT.scope(seat.place.clone(), future));
        Self { future, seat, judge }
    }

    /// Runs a blocking job, which its future calls.
    pub(super) fn run(self) -> F::Output {
        let poll = pin!(self).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(output) = poll else { unreachable!("a job is ready when it returns") };
        output
    }
}

impl<F: Future> Future for Member<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(future) = this.future.as_pin_mut() else { return Poll::Pending };
        this.seat.watch(*this.judge, || future.poll(cx))
    }
}
