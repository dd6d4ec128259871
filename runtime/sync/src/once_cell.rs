//! A cell that is filled once: a permit for the task that makes the value, closed when there is a value.
//!
//! The value is in the standard library's cell, so reading it costs a load or two.

use std::convert::Infallible;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mini_context::{Lock, SyncKind};
use pin_project_lite::pin_project;

use crate::macros::error;
use crate::permits::{self, Acquire, Claim, Held, Permits, Refusal, Source};
use crate::primitives::OnceLock;

/// A cell whose value is made once, by the first task that needs it. The other tasks wait for it.
///
/// If the task that makes the value is cancelled or panics, or its function fails, the next waiting task makes it.
///
/// # Examples
///
/// ```
/// use mini::sync::OnceCell;
///
/// static CONFIG: OnceCell<String> = OnceCell::const_new();
///
/// async fn config() -> &'static str {
///     CONFIG.get_or_init(|| async { "from a file".to_string() }).await
/// }
///
/// # mini::block_on(async {
/// assert_eq!(config().await, "from a file");
/// assert!(std::ptr::eq(config().await, config().await));
/// # });
/// ```
pub struct OnceCell<T> {
    value: Value<T>,
    permit: Lock<Permits>,
}

/// A value that is set once. The standard library's cell has no constant that is full.
pub(crate) enum Value<T> {
    Constant(T),
    Cell(OnceLock<T>),
}

impl<T> Value<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self::Cell(OnceLock::new())
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self::Cell(OnceLock::new())
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Constant(value) => Some(value),
            Self::Cell(cell) => cell.get(),
        }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Constant(value) => Some(value),
            Self::Cell(cell) => cell.get_mut(),
        }
    }

    pub(crate) fn into_inner(self) -> Option<T> {
        match self {
            Self::Constant(value) => Some(value),
            Self::Cell(cell) => cell.into_inner(),
        }
    }

    /// The value comes back if there is one.
    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        match self {
            Self::Constant(_) => Err(value),
            Self::Cell(cell) => cell.set(value),
        }
    }
}

impl<T> Source for OnceCell<T> {
    const KIND: SyncKind = SyncKind::Once;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.permit.lock())
    }
}

impl<T> OnceCell<T> {
    /// Creates an empty cell.
    pub fn new() -> Self {
        Self { value: Value::new(), permit: Lock::new(Permits::new(1)) }
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    #[cfg(not(loom))]
    pub const fn const_new() -> Self {
        Self { value: Value::new(), permit: Lock::new(Permits::new(1)) }
    }

    /// Creates a cell with a value, for a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::OnceCell;
    /// static ANSWER: OnceCell<u8> = OnceCell::const_new_with(42);
    /// assert_eq!(ANSWER.get(), Some(&42));
    /// ```
    #[cfg(not(loom))]
    pub const fn const_new_with(value: T) -> Self {
        Self { value: Value::Constant(value), permit: Lock::new(Permits::new_closed()) }
    }

    /// Returns a mutable reference to the value, if there is one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Fills the cell.
    ///
    /// # Errors
    ///
    /// Fails if there is a value, or a task is making one. The error has `value`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::{OnceCell, SetError};
    /// let cell = OnceCell::new();
    /// cell.set(1).unwrap();
    /// assert_eq!(cell.set(2), Err(SetError::AlreadyInitializedError(2)));
    /// ```
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        let claim = Claim::new(Location::caller());
        match self.with(|permits| permits.try_take(1, claim)) {
            Ok(()) => {
                let _permit = Held { source: self, count: 1 };
                self.fill(value);
                Ok(())
            }
            Err(Refusal::Closed) => Err(SetError::AlreadyInitializedError(value)),
            Err(Refusal::Busy) => Err(SetError::InitializingError(value)),
        }
    }

    /// The caller has the permit.
    fn fill(&self, value: T) {
        let is_first = self.value.set(value).is_ok();
        debug_assert!(is_first, "who has the permit fills the cell");
        permits::close(self);
    }

