//! The methods that spawn tasks into a set.

use std::future::Future;
use std::panic::Location;

use mini_kernel::scheduler::current;
use mini_kernel::task::refcount::OnJoin;

use super::JoinSet;
use crate::runtime::Handle;
use crate::task::large::boxed;
use crate::task::spawn::spawn_blocking_on;
use crate::task::spawn::{spawn_from, spawn_local_from};
use crate::task::{AbortHandle, JoinHandle};

impl<T: 'static> JoinSet<T> {
    /// Starts a task on the current runtime, as [`mini::spawn`](crate::spawn) does, and puts it into the set.
    ///
    /// # Examples
    ///
    /// See [`JoinSet`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let task = boxed!(Box::pin, future: F => spawn_from(future, Location::caller(), "JoinSet::spawn"));
        self.insert(task)
    }

    /// Starts a task on the runtime of `handle`, and puts it into the set.
    ///
    /// # Examples
    ///
    /// ```
    /// let workers = mini::runtime::Runtime::new()?;
    /// let mut set = mini::task::JoinSet::new();
    /// set.spawn_on(async { 7 }, workers.handle());
    /// assert_eq!(mini::block_on(set.join_next()).unwrap().unwrap(), 7);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(boxed!(Box::pin, future: F => handle.spawn(future)))
    }

    /// Starts a task that never leaves this thread, as [`mini::spawn_local`](crate::spawn_local) does, and puts it into
    /// the set.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// mini::block_on(async {
    ///     let (mut set, shared) = (mini::task::JoinSet::new(), Rc::new(7));
    ///     set.spawn_local(async move { *shared });
    ///     assert_eq!(set.join_all().await, [7]);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`mini::spawn_local`](crate::spawn_local), at the caller's line.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let (location, call) = (Location::caller(), "JoinSet::spawn_local");
        self.insert(boxed!(Box::pin, future: F => spawn_local_from(future, location, call)))
    }

    /// Runs `job` on a thread where it may block, as [`mini::spawn_blocking`](crate::spawn_blocking) does, and puts its
    /// task into the set.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::new();
    ///     for path in ["Cargo.toml", "src/lib.rs"] {
    ///         set.spawn_blocking(move || std::fs::metadata(path).is_ok());
    ///     }
    ///     assert_eq!(set.join_all().await, [true, true]);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, job: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let shared = current::shared("JoinSet::spawn_blocking");
        self.insert(boxed!(Box::new, job: F => spawn_blocking_on(&shared, job, Location::caller())))
    }

    /// Runs `job` on a thread of the runtime of `handle` where it may block, and puts its task into the set.
    ///
    /// # Examples
    ///
    /// See [`spawn_on`](Self::spawn_on).
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, job: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(boxed!(Box::new, job: F => handle.spawn_blocking(job)))
    }

    /// Puts a task that was started elsewhere into the set, such as one with a name.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Builder, JoinSet};
    /// mini::block_on(async {
    ///     let mut set = JoinSet::new();
    ///     set.insert(Builder::new().name("seven").spawn(async { 7 }));
    ///     assert_eq!(set.join_all().await, [7]);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If its output has been taken already.
    #[track_caller]
    pub fn insert(&mut self, task: JoinHandle<T>) -> AbortHandle {
        assert!(!task.is_spent(), "JoinSet::insert: {task:?} has been joined already");
        let abort = task.abort_handle();
        let number = self.place();
        let task = self.handles[number as usize].insert(task);
        let (found, unneeded) = task.leave_waiter(self.ended.waker(number));
        if found == OnJoin::Done {
            self.ended.push(number);
        }
        drop(unneeded); // may panic
        abort
    }
}

/// Spawns the futures, as [`JoinSet::spawn`] does, and panics where that panics.
impl<F> FromIterator<F> for JoinSet<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        set.extend(futures);
        set
    }
}

/// Spawns the futures, as [`JoinSet::spawn`] does, and panics where that panics.
impl<F> Extend<F> for JoinSet<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
        }
    }
}
