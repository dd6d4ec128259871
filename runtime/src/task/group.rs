//! `Group`: tasks that belong together, are asked to end together, and are waited for.
//!
//! `group/node.rs` keeps the tasks, `group/member.rs` is the part in each task, `group/ending.rs` waits,
//! `group/report.rs` reports. All groups are below the program's group (`group/program.rs`).
//!
//! A handle of a subgroup keeps a handle of its parent. So the last handle of a group is dropped only when no task can
//! be started below the group any more.
//!
//! Rejected: ending the tasks with the last handle at once (a handle is lost by mistake more often than on purpose, and
//! the tasks may be in the middle of something). Refusing tasks from the moment of the cancellation (an orderly end may
//! need a task). A scope of tasks that borrow: this is another thing, which cannot outlive its caller.

mod ending;
mod errors;
mod member;
mod node;
mod outcome;
pub(crate) mod program;
mod report;
#[cfg(feature = "sim")]
pub(crate) mod simulated;

use std::fmt;
use std::future::{Future, Pending};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use mini_context::contain;
use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::say::Throttle;
use mini_kernel::scheduler::current;
use mini_kernel::task::slab::NONE;

use super::large::boxed;
use super::shield::Ended;
use super::spawn::spawn_local_from;
use super::spawn::{spawn_blocking_on, spawn_on};
use super::unseen::error_in;
use super::{CancelToken, JoinHandle, Reason};
use ending::End;
pub use ending::{ShutdownGroup, WaitGroup};
pub(crate) use errors::{Errors, GroupError};
use member::{Judge, Member, MemberSeat, Membership};
use node::Node;
pub use outcome::Outcome;
pub use report::{FailedTask, Report, Straggler};

/// How long a group waits if it is not told.
const GRACE: Duration = Duration::from_secs(5);

/// A group of tasks that end together. Clones are the same group.
///
/// A group has a [token](Self::token) for its tasks. [`shutdown`](Self::shutdown) cancels the token, waits for the
/// tasks, aborts those that are left after the [grace](Self::grace), and reports how they ended. A group may have
/// subgroups ([`child`](Self::child)), which end with it. It keeps nothing of tasks that ended well.
///
/// If the last handle is dropped while tasks of the group are alive and no shutdown is in progress, a line on stderr
/// reports it, with the line that made the group. The token is cancelled with [`Reason::ParentGone`], and the tasks are
/// aborted after the grace, or at once if the handle is dropped outside a runtime.
///
/// The report has each error and panic. If the task's handle was dropped, its error or panic is also reported on stderr
/// as it happens, as for any [task](crate::spawn); an error with its text and the group.
///
/// With [`#[mini::main(grace = "10s")]`](crate::main) all groups end when the program is asked to. If the last handle
/// of a group is dropped because the body of `main` returns, the group also ends in this way, within the program's
/// grace and without that line on stderr.
///
/// # Examples
///
/// ```
/// use mini::task::{CancelToken, Group, Reason};
/// use mini::time::{Duration, interval};
///
/// async fn beat(token: CancelToken) -> u32 {
///     let (mut beats, mut clock) = (0, interval(Duration::from_secs(1)));
///     while token.run(clock.tick()).await.is_ok() {
///         beats += 1;
///     }
///     beats
/// }
///
/// mini::block_on(async {
/// # mini::time::pause();
///     let group = Group::new().name("hearts").grace(Duration::from_secs(5));
///     let heart = group.spawn_any(beat(group.token()));
///     group.spawn_named("deaf", std::future::pending::<()>());
///
///     mini::time::sleep(Duration::from_millis(2500)).await;
///     let report = group.shutdown(Reason::Requested).await;
///     assert_eq!(heart.await.unwrap(), 3);
///     assert_eq!((report.finished(), report.aborted()[0].name()), (1, Some("deaf")));
/// });
/// ```
#[derive(Clone)]
pub struct Group(Arc<Handle>);

struct Handle {
    node: Arc<Node>,
    /// A handle of the group above. Until the drop takes it.
    parent: Option<Arc<Handle>>,
}

