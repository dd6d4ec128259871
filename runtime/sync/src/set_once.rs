//! A value that is set once, and awaited: a cell, and a round that ends when it is full.

use std::fmt;

use mini_context::{Lock, SyncKind};

use crate::macros::{error, future};
use crate::once_cell::{Value, cell};
use crate::rounds::{self, HasRounds, RoundWait, Rounds};

/// A cell that one task sets, once, and other tasks wait for.
///
/// If the tasks that need the value also make it, use [`OnceCell`](crate::OnceCell).
///
/// # Examples
///
/// ```
/// use mini::sync::SetOnce;
///
/// static ADDRESS: SetOnce<String> = SetOnce::const_new();
///
/// # mini::block_on(async {
/// let waiting = mini::spawn(async { ADDRESS.wait().await.len() });
/// ADDRESS.set("localhost".to_string()).unwrap();
/// assert_eq!(waiting.await.unwrap(), 9);
/// # });
/// ```
pub struct SetOnce<T> {
    value: Value<T>,
    rounds: Lock<Rounds<()>>,
}

impl<T> HasRounds for &SetOnce<T> {
    const KIND: SyncKind = SyncKind::Once;
    type State = Rounds<()>;

    fn with<R>(&self, f: impl FnOnce(&mut Rounds<()>) -> R) -> R {
        f(&mut self.rounds.lock())
    }

    fn rounds(state: &mut Rounds<()>) -> &mut Rounds<()> {
        state
    }
}

impl<T> SetOnce<T> {
    /// Creates an empty cell.
    pub fn new() -> Self {
        Self { value: Value::new(), rounds: Lock::new(Rounds::new()) }
    }

    /// Creates one like [`new`](Self::new), for a `static`.
    #[cfg(not(loom))]
    pub const fn const_new() -> Self {
        Self { value: Value::new(), rounds: Lock::new(Rounds::new()) }
    }

    /// Creates a cell with a value, for a `static`.
    #[cfg(not(loom))]
    pub const fn const_new_with(value: T) -> Self {
        Self { value: Value::Constant(value), rounds: Lock::new(Rounds::new()) }
    }

    /// Sets the value, and wakes all tasks that wait for it.
    ///
    /// # Errors
    ///
    /// Fails if there is a value already. The error has `value`.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = mini::sync::SetOnce::new();
    /// cell.set(1).unwrap();
    /// assert_eq!(cell.set(2).unwrap_err().0, 2);
    /// ```
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        self.value.set(value).map_err(SetOnceError)?;
        rounds::end_if(&self, |_| true);
        Ok(())
    }

    /// Waits for the value.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn wait(&self) -> SetOnceWait<'_, T> {
        SetOnceWait { inner: RoundWait::new(self) }
    }
}

cell!(SetOnce { value, rounds: Lock::new(Rounds::new()) });

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce").field("value", &self.get()).finish()
    }
}

future!(
    /// Future of [`SetOnce::wait`]: resolves to `&T`.
    SetOnceWait['a, T] { inner: RoundWait<&'a SetOnce<T>> } -> &'a T,
    |this, cx| {
        let cell: &'a SetOnce<T> = this.inner.place();
        // The value is set before the round ends, so a look under the lock misses neither.
        this.inner.poll_until(cx, |_| cell.get())
    }
);

/// The error of setting a value when there is one already. It contains the rejected value.
#[derive(Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

error!(SetOnceError<T: fmt::Debug> { _ => "the value is already set" });
