//! Notifications: [`Rounds`] of waiters, and a permit for a notification that no task waits for.
//!
//! Each waiter joins in the round in which its future was made, so "notified since" is a comparison of two numbers: a
//! future made before [`Notify::notify_waiters`] is notified even if it had not been polled.
//!
//! A waiter that is notified by [`Notify::notify_one`] or [`Notify::notify_last`] owns the notification until a poll
//! sees it. If the future is dropped before that, the notification goes to the next waiter in the same way.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mini_context::{Lock, Note, Reason, SyncKind};
use pin_project_lite::pin_project;

use crate::rounds::{Entry, Rounds};
use crate::waiters::{self, Waiter, Wakes};

/// Wakes one waiting task, or all of them, without a value.
///
/// If no task waits, a notification of one task is kept for the next future. At most one is kept.
///
/// # Examples
///
/// ```
/// use mini::sync::Notify;
/// use std::sync::Arc;
///
/// # mini::block_on(async {
/// let changed = Arc::new(Notify::new());
/// let waiting = mini::spawn({
///     let changed = changed.clone();
///     async move { changed.notified().await }
/// });
/// changed.notify_one();
/// waiting.await.unwrap();
/// # });
/// ```
///
/// All waiting tasks are notified of a change, and each checks the state itself. The future is made before the check,
/// so a change in between is not missed:
///
/// ```
/// use mini::sync::Notify;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// # mini::block_on(async {
/// # let is_done = &AtomicBool::new(true);
/// # let changed = &Notify::new();
/// loop {
///     let notified = changed.notified();
///     if is_done.load(Ordering::Acquire) {
///         break;
///     }
///     notified.await;
/// }
/// # });
/// ```
pub struct Notify(Lock<State>);

struct State {
    rounds: Rounds<Told>,
    has_permit: bool,
}

/// The kind of notification that a waiter got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// The notification was for one task, and this waiter was the first.
    First,
    /// The notification was for one task, and this waiter was the last.
    Last,
}

impl Notify {
    /// Creates one without a notification.
    pub fn new() -> Self {
        Self(Lock::new(State { rounds: Rounds::new(), has_permit: false }))
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::Notify;
    /// static CHANGED: Notify = Notify::const_new();
    /// # mini::block_on(async {
    /// CHANGED.notify_one();
    /// CHANGED.notified().await;
    /// # });
    /// ```
    #[cfg(not(loom))]
    pub const fn const_new() -> Self {
        Self(Lock::new(State { rounds: Rounds::new(), has_permit: false }))
    }

    /// Waits for a notification after this call, or takes the one that is kept.
    ///
    /// From its first poll or [`enable`](Notified::enable) on, the future is in line for notifications of one task.
    /// Notifications of all tasks reach it from this call on.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in line. A notification of one task that it got and did not see goes to the
    /// next.
    #[track_caller]
    pub fn notified(&self) -> Notified<'_> {
        Notified { inner: NotifiedWait::new(self) }
    }

