//! A child of a scope and its output: one allocation for both, and for those two who share it.
//!
//! The scope has the [`Child`]: it polls the future and drops it. The handle has the [`Joined`]: the output. The last
//! of the two to be dropped frees the allocation. Its memory comes from the allocator of tasks (`task/allocator.rs`).
//!
//! ```text
//!                     one goes                         the other one goes
//!   both are there -------------> is_alone is set -----------------------> freed
//!                                  no output is kept for a handle that is gone
//! ```
//!
//! The future is the scope's alone, and has been dropped before the scope's part goes, however that panics. So the
//! handle may leave the scope, and keep the memory of the future longer; what it reaches then is the output, of whose
//! type it is. A scope that is leaked never gives its part back, so that its children are leaked with it.
//!
//! Rejected: a `Box` for the future and an `Arc` for the output (two allocations, and four locked instructions for a
//! child whose handle is dropped: a scope of children that are ready at once takes twice as long). One `Arc` with the
//! future in a lock (a locked instruction for each poll, and a lock that lends what is pinned takes `unsafe` as well).

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use mini_kernel::primitives::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire};
use mini_kernel::task::allocator;

use super::output::Output;

/// The allocation.
#[repr(C)]
struct Joint<F, T> {
    header: Header<T>,
    /// The scope's alone; none once it was dropped.
    future: UnsafeCell<Option<F>>,
}

/// The part of a child that its handle knows.
#[repr(C)]
struct Header<T> {
    shares: Shares,
    output: Output<T>,
}

/// What the two parts have in common, whatever future and output are.
struct Shares {
    /// One of the two has gone.
    is_alone: AtomicBool,
    /// Frees the allocation.
    free: unsafe fn(NonNull<Shares>),
}

/// What the scope does with a child, whatever its future and its output are.
pub(crate) trait Job {
    /// What the scope fails with.
    type Error;

    /// Polls the future. Its output is left for the handle; an error is the scope's.
    ///
    /// # Safety
    ///
    /// Called by the [`Child`] alone, as [`end`](Self::end) is.
    unsafe fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;

    /// Drops the future, and tells the handle if there will be no output.
    ///
    /// # Safety
    ///
    /// As for [`poll`](Self::poll).
    unsafe fn end(&self);
}

impl<F, T, E> Job for Joint<F, T>
where
    F: Future<Output = Result<T, E>>,
{
    type Error = E;

    unsafe fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        // SAFETY: only the child comes here, which polls and ends the job under `&mut self`.
        // Test: `each_future_and_output_is_dropped_once`.
        let future = unsafe { &mut *self.future.get() };
        // SAFETY: the future is dropped where it stands, and never moved. Test: as above.
        let future = unsafe { Pin::new_unchecked(future) };
        let output = match future.as_pin_mut().expect("a child that was not dropped").poll(cx)? {
            Poll::Ready(output) => output,
            Poll::Pending => return Poll::Pending,
        };
        if !self.header.is_alone() {
            self.header.output.fill(output);
        }
        Poll::Ready(Ok(()))
    }

    unsafe fn end(&self) {
        struct GivesUp<'a, T>(&'a Header<T>);

        impl<T> Drop for GivesUp<'_, T> {
            fn drop(&mut self) {
                if !self.0.is_alone() {
                    self.0.output.give_up();
                }
            }
        }

        let _gives_up = GivesUp(&self.header); // comes later: it runs a waker, which may panic
        // SAFETY: as in `poll`. Test: as there.
        let future = unsafe { &mut *self.future.get() };
        *future = None;
    }
}

impl<T> Header<T> {
    fn is_alone(&self) -> bool {
        self.shares.is_alone.load(Acquire)
    }
}

/// One of the two parts of the allocation, given back when it is dropped: the scope's once its future has gone.
struct Part(NonNull<Shares>);

impl Drop for Part {
    #[inline]
    fn drop(&mut self) {
        let shares = self.0.as_ptr();
        // SAFETY: this part keeps the allocation until the flag is set. Test: model `who_goes_last_frees_once`.
        let is_alone = unsafe { &(*shares).is_alone }; // that field alone: the other thread may free the rest at once
        // Acquire, and Release in the swap: what the other one did to output and future comes before they are freed.
        if !is_alone.load(Acquire) && !is_alone.swap(true, AcqRel) {
            return;
        }
        // SAFETY: the other part has gone, so nobody frees it but this thread. Test: as above.
        let free = unsafe { (*shares).free };
        // SAFETY: both parts have gone; `free` is of this allocation. Test: as above.
        unsafe { free(self.0) };
    }
}

