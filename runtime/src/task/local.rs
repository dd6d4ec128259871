//! Task-local values: what a future finds whenever it is polled, on whatever thread.
//!
//! A [`LocalKey`] is a thread-local place. A scope carries its value and puts it there during each poll, and while its
//! future is dropped. During the poll the scope keeps the previous value, that of an outer scope, and then puts it
//! back, even if the future panics. The kernel hides the values from tasks that run in the middle of a scope.
//!
//! Rejected: a map in the task's header (8 bytes per task, an allocation and a hash per value, and nothing for futures
//! that are not tasks).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use mini_kernel::task::{Key, Value, list};
use pin_project_lite::pin_project;

/// Declares task-local values: statics of the type [`LocalKey`](crate::task::LocalKey).
///
/// # Examples
///
/// ```
/// mini::task_local! {
///     /// The request that is being answered.
///     pub static REQUEST: u64;
///     static USER: String;
/// }
///
/// mini::block_on(async {
///     let answer = REQUEST.scope(7, async {
///         mini::task::yield_now().await;
///         REQUEST.with(|request| format!("answer to {request}"))
///     });
///     assert_eq!(answer.await, "answer to 7");
///     assert!(USER.try_with(|_| ()).is_err());
/// });
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty $(; $($rest:tt)*)?) => {
        $(#[$attribute])*
        $vis static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static PLACE: $crate::task::LocalPlace<$type> = const { $crate::task::LocalPlace::new() };
            }
            $crate::task::LocalKey::from_place(PLACE)
        };
        $($crate::task_local! { $($rest)* })?
    };
}

/// A task-local value; declared by [`task_local!`](crate::task_local).
///
/// It has a value inside a [`scope`](Self::scope), whose future sees the value whenever it is polled or dropped. Tasks
/// that are spawned in the scope do not inherit the value. In a [`block_on`](crate::block_on) that is called in a
/// scope, its own future sees the value and tasks do not, unless it is called inside [`with`](Self::with) of the same
/// key.
///
/// # Examples
///
/// See [`task_local!`](crate::task_local).
pub struct LocalKey<T: 'static> {
    place: thread::LocalKey<LocalPlace<T>>,
}

/// A value that the kernel has taken out of its place.
struct Taken<T: 'static> {
    key: &'static LocalKey<T>,
    value: Option<T>,
}

#[doc(hidden)]
impl<T: 'static> Key for LocalKey<T> {
    fn take(&'static self) -> Option<Box<dyn Value>> {
        let mut taken = Taken { key: self, value: None };
        taken.swap();
        taken.value.is_some().then(|| Box::new(taken) as Box<dyn Value>)
    }
}

impl<T: 'static> Value for Taken<T> {
    fn swap(&mut self) {
        let _is_lent = self.key.swap(&mut self.value);
    }
}

/// The place where a thread keeps the value of a key; for [`task_local!`](crate::task_local).
#[doc(hidden)]
#[derive(Debug)]
pub struct LocalPlace<T> {
    value: RefCell<Option<T>>,
    /// It has had a value: the key is listed.
    is_listed: Cell<bool>,
}

impl<T> LocalPlace<T> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub const fn new() -> Self {
        Self { value: RefCell::new(None), is_listed: Cell::new(false) }
    }
}