impl Group {
    /// Creates a group without tasks. Its token is a child of [`mini::shutdown`](crate::shutdown).
    ///
    /// # Examples
    ///
    /// See [`Group`].
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        let node = program::root().child(Location::caller(), Some(GRACE));
        Self(Arc::new(Handle { node, parent: None }))
    }

    /// Creates a subgroup.
    ///
    /// The subgroup's token is a child of this group's token, and its tasks are covered by this group's
    /// [`wait`](Self::wait), [`len`](Self::len), [`shutdown`](Self::shutdown) and report. A subgroup can also be shut
    /// down alone; its grace is the grace of this group unless it is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let server = Group::new().name("server");
    ///     let session = server.child().name("session 7");
    ///     let token = session.token();
    ///     session.spawn(async move {
    ///         token.cancelled().await;
    ///     });
    ///     assert_eq!((session.len(), server.len()), (1, 1));
    ///
    ///     let report = server.shutdown(Reason::Requested).await;
    ///     assert_eq!((report.finished(), session.len()), (1, 0));
    /// });
    /// ```
    #[must_use]
    #[track_caller]
    pub fn child(&self) -> Self {
        let node = self.node().child(Location::caller(), None);
        Self(Arc::new(Handle { node, parent: Some(self.0.clone()) }))
    }

    /// Gives this group, and thereby all clones of the handle, a name for reports.
    ///
    /// # Examples
    ///
    /// See [`Group`].
    #[must_use]
    pub fn name(self, name: impl AsRef<str>) -> Self {
        self.node().set_name(name.as_ref().into());
        self
    }

    /// Sets the time that a shutdown of this group waits before it aborts the remaining tasks; five seconds by default.
    /// When a parent group or the program shuts down, its grace applies instead.
    ///
    /// # Examples
    ///
    /// See [`Group`].
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.node().set_grace(grace);
        self
    }

    /// Returns the token of the group. Cancelling the token asks the tasks to end, and does nothing else.
    ///
    /// # Examples
    ///
    /// See [`Group`].
    #[must_use]
    pub fn token(&self) -> CancelToken {
        self.node().token.clone()
    }

    /// Returns the number of tasks of the group and its subgroups that are alive: their futures have not been dropped
    /// yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::Group;
    ///
    /// mini::block_on(async {
    ///     let group = Group::new();
    ///     assert!(group.is_empty());
    ///     group.spawn(async {});
    ///     assert_eq!(group.len(), 1);
    ///     group.wait().await;
    ///     assert!(group.is_empty());
    /// });
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.node().alive()
    }

    /// Returns `true` if no task of the group and its subgroups is alive.
    ///
    /// # Examples
    ///
    /// See [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a task in the group, on the current runtime.
    ///
    /// The task can read a [`deadline`](crate::time::deadline) around the call by
    /// [`remaining`](crate::time::remaining); the deadline does not end the task. The output shows whether the task has
    /// failed: see [`Outcome`], and [`spawn_any`](Self::spawn_any) for outputs of other types.
    ///
    /// While a shutdown waits, tasks may still be started; their token is cancelled already. When the shutdown has
    /// ended, or is aborting tasks, the group refuses the task: the future is dropped in this call, the handle returns
    /// a [cancelled](crate::task::JoinError::is_cancelled) error, and the first refusal is reported on stderr.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let group = Group::new();
    ///     let task = group.spawn(async { "42".parse::<u32>() });
    ///     assert_eq!(task.await.unwrap(), Ok(42));
    ///
    ///     group.shutdown(Reason::Requested).await;
    ///     let late = group.spawn(async {});
    ///     assert!(late.await.unwrap_err().is_cancelled());
    ///     assert_eq!(group.shutdown(Reason::Requested).await.refused(), 1);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Outcome + Send> + Send + 'static,
    {
        boxed!(Box::pin, future: F => spawn(self.node(), future, None, Outcome::failure, "Group::spawn"))
    }

    /// Starts a task with a name in the group; see [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// See [`Group`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl AsRef<str>, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Outcome + Send> + Send + 'static,
    {
        let (name, call) = (Some(name.as_ref().into()), "Group::spawn_named");
        boxed!(Box::pin, future: F => spawn(self.node(), future, name, Outcome::failure, call))
    }

    /// Starts a task in the group whose output may be of any type. If that is a `Result`, an `Err` counts as a failure;
    /// the report has the text of the error only for some types, such as [`std::io::Error`] and boxed errors.
    ///
    /// # Examples
    ///
    /// See [`Group`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn_any<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        boxed!(Box::pin, future: F => spawn(self.node(), future, None, error_in, "Group::spawn_any"))
    }

    /// Starts a task in the group that never leaves this thread, so its future need not be `Send`: see
    /// [`mini::spawn_local`](crate::spawn_local).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc};
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let (group, count) = (Group::new(), Rc::new(Cell::new(0)));
    ///     for n in 1..=3 {
    ///         let count = count.clone();
    ///         group.spawn_local(async move { count.set(count.get() + n) });
    ///     }
    ///     assert_eq!((group.shutdown(Reason::Requested).await.finished(), count.get()), (3, 6));
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`mini::spawn_local`](crate::spawn_local).
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Outcome> + 'static,
    {
        let (location, call) = (Location::caller(), "Group::spawn_local");
        let Some(place) = self.node().reserve() else {
            drop(future);
            let start = |never| spawn_local_from(never, location, call);
            return refuse(self.node(), location, Outcome::failure, start);
        };
        boxed!(Box::pin, future: F => {
            let future = mini_time::inherit(future);
            let start = |seat| spawn_local_from(Member::new(Some(future), seat, Outcome::failure), location, call);
            place.take(location, start)
        })
    }

    /// Runs `job` on a thread of the blocking pool, where it may block, as a task of the group.
    ///
    /// A job that has begun cannot be aborted: if it still runs after the grace, a shutdown names it. So it should
    /// check the group's [`token`](Self::token) now and then.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let group = Group::new();
    ///     let token = group.token();
    ///     group.spawn_blocking(move || {
    ///         while !token.is_cancelled() {
    ///             std::thread::yield_now(); // or work, for a while
    ///         }
    ///     });
    ///     assert!(group.shutdown(Reason::Requested).await.is_clean());
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Outcome + Send + 'static,
    {
        let (shared, location) = (current::shared("Group::spawn_blocking"), Location::caller());
        let Some(place) = self.node().reserve() else {
            drop(job);
            return refuse(self.node(), location, T::failure, |never| spawn_on(&shared, never, location));
        };
        boxed!(Box::new, job: F => {
            let future = async move { job() }; // dropped as those of tasks are, also if it never runs
            place.take(location, |seat| {
                let job = Member::new(Some(future), seat, T::failure);
                spawn_blocking_on(&shared, move || job.run(), location)
            })
        })
    }

    /// Waits until no task of the group and its subgroups is alive, without asking them to end. A task of the group
    /// that waits here does not wait for itself. Two of them wait for each other.
    ///
    /// # Examples
    ///
    /// See [`len`](Self::len).
    ///
    /// # Cancel safety
    ///
    /// Safe: there is nothing to lose.
    #[track_caller]
    pub fn wait(&self) -> WaitGroup<'_> {
        WaitGroup::new(self.node(), Location::caller())
    }

    /// Asks the tasks of the group and its subgroups to end, and waits for them.
    ///
    /// This call cancels the token, and the [grace](Self::grace) begins. The returned future waits until the tasks have
    /// ended. After the grace it aborts those that are left and waits until their futures have been dropped. A task
    /// that is not dropped within a second then, because it blocks, is [named](Report::running) and no longer waited
    /// for. So the future ends at most a second after the grace, unless the blocked thread is the one that awaits it:
    /// on a single worker, or in a `block_on`.
    ///
    /// A group that has been shut down takes no more tasks. A second call, even at the same time, continues the same
    /// shutdown and returns the same report.
    ///
    /// A task of the group may call this: the task is not waited for, and not aborted. But if two of its tasks call
    /// this, each waits for the other until the grace is over, and then one aborts the other.
    ///
    /// # Examples
    ///
    /// See [`Group`] and [`Report`].
    ///
    /// # Panics
    ///
    /// The returned future panics if it has to wait outside of a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost, and another call continues the shutdown. But the tasks are aborted at the end of the
    /// grace only while such a future is awaited.
    #[track_caller]
    pub fn shutdown(&self, reason: Reason) -> ShutdownGroup {
        let location = Location::caller();
        self.node().begin_end(reason, location);
        ShutdownGroup::new(self.clone(), location)
    }

    fn node(&self) -> &Arc<Node> {
        &self.0.node
    }
}