/// Frees a `Joint<F, T>` with its output.
///
/// # Safety
///
/// `shares` are those of a `Joint<F, T>` that nobody uses any more, and whose future has been dropped.
unsafe fn free<F, T>(shares: NonNull<Shares>) {
    struct Block<F, T>(NonNull<Joint<F, T>>);

    impl<F, T> Drop for Block<F, T> {
        fn drop(&mut self) {
            // SAFETY: `allocate` gave it in `new`, and what was in it has been dropped.
            // Test: model `who_goes_last_frees_once`.
            unsafe { allocator::free_untied(self.0) };
        }
    }

    let _block = Block::<F, T>(shares.cast());
    // SAFETY: the caller's promise; the header is dropped here, and the rest of a `Joint` was. Test: as above.
    drop(unsafe { shares.cast::<Header<T>>().read() });
}

/// Both parts of a new child.
fn new<F, T>(future: F, location: &'static Location<'static>) -> (NonNull<Joint<F, T>>, Joined<T>) {
    let joint = allocator::allocate::<Joint<F, T>>();
    let shares = Shares { is_alone: AtomicBool::new(false), free: free::<F, T> };
    let header = Header { shares, output: Output::new(location) };
    // SAFETY: memory for a `Joint`, which nobody else has. Test: `each_future_and_output_is_dropped_once`.
    unsafe { joint.write(Joint { header, future: UnsafeCell::new(Some(future)) }) };
    (joint, Joined { part: Part(joint.cast()), output: PhantomData })
}

/// The scope's part: the future. Dropped, it cancels the child.
pub(crate) struct Child<J: Job + ?Sized>(NonNull<J>);

/// A child that may go to other threads with its scope.
pub(super) type SendChild<'env, E> = Child<dyn Job<Error = E> + Send + 'env>;
/// One that stays where it is.
pub(super) type LocalChild<'env, E> = Child<dyn Job<Error = E> + 'env>;

// SAFETY: what a child reaches is a job that is `Send`: future and output. The output is shared with the handle, under
// a lock. Test: tests/ui/fail/scope_not_send.rs.
unsafe impl<J: Job + Send + ?Sized> Send for Child<J> {}

impl<'env, E> SendChild<'env, E> {
    /// A child whose errors are those of its scope, and the handle's part of it.
    pub(super) fn new<F, T>(future: F, location: &'static Location<'static>) -> (Self, Joined<T>)
    where
        F: Future<Output = Result<T, E>> + Send + 'env,
        T: Send + 'env,
    {
        let (joint, joined) = new(future, location);
        (Child(joint), joined)
    }
}

impl<'env, E> LocalChild<'env, E> {
    /// A child whose errors are those of its scope, and the handle's part of it.
    pub(super) fn new<F, T>(future: F, location: &'static Location<'static>) -> (Self, Joined<T>)
    where
        F: Future<Output = Result<T, E>> + 'env,
        T: 'env,
    {
        let (joint, joined) = new(future, location);
        (Child(joint), joined)
    }
}

impl<J: Job + ?Sized> Future for Child<J> {
    type Output = Result<(), J::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: this is the child, which keeps the job. Test: `each_future_and_output_is_dropped_once`.
        let job = unsafe { self.0.as_ref() };
        // SAFETY: as above.
        unsafe { job.poll(cx) }
    }
}

impl<J: Job + ?Sized> Drop for Child<J> {
    fn drop(&mut self) {
        let _part = Part(self.0.cast()); // goes last, also if the rest panics
        // SAFETY: this is the child, which keeps the job until its part is given back.
        // Test: `each_future_and_output_is_dropped_once`.
        let job = unsafe { self.0.as_ref() };
        // SAFETY: as above.
        unsafe { job.end() };
    }
}

/// The handle's part: the output. Without a destructor that is generic, as for an `Arc` of it: what the output borrows
/// may be gone before the handle is.
pub(super) struct Joined<T> {
    part: Part,
    output: PhantomData<Header<T>>,
}

// SAFETY: what the handle reaches is an output under a lock, for which `T` is sent from thread to thread. Of the rest
// it has a part in the memory only. Test: model `who_goes_last_frees_once`.
unsafe impl<T: Send> Send for Joined<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Joined<T> {}

impl<T> Deref for Joined<T> {
    type Target = Output<T>;

