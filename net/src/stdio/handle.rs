//! `Handle`: one user's access to a stream that a thread serves.
//!
//! Called by `stdio`. All handles of a stream share one slot. A `poll_` method wakes the task that polled *its own
//! handle* last, so each handle has keys of its own, as a future has.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use crate::ready::Interest;
use crate::slot::{Key, Slot};

/// A stream that a thread serves.
pub(super) trait Served: 'static {
    fn slot(&self) -> &Slot;
}

pub(super) struct Handle<S: Served> {
    stream: &'static S,
    /// For the waits to read and to write; a flush is a wait to read.
    keys: [Mutex<Key>; 2],
}

impl<S: Served> Handle<S> {
    pub(super) fn new(stream: &'static S) -> Handle<S> {
        Handle { stream, keys: Default::default() }
    }

    /// Polls with the key of a future, or else with the handle's own for `interest`.
    pub(super) fn poll<R>(
        &self,
        interest: Interest,
        key: Option<&mut Key>,
        poll: impl FnOnce(&'static S, &mut Key) -> Poll<R>,
    ) -> Poll<R> {
        if let Some(key) = key {
            return poll(self.stream, key);
        }
        let own = &self.keys[usize::from(interest.is_writable())];
        // Not under the lock: the slot clones and drops wakers.
        let mut key = mem::take(&mut *lock(own));
        let polled = poll(self.stream, &mut key);
        // A poll that was ready has no waiter. The waiter of a task that has polled this handle meanwhile stays.
        if !key.is_empty() {
            let mut displaced = mem::replace(&mut *lock(own), key);
            self.stream.slot().forget(&mut displaced);
        }
        polled
    }

    /// Removes the waiter of a future that is dropped.
    pub(super) fn forget(&self, key: &mut Key) {
        self.stream.slot().forget(key);
    }
}

impl<S: Served> Drop for Handle<S> {
    fn drop(&mut self) {
        for key in &mut self.keys {
            self.stream.slot().forget(key.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Poison is ignored: no user code runs under this lock.
fn lock(key: &Mutex<Key>) -> MutexGuard<'_, Key> {
    key.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::{Arc, LazyLock};
    use std::task::{Context, Waker};

    use super::*;
    use crate::ready::Ready;
    use crate::tests::rig::Task;

    struct Stream(Slot);

    impl Served for Stream {
        fn slot(&self) -> &Slot {
            &self.0
        }
    }

    fn poll(handle: &Handle<Stream>, task: &Arc<Task>) -> Poll<()> {
        let (waker, interest) = (task.waker(), Interest::WRITABLE);
        handle.poll(interest, None, |stream, key| {
            stream.0.poll_ready(&mut Context::from_waker(&waker), interest, Some(key)).map(drop)
        })
    }

    #[test]
    fn a_task_loses_no_wake_to_one_that_polls_another_handle() {
        static STREAM: LazyLock<Stream> = LazyLock::new(|| Stream(Slot::new(Ready::EMPTY)));
        let handles = [(); 3].map(|()| Handle::new(&*STREAM));
        let (former, tasks) = (Task::new(), [(); 3].map(|()| Task::new()));
        for (handle, task) in handles.iter().zip(&tasks) {
            assert!(poll(handle, &former).is_pending());
            assert!(poll(handle, task).is_pending() && poll(handle, task).is_pending());
        }
        assert_eq!(STREAM.0.waiting(), 3, "each handle has one place");
        let [gone, stays @ ..] = handles;
        drop(gone);
        let mut woken = Vec::new();
        STREAM.0.set(Ready::WRITABLE, &mut woken);
        woken.into_iter().for_each(Waker::wake);
        assert_eq!((former.wakes(), tasks.each_ref().map(|task| task.wakes())), (0, [0, 1, 1]));
        drop(stays);
    }

    #[test]
    fn a_ready_poll_leaves_the_waiter_of_another_task() {
        static STREAM: LazyLock<Stream> = LazyLock::new(|| Stream(Slot::new(Ready::EMPTY)));
        let (handle, waits) = (Handle::new(&*STREAM), Task::new());
        let polled = handle.poll(Interest::WRITABLE, None, |_, _| {
            assert!(poll(&handle, &waits).is_pending()); // meanwhile, on another thread
            Poll::Ready(())
        });
        assert!(polled.is_ready());
        assert_eq!(STREAM.0.waiting(), 1);
    }
}
