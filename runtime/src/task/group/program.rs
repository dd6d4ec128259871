//! The program as a group: the root of all others, and its token.

#![cfg_attr(not(feature = "signal"), allow(dead_code))] // without signals nothing ends it

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::super::{CancelToken, JoinHandle, Reason};
use super::GRACE;
use super::ending::End;
use super::member::Member;
use super::node::Node;

static ROOT: OnceLock<Arc<Node>> = OnceLock::new();

/// The group of the program.
pub(in crate::task) fn root() -> Arc<Node> {
    #[cfg(feature = "sim")]
    if let Some(root) = super::simulated::root() {
        return root;
    }
    ROOT.get_or_init(new_root).clone()
}

pub(super) fn new_root() -> Arc<Node> {
    Node::root(CancelToken::new().name("program"), Location::caller(), GRACE)
}

/// Returns the token of the program, whose children are the tokens of all groups.
///
/// Under [`#[mini::main(grace = "10s")]`](crate::main) it is cancelled when the program is asked to end by Ctrl-C or
/// SIGTERM, and when `main` has returned; the program may cancel it too, to end itself. Without `grace` nothing cancels
/// it but the program.
///
/// In a simulation each host is a program with a token of its own, which a simulated signal cancels.
///
/// # Examples
///
/// ```
/// use mini::task::{Group, Reason};
///
/// let group = Group::new();
/// assert!(mini::shutdown().cancel(Reason::Requested));
/// assert_eq!(group.token().reason(), Some(Reason::Requested));
/// ```
#[must_use = "this is the token; it is not cancelled by the call"]
pub fn shutdown() -> CancelToken {
    root().token.clone()
}

/// Returns the time that the program may take to end: the rest of the grace of its
/// [`#[mini::main(grace = "10s")]`](crate::main), or all of it if the grace has not begun. Returns `None` in a program
/// without a `grace`, and in a simulation.
///
/// If the program itself cancels [`shutdown()`](shutdown), the grace begins a moment after that.
///
/// # Examples
///
/// A step that takes only a part of the grace, to leave time for the next step:
///
/// ```
/// use mini::task::Group;
/// use mini::time::{Duration, timeout};
///
/// async fn end(connections: Group) {
///     let time = mini::grace_left().map_or(Duration::from_secs(5), |left| left / 2);
///     if timeout(time, connections.wait()).await.is_err() {
///         eprintln!("{} connections are cut off", connections.len());
///     }
///     // ... writes what is to be kept
/// }
/// # mini::block_on(end(Group::new()));
/// # assert_eq!(mini::grace_left(), None);
/// ```
#[must_use]
pub fn grace_left() -> Option<Duration> {
    if !HAS_GRACE.load(Relaxed) || mini_context::sim::is_simulated() {
        return None;
    }
    let (root, grace) = (root(), grace());
    Some(root.ending().map_or(grace, |ending| grace.saturating_sub(ending.began.elapsed())))
}

/// Somebody sees to it that the program ends within its grace.
static HAS_GRACE: AtomicBool = AtomicBool::new(false);

/// How long the program has to end.
pub(crate) fn set_grace(grace: Duration) {
    root().set_grace(grace);
    HAS_GRACE.store(true, Relaxed); // the program has not begun
}

pub(crate) fn grace() -> Duration {
    root().grace()
}

thread_local! {
    /// Groups whose last handle was dropped in the poll in progress, if that is one of the body of `main`.
    static LEFT_BY_BODY: RefCell<Option<Vec<Arc<Node>>>> = const { RefCell::new(None) };
}

/// Whether the program may see to what the last handle of a group has left: that was dropped by the body of `main`,
/// which may be about to return.
pub(super) fn takes_over(node: &Arc<Node>) -> bool {
    let take = |left: &RefCell<Option<Vec<_>>>| match &mut *left.borrow_mut() {
        Some(left) => {
            left.push(node.clone());
            true
        }
        None => false,
    };
    LEFT_BY_BODY.try_with(take).unwrap_or(false) // it may have been dropped, where a thread ends
}

pin_project! {
    /// The body of `main`. Groups that it still has when it returns end with the program, with its reason and grace.
    /// Those that it drops before are abandoned, as by any other task.
    pub(crate) struct MainBody<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for MainBody<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        LEFT_BY_BODY.set(Some(Vec::new()));
        let poll = catch_unwind(AssertUnwindSafe(|| self.project().future.poll(cx)));
        let left = LEFT_BY_BODY.take().unwrap_or_default();
        if let Ok(Poll::Pending) = poll {
            left.iter().for_each(super::abandon);
        }
        poll.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Starts the body of `main` as a task of the program, by `start`. Its error is printed by then, and the exit code
/// tells that there was one.
pub(crate) fn enter<F: Future<Output = ExitCode>>(
    future: F,
    location: &'static Location<'static>,
    start: impl FnOnce(Member<MainBody<F>>) -> JoinHandle<F::Output>,
) -> JoinHandle<F::Output> {
    let Some(place) = root().reserve() else {
        panic!("a `main` with a `grace` was called after the program has shut down");
    };
    let judge = |code: &ExitCode| (*code != ExitCode::SUCCESS).then(|| "its exit code is one of failure".to_owned());
    place.take(location, |seat| start(Member::new(Some(MainBody { future }), seat, judge)))
}

/// Asks all tasks of all groups to end, and sees to it.
pub(crate) fn end(reason: Reason, location: &'static Location<'static>) -> End {
    root().begin_end(reason, location);
    End::new(root(), location)
}
