//! The stand-in for [`Lock`](crate::lock::Lock) in loom's models: a mutex that loom knows.

pub use loom::sync::MutexGuard as Guard;

/// A value for one thread at a time.
#[derive(Debug)]
pub struct Lock<T>(loom::sync::Mutex<T>);

impl<T> Lock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Lock<T> {
        Lock(loom::sync::Mutex::new(value))
    }

    /// Takes the lock, and waits for it if necessary.
    pub fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns a mutable reference to the value. No lock is needed, as no other thread can have one.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