    /// Returns the value. If there is none, calls `make` to make it, in one task at a time.
    ///
    /// A task that needs the value in order to make it waits for ever.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while it makes the value, its work is lost, and the next waiting task makes the value.
    ///
    /// # Panics
    ///
    /// Panics if `make` or its future panics. The next task that waits makes the value.
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> Fut, Fut: Future<Output = T>>(&self, make: F) -> GetOrInit<'_, T, F, Fut> {
        GetOrInit { inner: Init::new(self, make) }
    }

    /// Returns or makes the value like [`get_or_init`](Self::get_or_init), with a function that may fail. If it does,
    /// the next waiting task tries.
    ///
    /// # Errors
    ///
    /// Returns the error of `make`.
    ///
    /// # Cancel safety
    ///
    /// Same as [`get_or_init`](Self::get_or_init).
    ///
    /// # Panics
    ///
    /// Same as [`get_or_init`](Self::get_or_init).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::OnceCell;
    /// # mini::block_on(async {
    /// let port = OnceCell::new();
    /// assert!(port.get_or_try_init(|| async { "no port".parse::<u16>() }).await.is_err());
    /// assert_eq!(port.get_or_try_init(|| async { "80".parse::<u16>() }).await, Ok(&80));
    /// # });
    /// ```
    #[track_caller]
    pub fn get_or_try_init<E, F, Fut>(&self, make: F) -> GetOrTryInit<'_, T, F, Fut>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        GetOrTryInit { inner: Init::new(self, make) }
    }

    /// Takes the value out, if there is one, and leaves an empty cell.
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }
}

/// The methods that [`OnceCell`] and [`SetOnce`](crate::SetOnce) share.
macro_rules! cell {
    ($cell:ident { value, $field:ident: $full:expr }) => {
        impl<T> $cell<T> {
            /// Creates a cell with a value, if one is given.
            pub fn new_with(value: Option<T>) -> Self {
                value.map_or_else(Self::new, Self::from)
            }

            /// Returns `true` if there is a value.
            pub fn initialized(&self) -> bool {
                self.value.get().is_some()
            }

            /// Returns the value, if there is one.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let cell = mini::sync::", stringify!($cell), "::new();")]
            /// assert_eq!(cell.get(), None);
            /// cell.set(1).unwrap();
            /// assert_eq!(cell.get(), Some(&1));
            /// ```
            pub fn get(&self) -> Option<&T> {
                self.value.get()
            }

            /// Returns the value, if there is one.
            pub fn into_inner(self) -> Option<T> {
                self.value.into_inner()
            }
        }

        impl<T> Default for $cell<T> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<T> From<T> for $cell<T> {
            fn from(value: T) -> Self {
                Self { value: Value::Constant(value), $field: $full }
            }
        }

        impl<T: Clone> Clone for $cell<T> {
            fn clone(&self) -> Self {
                Self::new_with(self.get().cloned())
            }
        }

        impl<T: PartialEq> PartialEq for $cell<T> {
            fn eq(&self, other: &Self) -> bool {
                self.get() == other.get()
            }
        }

        impl<T: Eq> Eq for $cell<T> {}
    };
}

cell!(OnceCell { value, permit: Lock::new(Permits::new_closed()) });
pub(crate) use cell;

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (maker, is_made) =
            self.with(|permits| (permits.last().filter(|_| permits.free() == 0), permits.is_closed()));
        let mut debug = f.debug_struct("OnceCell");
        match maker.filter(|_| !is_made) {
            Some(maker) => debug.field("value", &format_args!("<made {maker}>")),
            None => debug.field("value", &self.get()),
        };
        debug.finish()
    }
}

pin_project! {
    struct Init<'a, T, F, Fut> {
        make: Option<F>,
        // Before the permit, as it is dropped before the next task makes a value.
        #[pin]
        future: Option<Fut>,
        permit: Option<Held<&'a OnceCell<T>>>,
        #[pin]
        acquire: Acquire<&'a OnceCell<T>>,
    }
}