    #[inline]
    fn deref(&self) -> &Output<T> {
        // SAFETY: the handle's part keeps the header. Test: `each_future_and_output_is_dropped_once`.
        unsafe { &(*self.part.0.cast::<Header<T>>().as_ptr()).output }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::convert::Infallible;
    use std::future;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use super::super::output::ScopedJoinHandle;
    use super::*;

    type Part<'env> = SendChild<'env, Infallible>;

    fn spawn<'env, T: Send + 'env>(
        future: impl Future<Output = Result<T, Infallible>> + Send + 'env,
    ) -> (Part<'env>, ScopedJoinHandle<T>) {
        let (child, joined) = Part::new(future, Location::caller());
        (child, ScopedJoinHandle::new(joined))
    }

    /// A child that is ready with `output` when it is polled a second time, and keeps `held` until it is dropped.
    fn child<'a, T: Send + Copy + 'a>(held: &'a Arc<()>, output: T) -> (Part<'a>, ScopedJoinHandle<T>) {
        let (held, mut is_first) = (held.clone(), true);
        spawn(future::poll_fn(move |_| {
            let _held = &held;
            if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(Ok(output)) }
        }))
    }

    fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// AddressSanitizer and Miri would find what is used too late, and what is freed twice or never.
    #[test]
    fn each_future_and_output_is_dropped_once() {
        for polls in 0..3 {
            let (held, output) = (Arc::new(()), Arc::new([0; 7]));
            let (mut child, mut handle) = child(&held, &output);
            (0..polls).for_each(|_| _ = poll(&mut child));
            assert_eq!((Arc::strong_count(&held), handle.is_finished()), (2, polls == 2));
            drop(child);
            assert_eq!((Arc::strong_count(&held), handle.is_finished()), (1, true));
            if polls == 2 {
                assert!(poll(&mut handle).is_ready());
            }
        }
    }

    #[test]
    fn an_output_that_nobody_reads_goes_with_the_last_of_both() {
        for goes_first in [true, false] {
            let output = Arc::new(());
            let (mut child, handle) = spawn(future::ready(Ok(output.clone())));
            let mut handle = Some(handle);
            if goes_first {
                handle = None;
            }
            assert!(poll(&mut child).is_ready());
            assert_eq!(Arc::strong_count(&output), if goes_first { 1 } else { 2 });
            drop(child);
            drop(handle);
            assert_eq!(Arc::strong_count(&output), 1);
        }
    }

    /// A pinned value is dropped before its memory is freed, so others may point to it until then.
    #[test]
    fn a_waker_that_panics_keeps_no_future_from_its_drop() {
        struct Panics;

        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                resume_unwind(Box::new("woken"));
            }
        }

        let held = Arc::new(());
        let (child, mut handle) = child(&held, ());
        assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&Arc::new(Panics).into())).is_pending());
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(child)));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"woken"));
        assert_eq!((Arc::strong_count(&held), handle.is_finished()), (1, true));
    }

    #[test]
    fn a_panic_of_a_destructor_frees_all_the_same() {
        struct Panics(#[allow(dead_code)] Arc<()>);

        impl Drop for Panics {
            fn drop(&mut self) {
                resume_unwind(Box::new("dropped"));
            }
        }

        let held = Arc::new(());
        for keeps_handle in [true, false] {
            let panics = Panics(held.clone());
            let (mut child, handle) = spawn(async move {
                let _panics = panics;
                future::pending::<Result<(), _>>().await
            });
            let handle = keeps_handle.then_some(handle);
            assert!(poll(&mut child).is_pending());
            let panicked = catch_unwind(AssertUnwindSafe(|| drop(child)));
            assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"dropped"));
            assert!(handle.is_none_or(|handle| handle.is_finished()));
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::convert::Infallible;
    use std::task::Waker;

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Written by the child, and by whoever drops it.
    struct Value(Arc<UnsafeCell<u32>>);

    impl Value {
        fn count(&self) {
            // SAFETY: loom fails the model if another thread may be here.
            self.0.with_mut(|count| unsafe { *count += 1 });
        }
    }

    impl Drop for Value {
        fn drop(&mut self) {
            self.count();
        }
    }

    // SAFETY: loom tells where two threads use it at a time.
    unsafe impl Send for Value {}

    /// A handle goes, or looks, beside the end of its child: the output is dropped once, and the memory freed once.
    ///
    /// Fails if a part that goes loads and stores, or if its load or its swap is Relaxed.
    #[test]
    fn who_goes_last_frees_once() {
        for looks in [false, true] {
            loom::model(move || {
                let cell = Arc::new(UnsafeCell::new(0));
                let value = Value(cell.clone());
                let future = async move {
                    value.count();
                    Ok::<_, Infallible>(value)
                };
                let (mut child, joined) = SendChild::new(future, Location::caller());
                let other = thread::spawn(move || {
                    if looks {
                        joined.is_finished();
                    }
                    drop(joined);
                });
                let _ = Pin::new(&mut child).poll(&mut Context::from_waker(Waker::noop()));
                drop(child);
                other.join().unwrap();
                assert_eq!(
                    cell.with(|count| {
                        // SAFETY: the other thread has ended.
                        unsafe { *count }
                    }),
                    2
                );
            });
        }
    }
}