impl<T: 'static> LocalKey<T> {
    /// For [`task_local!`](crate::task_local).
    #[doc(hidden)]
    pub const fn from_place(place: thread::LocalKey<LocalPlace<T>>) -> Self {
        Self { place }
    }

    /// Gives the key a value while `future` runs: in every poll, and while it is dropped.
    ///
    /// Inside of another scope of the same key, `future` sees the value of this scope. It does not see it if it is
    /// dropped inside of [`with`](Self::with) of the same key, or by a thread that ends.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::task_local! { static DEPTH: u32; }
    /// mini::block_on(DEPTH.scope(1, async {
    ///     DEPTH.scope(2, async { assert_eq!(DEPTH.get(), 2) }).await;
    ///     assert_eq!(DEPTH.get(), 1);
    /// }));
    /// ```
    ///
    /// # Panics
    ///
    /// The returned future panics when it is polled inside of [`with`](Self::with) of the same key, or after the thread
    /// has dropped its thread-local values.
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as `future`.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture { key: self, value: Some(value), future: Some(future), _pinned: PhantomPinned }
    }

    /// Gives the key a value while `f` runs.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::task_local! { static LEVEL: u32; }
    /// assert_eq!(LEVEL.sync_scope(3, || LEVEL.get() + 1), 4);
    /// ```
    ///
    /// # Panics
    ///
    /// Inside of [`with`](Self::with) of the same key, or after the thread has dropped its thread-local values.
    #[track_caller]
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        let mut value = Some(value);
        match self.enter(&mut value) {
            Ok(_inside) => f(),
            Err(why) => refuse(why),
        }
    }

    /// Calls `f` with the value.
    ///
    /// # Examples
    ///
    /// See [`task_local!`](crate::task_local).
    ///
    /// # Panics
    ///
    /// Outside of a scope of this key; see [`try_with`](Self::try_with).
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(value) => value,
            Err(error) => panic!("LocalKey::with: {error}"),
        }
    }

    /// Calls `f` with the value.
    ///
    /// # Errors
    ///
    /// Outside of a scope of this key; `f` is not called then.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::task_local! { static TRACE: String; }
    /// assert!(TRACE.try_with(String::len).is_err());
    /// TRACE.sync_scope("abc".to_owned(), || assert_eq!(TRACE.try_with(String::len), Ok(3)));
    /// ```
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let look = |place: &LocalPlace<T>| place.value.borrow().as_ref().map(f);
        self.place.try_with(look).ok().flatten().ok_or(AccessError(()))
    }

    /// Returns a clone of the value.
    ///
    /// # Examples
    ///
    /// See [`scope`](Self::scope).
    ///
    /// # Panics
    ///
    /// Outside of a scope of this key; see [`try_get`](Self::try_get).
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Returns a clone of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::task_local! { static PART: u32; }
    /// assert!(PART.try_get().is_err());
    /// assert_eq!(PART.sync_scope(1, || PART.try_get()), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// Outside of a scope of this key.
    pub fn try_get(&'static self) -> Result<T, AccessError>
    where
        T: Clone,
    {
        self.try_with(T::clone)
    }

    /// Exchanges `value` with what is in place, until the guard is dropped; or says why that is not possible.
    fn enter<'a>(&'static self, value: &'a mut Option<T>) -> Result<Inside<'a, T>, &'static str> {
        self.swap_after(value, |place| {
            if !place.is_listed.get() {
                place.is_listed.set(true);
                list(self);
            }
        })?;
        Ok(Inside { key: self, value })
    }

    fn swap(&'static self, value: &mut Option<T>) -> Result<(), &'static str> {
        self.swap_after(value, |_| ())
    }

    #[inline]
    fn swap_after(
        &'static self,
        value: &mut Option<T>,
        before: impl FnOnce(&LocalPlace<T>),
    ) -> Result<(), &'static str> {
        let swapped = self.place.try_with(|place| {
            before(place);
            place.value.try_borrow_mut().map(|mut place| mem::swap(&mut *place, value))
        });
        match swapped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("inside of LocalKey::with of the same key"),
            Err(_) => Err("on a thread that has dropped its thread-locals"),
        }
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// Refuses to run a scope that could not be entered.
#[track_caller]
fn refuse(why: &str) -> ! {
    panic!("a scope of a task-local value was entered {why}")
}

/// While it lives, the scope's value is in place, and what was there before is in `value`.
struct Inside<'a, T: 'static> {
    key: &'static LocalKey<T>,
    value: &'a mut Option<T>,
}

impl<T: 'static> Drop for Inside<'_, T> {
    fn drop(&mut self) {
        // Only a borrow, which ends with the closure of `with`, or the end of the thread could be in the way, and
        // nothing that borrows or drops the place outlives what was called inside.
        let _ = self.key.swap(self.value);
    }
}

pin_project! {
    /// Future of [`LocalKey::scope`]: resolves to `F::Output`.
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        key: &'static LocalKey<T>,
        value: Option<T>,
        #[pin]
        future: Option<F>,
        #[pin]
        _pinned: PhantomPinned,
    }

    impl<T: 'static, F> PinnedDrop for TaskLocalFuture<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_some() && let Ok(_inside) = this.key.enter(this.value) {
                this.future.set(None);
            }
        }
    }
}

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value out, after the future is ready or instead of polling it again.
    ///
    /// Returns `None` if it has been taken already. A future that is polled or dropped afterwards sees the key without
    /// a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// mini::task_local! { static CALLS: Cell<u32>; }
    /// mini::block_on(async {
    ///     let call = async { CALLS.with(|calls| calls.set(calls.get() + 1)) };
    ///     let mut counted = Box::pin(CALLS.scope(Cell::new(0), call));
    ///     counted.as_mut().await;
    ///     assert_eq!(counted.as_mut().take_value(), Some(Cell::new(1)));
    /// });
    /// ```
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let inside = match this.key.enter(this.value) {
            Ok(inside) => inside,
            Err(why) => refuse(why),
        };
        let future = this.future.as_mut().as_pin_mut();
        let poll = future.expect("a TaskLocalFuture was polled after it was ready").poll(cx);
        if poll.is_ready() {
            this.future.set(None); // while it still sees the value
        }
        drop(inside);
        poll
    }
}

impl<T: 'static + fmt::Debug, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocalFuture").field("value", &self.value).finish_non_exhaustive()
    }
}

/// There is no value: this is outside of every scope of the key.
///
/// # Examples
///
/// See [`LocalKey::try_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task-local value is not set here: this is outside of every scope of its key")
    }
}

impl std::error::Error for AccessError {}
