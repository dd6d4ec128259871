//! Locks and channels for tasks: fair, cancel-safe, and named in the reports about waiting tasks.
//!
//! Names and behaviour are those of `tokio::sync`, so a port only changes its `use` lines. They run on any executor. In
//! addition:
//!
//! - **Fair.** Tasks that wait for a lock, a permit or room in a channel are served first come, first served. A later
//!   task does not take what was released for a waiter.
//! - **Cancel-safe.** A dropped future gives back what it was given. The section "Cancel safety" of a method describes
//!   anything else.
//! - **No allocation per wait.** A waiter is a part of its future.
//! - **No poison.** A panic releases a lock; the value is as the panic left it.
//! - **Owners are known.** A lock knows the task and the source line that hold it, and prints them (`{:?}`). On mini, a
//!   waiting task shows what it waits for.
//!
//! | | |
//! |---|---|
//! | [`Mutex`], [`RwLock`] | one at a time; many readers or one writer |
//! | [`Semaphore`] | a limited number at a time |
//! | [`Notify`], [`Barrier`] | wake a task; wait for each other |
//! | [`OnceCell`], [`SetOnce`] | a value that is made once; a value that is awaited |
//! | [`mpsc`] | messages from many senders to one receiver |
//! | [`oneshot`] | one message |
//! | [`broadcast`] | each message to all receivers |
//! | [`watch`] | the newest value to all receivers |

mod barrier;
mod blocking;
pub mod broadcast;
mod guards;
mod macros;
pub mod mpsc;
mod mutex;
mod notify;
mod once_cell;
pub mod oneshot;
mod panics;
mod permits;
mod primitives;
mod rounds;
mod rwlock;
mod semaphore;
mod set_once;
mod waiters;
pub mod watch;

pub use barrier::{Barrier, BarrierWaitResult};
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError};
pub use notify::Notify;
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard,
    RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};

pub use set_once::{SetOnce, SetOnceError};

/// The futures of the methods, for programs that keep one in a struct.
pub mod future {
    pub use crate::barrier::BarrierWait;
    pub use crate::broadcast::BroadcastClosed;
    pub use crate::broadcast::receiver::BroadcastRecv;
    pub use crate::mpsc::future::{Closed, Recv, RecvMany, Reserve, ReserveMany, ReserveOwned, SendRef};
    pub use crate::mutex::{LockOwned, LockRef};
    pub use crate::notify::{Notified, OwnedNotified};
    pub use crate::once_cell::{GetOrInit, GetOrTryInit};
    pub use crate::oneshot::Closed as OneshotClosed;
    pub use crate::rwlock::{ReadOwned, ReadRef, WriteOwned, WriteRef};
    pub use crate::semaphore::{AcquireOwned, AcquireRef};
    pub use crate::set_once::SetOnceWait;
    pub use crate::watch::{WatchChanged, WatchClosed, WatchWaitFor};
}

/// The futures of [`future`] that tokio names, at tokio's path.
pub mod futures {
    pub use crate::notify::{Notified, OwnedNotified};
}

#[cfg(all(test, loom))]
mod models;