/// Starts a task in the group of `node`; `call` is what the user has called.
#[track_caller]
fn spawn<F>(
    node: &Arc<Node>,
    future: F,
    name: Option<Arc<str>>,
    judge: Judge<F::Output>,
    call: &str,
) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (shared, location) = (current::shared(call), Location::caller());
    let Some(place) = node.reserve() else {
        drop(future);
        return refuse(node, location, judge, |never| spawn_on(&shared, never, (location, name)));
    };
    let future = mini_time::inherit(future);
    place.take(location, |seat| spawn_on(&shared, Member::new(Some(future), seat, judge), (location, name)))
}

/// Starts a task in the group of the calling task, or in the next one above that takes tasks.
#[track_caller]
pub(super) fn spawn_shielded<F, T>(future: F, call: &str) -> JoinHandle<Ended<T>>
where
    F: Future<Output = Ended<T>> + Send + 'static,
    T: Send + 'static,
{
    let (shared, location) = (current::shared(call), Location::caller());
    let node = Membership::current().map_or_else(program::root, |place| place.node);
    let origin = (location, Some("shield".into()));
    match node.up().find_map(Node::try_reserve) {
        Some(place) => {
            place.take(location, |seat| spawn_on(&shared, Member::new(Some(future), seat, Ended::failure), origin))
        }
        None => spawn_on(&shared, future, origin),
    }
}

