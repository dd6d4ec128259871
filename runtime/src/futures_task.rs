//! The runtime as an executor for libraries that use the traits of futures-task. Requires the feature `futures-task`.

use futures_task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};
use mini_kernel::scheduler::current;

use crate::runtime::Handle;

/// With the feature `futures-task`: libraries that ask for an executor can spawn tasks by it.
///
/// # Errors
///
/// [`SpawnError::shutdown`] once the runtime has shut down.
impl Spawn for Handle {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status()?;
        drop(self.spawn(future));
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.shared.is_closing() { Err(SpawnError::shutdown()) } else { Ok(()) }
    }
}

/// Spawns tasks on the thread that uses it, for libraries that take an executor of futures that are not `Send`.
/// Requires the feature `futures-task`.
///
/// # Examples
///
/// ```
/// use futures_task::LocalSpawn;
///
/// mini::block_on(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     let spawner: &dyn LocalSpawn = &mini::task::LocalSpawner::new();
///     spawner.spawn_local_obj(Box::new(async move { sender.send(7).unwrap() }).into()).unwrap();
///     mini::task::yield_now().await;
///     assert_eq!(receiver.recv().unwrap(), 7);
/// });
/// ```
///
/// # Errors
///
/// Returns [`SpawnError::shutdown`] outside a runtime, and once the runtime has shut down.
///
/// # Panics
///
/// Inside a runtime, `spawn_local_obj` panics in the same cases as [`mini::spawn_local`](crate::spawn_local).
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalSpawner(());

impl LocalSpawner {
    /// Creates a spawner for the thread that uses it.
    ///
    /// # Examples
    ///
    /// See [`LocalSpawner`].
    pub fn new() -> Self {
        Self::default()
    }
}

impl LocalSpawn for LocalSpawner {
    #[track_caller]
    fn spawn_local_obj(&self, future: LocalFutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status_local()?;
        drop(crate::spawn_local(future));
        Ok(())
    }

    fn status_local(&self) -> Result<(), SpawnError> {
        match current::with_shared(|shared| shared.is_closing()) {
            Some(false) => Ok(()),
            Some(true) | None => Err(SpawnError::shutdown()),
        }
    }
}