    /// Waits like [`notified`](Self::notified), with a future that borrows nothing.
    ///
    /// # Cancel safety
    ///
    /// Same as [`notified`](Self::notified).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::Notify;
    /// use std::sync::Arc;
    ///
    /// # mini::block_on(async {
    /// let changed = Arc::new(Notify::new());
    /// let waiting = mini::spawn(changed.clone().notified_owned());
    /// changed.notify_waiters();
    /// waiting.await.unwrap();
    /// # });
    /// ```
    #[track_caller]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        OwnedNotified { inner: NotifiedWait::new(self) }
    }

    /// Notifies the first waiting task. If no task waits, the next one to arrive will not wait.
    pub fn notify_one(&self) {
        self.notify(Told::First);
    }

    /// Notifies the task that began to wait last. If no task waits, the next one to arrive will not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// let idle = mini::sync::Notify::new();
    /// idle.notify_last();
    /// # mini::block_on(async {
    /// idle.notified().await;
    /// # });
    /// ```
    pub fn notify_last(&self) {
        self.notify(Told::Last);
    }

    fn notify(&self, how: Told) {
        let waker = {
            let mut state = self.0.lock();
            if state.rounds.is_empty() {
                state.has_permit = true;
                return;
            }
            match how {
                Told::Last => state.rounds.pop_back(|told| *told = how),
                _ => state.rounds.pop_front(|told| *told = how),
            }
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Notifies all waiting tasks, and all futures that were made before this call. Nothing is kept for later futures.
    ///
    /// # Examples
    ///
    /// ```
    /// let changed = mini::sync::Notify::new();
    /// # mini::block_on(async {
    /// let (one, two) = (changed.notified(), changed.notified());
    /// changed.notify_waiters();
    /// one.await;
    /// two.await;
    /// # });
    /// ```
    pub fn notify_waiters(&self) {
        let mut wakes = Wakes::new();
        self.0.lock().rounds.end(&mut wakes);
        waiters::wake_all(wakes, |wakes| self.0.lock().rounds.take_leaving(wakes));
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_permit, is_awaited) = {
            let state = self.0.lock();
            (state.has_permit, !state.rounds.is_empty())
        };
        f.debug_struct("Notify").field("has_permit", &has_permit).field("is_awaited", &is_awaited).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not in line yet.
    New,
    /// In line, or notified.
    Waiting,
    /// It has seen its notification.
    Done,
}

pin_project! {
    /// Waits for a notification, for [`Notified`] and [`OwnedNotified`].
    struct NotifiedWait<N: Deref<Target = Notify>> {
        notify: N,
        // The round in which this was made.
        made: u64,
        phase: Phase,
        location: &'static Location<'static>,
        #[pin]
        waiter: Waiter<Entry<Told>>,
    }

    impl<N: Deref<Target = Notify>> PinnedDrop for NotifiedWait<N> {
        fn drop(this: Pin<&mut Self>) {
            if this.phase == Phase::Waiting {
                this.leave();
            }
        }
    }
}

impl<N: Deref<Target = Notify>> NotifiedWait<N> {
    #[track_caller]
    fn new(notify: N) -> Self {
        let made = notify.0.lock().rounds.round();
        let waiter = Waiter::of_round(Told::Nothing);
        Self { notify, made, phase: Phase::New, location: Location::caller(), waiter }
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if mini_context::check_budget(cx, &*self).is_pending() {
            if self.phase == Phase::New {
                self.as_mut().look(Some(cx.waker()), Phase::Waiting); // to get in line
            }
            return Poll::Pending;
        }
        if self.as_mut().look(Some(cx.waker()), Phase::Done) {
            mini_context::spend(1);
            return Poll::Ready(());
        }
        let reason = Reason::Sync(SyncKind::Notify, 0);
        mini_context::leave_note(Note { reason, location: self.location });
        Poll::Pending
    }

    /// Returns `true` if it is notified; then `notified` is its phase. If not, it is in line from now on, with that
    /// waker if there is one.
    fn look(self: Pin<&mut Self>, waker: Option<&Waker>, notified: Phase) -> bool {
        let this = self.project();
        let (waiter, notify) = (this.waiter.into_ref(), &**this.notify);
        let (phase, made) = (*this.phase, *this.made);
        if phase == Phase::Done {
            return true;
        }
        // SAFETY: the waiter is part of this future, which is pinned, and leaves the list when that is dropped.
        // Test: `tests/threads.rs`.
        let (mut found, mut old) = unsafe { notify.0.lock().ask(waiter, phase, made, waker) };
        if found == Found::Unknown {
            let waker = waker.unwrap_or(Waker::noop()).clone();
            *this.phase = Phase::Waiting;
            // SAFETY: as above.
            (found, old) = unsafe { notify.0.lock().join(waiter, phase, made, waker) };
        }
        if found == Found::Notified {
            *this.phase = notified;
        }
        drop(old);
        found == Found::Notified
    }

    /// It is dropped while it is in line, or after it was notified and before it has seen that.
    #[cold]
    fn leave(self: Pin<&mut Self>) {
        let this = self.project();
        let (waiter, notify) = (this.waiter.into_ref(), &**this.notify);
        let (told, waker) = {
            let mut state = notify.0.lock();
            // SAFETY: as in `look`. Test: `tests/threads.rs`.
            let waker = unsafe { state.rounds.leave(waiter) };
            // SAFETY: as above.
            (*unsafe { state.rounds.data(waiter) }, waker)
        };
        if told != Told::Nothing {
            notify.notify(told);
        }
        drop(waker);
        let location = *this.location;
        mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It is in no list.
    Notified,
    InLine,
    /// It is not in line, or with the waker of another task.
    Unknown,
}

/// Wakers to be dropped without the lock.
type Old = [Option<Waker>; 2];

/// The callers promise what [`Rounds`] asks for.
impl State {
    unsafe fn ask(
        &mut self,
        waiter: Pin<&Waiter<Entry<Told>>>,
        phase: Phase,
        made: u64,
        waker: Option<&Waker>,
    ) -> (Found, Old) {
        // SAFETY: the caller's promise.
        let told = *unsafe { self.rounds.data(waiter) };
        if told != Told::Nothing || self.rounds.round() != made {
            // SAFETY: the caller's promise.
            return (Found::Notified, [unsafe { self.rounds.leave(waiter) }, None]);
        }
        if phase == Phase::New && self.has_permit {
            self.has_permit = false;
            // SAFETY: the caller's promise.
            *unsafe { self.rounds.data(waiter) } = Told::First; // which goes to the next if no poll sees it
            return (Found::Notified, [None, None]);
        }
        // SAFETY: the caller's promise.
        let has_waker = waker.is_none_or(|waker| unsafe { self.rounds.waits(waiter, waker) });
        let found = if phase == Phase::Waiting && has_waker { Found::InLine } else { Found::Unknown };
        (found, [None, None])
    }

    unsafe fn join(
        &mut self,
        waiter: Pin<&Waiter<Entry<Told>>>,
        phase: Phase,
        made: u64,
        waker: Waker,
    ) -> (Found, Old) {
        // SAFETY: the caller's promise.
        match unsafe { self.ask(waiter, phase, made, None) } {
            (Found::Notified, [old, _]) => (Found::Notified, [old, Some(waker)]),
            // SAFETY: the caller's promise.
            _ => (Found::InLine, [unsafe { self.rounds.join(waiter, waker) }, None]),
        }
    }
}

macro_rules! future {
    ($(#[$doc:meta])* $future:ident [$($lifetime:lifetime)?], $notify:ty) => {
        pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $future $(<$lifetime>)? {
                #[pin]
                inner: NotifiedWait<$notify>,
            }
        }

        impl $(<$lifetime>)? $future $(<$lifetime>)? {
            /// Gets in line for a notification of one task, as a poll does, with no task to wake yet. Returns `true` if
            /// it is notified already.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::pin::pin;
            /// use std::sync::Arc;
            ///
            /// # mini::block_on(async {
            /// let changed = Arc::new(mini::sync::Notify::new());
            /// let mut first = pin!(changed.notified());
            /// let mut second = pin!(changed.clone().notified_owned());
            /// assert!(!first.as_mut().enable() && !second.as_mut().enable());
            /// changed.notify_one();
            /// changed.notify_one();
            /// assert!(first.as_mut().enable() && second.as_mut().enable());
            /// # });
            /// ```
            pub fn enable(self: Pin<&mut Self>) -> bool {
                self.project().inner.look(None, Phase::Done)
            }
        }

        impl $(<$lifetime>)? Future for $future $(<$lifetime>)? {
            type Output = ();

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                self.project().inner.poll(cx)
            }
        }

        impl $(<$lifetime>)? fmt::Debug for $future $(<$lifetime>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).field("phase", &self.inner.phase).finish()
            }
        }
    };
}

future!(
    /// Future of [`Notify::notified`]: resolves to `()`.
    Notified['a], &'a Notify
);
future!(
    /// Future of [`Notify::notified_owned`]: resolves to `()`.
    OwnedNotified[], Arc<Notify>
);