/// The handle of a task that a group has refused: cancelled, and nothing has run. `start` starts a task that never
/// ends.
#[cold]
fn refuse<T>(
    node: &Arc<Node>,
    location: &'static Location<'static>,
    judge: Judge<T>,
    start: impl FnOnce(Member<Pending<T>>) -> JoinHandle<T>,
) -> JoinHandle<T> {
    if node.is_first_refusal() {
        let group = Called(node);
        REFUSED.line(format_args!("the group {group} has shut down and does not run the task spawned at {location}"));
    }
    let nowhere = MemberSeat::new(Membership { node: node.clone(), key: NONE }, location);
    let handle = start(Member::new(None, nowhere, judge));
    handle.abort();
    handle
}

/// How messages name a group.
struct Called<'a>(&'a Node);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.0.name() {
            write!(f, "{name:?} ")?;
        }
        write!(f, "made at {}", self.0.location)
    }
}

/// For tasks that come too late for their group.
static REFUSED: Throttle = Throttle::new();

/// For groups that were dropped with tasks in them.
static DROPPED: Throttle = Throttle::new();

/// For reports of such groups.
static LEFT: Throttle = Throttle::new();

/// The last handle of a group has gone: sees to the tasks that are left.
fn abandon(node: &Arc<Node>) {
    let left = node.left_behind();
    if left.tasks == 1 && Membership::current().is_some_and(|place| place.is_in(node)) {
        return node.is_left_to_task.store(true, Relaxed); // `MemberSeat::watch` calls this again if it goes on
    }
    if !left.needs_end || program::takes_over(node) {
        return;
    }
    if left.tasks > 0 && !is_closing() {
        let (group, they) =
            (Called(node), if left.tasks == 1 { "task alive, which is" } else { "tasks alive, which are" });
        DROPPED.line(format_args!(
            "the last handle of the group {group} was dropped with {} {they} cancelled",
            left.tasks
        ));
    }
    node.begin_end(Reason::ParentGone, node.location);
    let (end, unseen) = (End::new(node.clone(), node.location), AbortOnDrop(Some(node.clone())));
    let reaper = async move {
        let mut unseen = unseen;
        let report = end.await;
        unseen.0 = None;
        if !report.is_complete() {
            LEFT.line(format_args!("{report}"));
        }
    };
    let origin = (node.location, Some("group".into()));
    if !is_closing() {
        contain(|| {
            let _is_spawned = current::with_shared(|shared| drop(spawn_on(shared, reaper, origin)));
        });
    }
}

/// Of an abandoned group: no runtime sees to its end, or one that ends first; its tasks may be on another one.
struct AbortOnDrop(Option<Arc<Node>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(node) = &self.0 {
            node.abort_all(None);
        }
    }
}

/// Whether this thread works for a runtime that is ending: it drops all tasks anyway.
fn is_closing() -> bool {
    current::with_shared(|shared| shared.is_closing()).unwrap_or(false)
}

impl Drop for Handle {
    /// As the drop of a token's node: climbs, and does not recurse.
    fn drop(&mut self) {
        abandon(&self.node);
        let mut parent = self.parent.take();
        while let Some(handle) = parent {
            parent = Arc::into_inner(handle).and_then(|mut last| last.parent.take()); // `last` is abandoned here
        }
    }
}

impl Default for Group {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, mut out) = (self.node(), f.debug_struct("Group"));
        if let Some(name) = node.name() {
            out.field("name", &name);
        }
        out.field("location", &format_args!("{}", node.location));
        if let Some(why) = node.token.why() {
            out.field("cancelled", &format_args!("{why}"));
        }
        out.field("alive", &node.alive()).field("subgroups", &node.children()).finish()
    }
}

const _: () = {
    const fn assert<T: Send + Sync + Unpin>() {}
    assert::<Group>();
    assert::<Report>();
    assert::<ShutdownGroup>();
    assert::<WaitGroup<'_>>();
};
