//! The stand-in for [`Lock`](crate::lock::Lock) in loom's models: a mutex that loom knows.

pub use loom::sync::MutexGuard as Guard;

/// A value for one thread at a time.
#[derive(Debug)]
pub struct Lock<T>(loom::sync::Mutex<T>);

impl<T> Lock<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Lock<T> {
        Lock(loom::sync::Mutex::new(value))
    }

    /// Takes the lock, and waits for it if need be.
    pub fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The value, which nobody else has just now.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