/// Drops the future, then the permit.
struct Making<'a, F, P> {
    future: Pin<&'a mut Option<F>>,
    permit: &'a mut Option<P>,
}

impl<F, P> Drop for Making<'_, F, P> {
    fn drop(&mut self) {
        self.future.set(None);
        *self.permit = None;
    }
}

impl<'a, T, F: FnOnce() -> Fut, Fut: Future> Init<'a, T, F, Fut> {
    #[track_caller]
    fn new(cell: &'a OnceCell<T>, make: F) -> Self {
        Self { make: Some(make), future: None, permit: None, acquire: Acquire::new(cell, 1) }
    }

    /// A panic of the user's code drops the permit.
    fn poll<E>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to_result: impl FnOnce(Fut::Output) -> Result<T, E>,
    ) -> Poll<Result<&'a T, E>> {
        let mut this = self.project();
        let cell = *this.acquire.source();
        match &this.permit {
            Some(_) => {}
            None => match cell.get() {
                Some(value) => return mini_context::poll_budget(cx, &*this.permit).map(|()| Ok(value)),
                None => {
                    if ready!(this.acquire.poll(cx)).is_err() {
                        return Poll::Ready(Ok(cell.get().expect("a value, as the cell is closed")));
                    }
                    let permit = Held { source: cell, count: 1 };
                    let make = this.make.take().expect("a future that was not ready");
                    this.future.set(Some(make()));
                    *this.permit = Some(permit);
                }
            },
        }
        // A future that panics is dropped before the permit goes.
        let mut making = Making { future: this.future, permit: this.permit };
        let Some(future) = making.future.as_mut().as_pin_mut() else { panic!("polled after it was ready") };
        let Poll::Ready(output) = future.poll(cx) else {
            std::mem::forget(making);
            return Poll::Pending;
        };
        making.future.set(None);
        let _permit = making.permit.take(); // until the value is there
        Poll::Ready(to_result(output).map(|value| {
            cell.fill(value);
            cell.get().expect("the value that was set")
        }))
    }
}

macro_rules! future {
    (
        $(#[$doc:meta])*
        $future:ident, [$($error:ident)?], $output:ty, $made:ty, $to_result:expr, |$made_value:ident| $out:expr
    ) => {
        pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $future<'a, T, F, Fut> {
                #[pin]
                inner: Init<'a, T, F, Fut>,
            }
        }

        impl<'a, T, $($error,)? F: FnOnce() -> Fut, Fut: Future<Output = $made>> Future for $future<'a, T, F, Fut> {
            type Output = $output;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<$output> {
                self.project().inner.poll(cx, $to_result).map(|$made_value| $out)
            }
        }

        impl<T, F, Fut> fmt::Debug for $future<'_, T, F, Fut> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).field("makes", &self.inner.permit.is_some()).finish()
            }
        }
    };
}

future!(
    /// Future of [`OnceCell::get_or_init`]: resolves to `&T`.
    GetOrInit, [], &'a T, T, Ok::<T, Infallible>, |value| value.unwrap_or_else(|never| match never {})
);
future!(
    /// Future of [`OnceCell::get_or_try_init`]: resolves to `Result<&T, E>`.
    GetOrTryInit, [E], Result<&'a T, E>, Result<T, E>, |made| made, |value| value
);

/// The cell was not filled.
#[derive(Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// There is a value.
    AlreadyInitializedError(T),
    /// A task is making one.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Returns `true` if there is a value.
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, Self::AlreadyInitializedError(_))
    }

    /// Returns `true` if a task is making one.
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, Self::InitializingError(_))
    }
}

error!(SetError<T: fmt::Debug> {
    Self::AlreadyInitializedError(_) => "the cell has a value",
    Self::InitializingError(_) => "the cell's value is being made",
});
