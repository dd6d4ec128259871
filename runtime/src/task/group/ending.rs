//! The futures that wait for a group: until its tasks have ended, or until it has been shut down.
//!
//! The group itself keeps the progress of its shutdown (`node.rs`), so a shutdown that is dropped half-way loses
//! nothing. The steps of [`End::poll`]:
//!
//! 1. The tasks have the grace to end.
//! 2. If they do, the group is closed, and then checked once more: a task may have been added before the close.
//! 3. At the end of the grace the group is closed and the rest is aborted. These tasks have [`PATIENCE`] to be dropped.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mini_context::{Note, Reason, forget_wait, leave_note, poll_budget};
use mini_time::{Instant, Sleep, sleep_until};

use super::Group;
use super::node::Node;
use super::report::Report;

/// How long a shutdown waits for tasks that it has aborted. They are dropped at the end of their poll, so that takes
/// long only if one blocks.
pub(in crate::task) const PATIENCE: Duration = Duration::from_secs(1);

/// Future of [`Group::wait`]: resolves to `()` when the tasks of the group have ended.
///
/// # Examples
///
/// See [`Group::wait`].
///
/// # Cancel safety
///
/// Safe: there is nothing to lose.
#[must_use = "futures do nothing unless awaited"]
pub struct WaitGroup<'a> {
    node: &'a Arc<Node>,
    key: Option<u32>,
    location: &'static Location<'static>,
}

/// Future of [`Group::shutdown`]: resolves to a [`Report`] when the group has been shut down.
///
/// # Examples
///
/// See [`Group::shutdown`].
///
/// # Panics
///
/// If it is awaited outside of a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost, and the next call continues the shutdown. But the tasks are aborted at the end of the grace
/// only while such a future is awaited.
#[must_use = "the tasks are asked to end already; this waits for them, and aborts them after the grace"]
pub struct ShutdownGroup {
    end: End,
    /// Keeps the group, whose last handle must not go meanwhile.
    _group: Group,
}

/// A shutdown that was begun.
pub(crate) struct End {
    node: Arc<Node>,
    key: Option<u32>,
    /// For the end of the grace, or of the patience.
    timer: Option<(Instant, Sleep)>,
    /// It has aborted those that were left itself.
    has_aborted: bool,
    location: &'static Location<'static>,
}

/// Leaves a note that some tasks are waited for.
fn note(node: &Node, location: &'static Location<'static>) {
    leave_note(Note { reason: Reason::JoinSet(node.alive() as u64), location });
}

fn forget_note(location: &'static Location<'static>) {
    forget_wait(|wait| matches!(wait.reason(), Reason::JoinSet(_)) && wait.location() == location);
}

impl<'a> WaitGroup<'a> {
    pub(super) fn new(node: &'a Arc<Node>, location: &'static Location<'static>) -> Self {
        Self { node, key: None, location }
    }
}

impl Future for WaitGroup<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { node, key, location } = &mut *self;
        if node.poll_ended(node.exempt(), key, cx).is_pending() {
            note(node, location);
            return Poll::Pending;
        }
        poll_budget(cx, &*self)
    }
}

impl Drop for WaitGroup<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            forget_note(self.location);
            self.node.forget_waiter(key);
        }
    }
}

impl ShutdownGroup {
    pub(super) fn new(group: Group, location: &'static Location<'static>) -> Self {
        Self { end: End::new(group.node().clone(), location), _group: group }
    }
}

impl Future for ShutdownGroup {
    type Output = Report;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Report> {
        let report = ready!(Pin::new(&mut self.end).poll(cx));
        self.end.node.tell_end();
        Poll::Ready(report)
    }
}

impl End {
    pub(in crate::task) fn new(node: Arc<Node>, location: &'static Location<'static>) -> Self {
        Self { node, key: None, timer: None, has_aborted: false, location }
    }

    /// Ready when the time `until` has come.
    fn poll_timer(&mut self, until: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = until else { return Poll::Pending };
        if self.timer.as_ref().is_none_or(|(at, _)| *at != until) {
            self.timer = Some((until, sleep_until(until)));
        }
        let timer = self.timer.as_mut().map(|(_, timer)| timer);
        Pin::new(timer.expect("just set")).poll(cx)
    }
}

impl Future for End {
    type Output = Report;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Report> {
        let this = &mut *self;
        let exempt = this.node.exempt();
        loop {
            if this.node.poll_ended(exempt, &mut this.key, cx).is_ready() {
                ready!(poll_budget(cx, this));
                this.node.close_all();
                if this.node.alive() <= exempt {
                    return Poll::Ready(this.node.report());
                }
                continue; // a task came before the group was closed
            }
            let ending = this.node.ending().expect("it was begun");
            // A shutdown by a member spares its own task when it aborts the others; one from outside does not.
            let must_abort = exempt == 0 && !this.has_aborted;
            if ending.patience.is_some() && !must_abort {
                if this.poll_timer(ending.patience, cx).is_ready() {
                    return Poll::Ready(this.node.report());
                }
            } else if ending.patience.is_some() || this.poll_timer(ending.deadline, cx).is_ready() {
                this.has_aborted = true;
                this.node.abort_all(Instant::now().checked_add(PATIENCE));
                continue;
            }
            note(&this.node, this.location);
            return Poll::Pending;
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            forget_note(self.location);
            self.node.forget_waiter(key);
        }
    }
}

impl fmt::Debug for WaitGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitGroup").field("alive", &self.node.alive()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ShutdownGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownGroup").field("alive", &self.end.node.alive()).finish_non_exhaustive()
    }
}
