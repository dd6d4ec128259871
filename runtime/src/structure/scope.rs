//! Scopes: children that borrow, run concurrently inside of one task, and never outlive the scope.
//!
//! The hard part is that children borrow from outside of the scope, and that there may be any number of them. A scope
//! is a future that owns its children (`child.rs`). The body and the children have a handle ([`Scope`]) to what they
//! share: a list of children that were spawned and not yet taken over by the scope ([`Drive`]). A child may hold a
//! handle too, and is in that list until it is taken over: a cycle, which `Drive` breaks when it ends or is dropped. A
//! scope that is leaked leaks its children with it.
//!
//! `'env` is chosen by the compiler: it is longer than the body's future, so a child can't borrow what is local to the
//! body, and it ends where what the children borrow ends.
//!
//! *One pass for each poll.* `Drive` polls the children that were woken before the pass, in the order of the wakes and
//! as many as a budget has units at most, then those that were spawned until then; the body is one more child. A child
//! that is woken during the pass runs in the next poll, after other tasks. If the budget of the poll is spent, the rest
//! of the pass moves to the next poll too. See `ready.rs` for the wakes. A new child is polled with the waker of the
//! next free place. It gets that place if it waits; a child that is ready at once takes none. In a simulation the order
//! of both woken and new children is drawn (`sim/preempt.rs`).
//!
//! *The end.* When the body has returned and no child is left, the scope is ready with the body's value. An error of a
//! child or of the body, a panic, or a drop of the scope cancels the rest: the body is dropped first, as it may own
//! what children wait for, then the children in the order of their places, then those without one. Only then is the
//! error returned, or the panic resumed. A destructor that panics does not keep the others from being dropped.
//!
//! Rejected: polling a child in the list where it was spawned (the list is locked then).

use std::any::Any;
use std::collections::VecDeque;
use std::convert::{self, Infallible};
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mini_context::{Lock, Note, Reason};
use pin_project_lite::pin_project;

use super::child::{LocalChild, SendChild};
use super::join::{infallible, whole};
use super::output::ScopedJoinHandle;
use super::ready::Ready;
use super::wakers::Wakers;
use crate::task::large::boxed;

/// The number of the body among the children.
const BODY: u32 = 0;

/// What the handles of a scope share.
struct ScopeState<C> {
    ready: Arc<Ready>,
    spawned: Lock<Spawned<C>>,
    /// Where the scope stands.
    location: &'static Location<'static>,
}

struct Spawned<C> {
    /// In the order of their spawn; taken over by the next pass.
    children: VecDeque<C>,
    /// The scope has ended.
    is_closed: bool,
}

impl<C> ScopeState<C> {
    #[track_caller]
    fn new() -> Arc<Self> {
        let spawned = Lock::new(Spawned { children: VecDeque::new(), is_closed: false });
        Arc::new(Self { ready: Ready::new(), spawned, location: Location::caller() })
    }

    /// A child of a scope that has ended is dropped.
    fn spawn(&self, child: C) {
        let mut spawned = self.spawned.lock();
        if spawned.is_closed {
            drop(spawned);
            return drop(child);
        }
        spawned.children.push_back(child);
        drop(spawned);
        if !self.ready.has_spawned() {
            self.ready.announce();
        }
    }

    /// Closes the scope, and says whether it had no more children.
    fn close_if_empty(&self) -> bool {
        let mut spawned = self.spawned.lock();
        spawned.is_closed = spawned.children.is_empty();
        spawned.is_closed
    }

    /// Closes the scope. The children that it has not taken over come back.
    fn close(&self) -> VecDeque<C> {
        let mut spawned = self.spawned.lock();
        spawned.is_closed = true;
        mem::take(&mut spawned.children)
    }
}

/// Defines one of the four handles.
macro_rules! handle {
    ($(#[$doc:meta])* $scope:ident [$($error:ident)?] $child:ident <$fails:ty> [$($send:tt)*]) => {
        $(#[$doc])*
        pub struct $scope<'env $(, $error)?> {
            shared: Arc<ScopeState<$child<'env, $fails>>>,
        }

        impl<'env $(, $error: 'env)?> $scope<'env $(, $error)?> {
            /// For the macros.
            #[doc(hidden)]
            #[allow(clippy::new_without_default)]
            #[track_caller]
            pub fn new() -> Self {
                Self { shared: ScopeState::new() }
            }

            /// Starts a child whose errors are those of the scope.
            #[track_caller]
            fn start<F, T>(&self, future: F) -> ScopedJoinHandle<T>
            where
                F: Future<Output = Result<T, $fails>> + $($send)* 'env,
                T: $($send)* 'env,
            {
                let (child, joined) = $child::new(future, Location::caller());
                self.shared.spawn(child);
                ScopedJoinHandle::new(joined)
            }
        }

        impl<$($error)?> Clone for $scope<'_ $(, $error)?> {
            fn clone(&self) -> Self {
                Self { shared: self.shared.clone() }
            }
        }

        impl<$($error)?> fmt::Debug for $scope<'_ $(, $error)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($scope)).finish_non_exhaustive()
            }
        }
    };
}

/// Of scopes whose children give any output.
macro_rules! spawn {
    ($scope:ident [$($send:tt)*]) => {
        impl<'env> $scope<'env> {
            /// Starts `future` as a child of the scope.
            ///
            /// It runs when the body waits next. The handle waits for its output; without it the child runs on, and
            /// the scope waits for it at its end. Spawned after the end of the scope, `future` is dropped.
            #[track_caller]
            pub fn spawn<F>(&self, future: F) -> ScopedJoinHandle<F::Output>
            where
                F: Future<Output: $($send)* 'env> + $($send)* 'env,
            {
                boxed!(Box::pin, future: F => self.start(infallible(future)))
            }

            /// For the macros: the future of the scope.
            #[doc(hidden)]
            pub async fn run<B: Future>(self, body: Pin<&mut Option<B>>) -> B::Output {
                whole(Drive::new(self.shared, body, Ok).await)
            }
        }
    };
}

/// Of scopes whose children may fail.
macro_rules! try_spawn {
    ($scope:ident [$($send:tt)*]) => {
        impl<'env, E: $($send)* 'env> $scope<'env, E> {
            /// Starts `future` as a child of the scope, whose error cancels the body and the other children.
            ///
            /// It runs when the body waits next. The handle waits for its output; without it the child runs on, and
            /// the scope waits for it at its end. Spawned after the end of the scope, `future` is dropped.
            #[track_caller]
            pub fn spawn<F, T>(&self, future: F) -> ScopedJoinHandle<Result<T, E>>
            where
                F: Future<Output = Result<T, E>> + $($send)* 'env,
                T: $($send)* 'env,
            {
                boxed!(Box::pin, future: F => self.start(Trying { future }))
            }

            /// For the macros: the future of the scope.
            #[doc(hidden)]
            pub async fn run<B, T>(self, body: Pin<&mut Option<B>>) -> Result<T, E>
            where
                B: Future<Output = Result<T, E>>,
            {
                Drive::new(self.shared, body, convert::identity).await
            }
        }
    };
}

handle! {
    /// Starts the children of a scope, see [`scope!`](crate::scope).
    Scope [] SendChild<Infallible> [Send +]
}
handle! {
    /// Starts the children of a scope, see [`try_scope!`](crate::try_scope).
    TryScope [E] SendChild<E> [Send +]
}
handle! {
    /// Starts the children of a scope, see [`local_scope!`](crate::local_scope).
    LocalScope [] LocalChild<Infallible> []
}
handle! {
    /// Starts the children of a scope, see [`try_local_scope!`](crate::try_local_scope).
    TryLocalScope [E] LocalChild<E> []
}
spawn!(Scope [Send +]);
spawn!(LocalScope []);
try_spawn!(TryScope [Send +]);
try_spawn!(TryLocalScope []);

pin_project! {
    /// The future of a child whose error is that of the scope.
    pub(crate) struct Trying<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future<Output = Result<T, E>>, T, E> Future for Trying<F> {
    type Output = Result<Result<T, E>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map_ok(Ok)
    }
}

/// The future of a scope: its body, pinned where the macro stands, and its children.
pub(crate) struct Drive<'a, C, B: Future, T, E> {
    shared: Arc<ScopeState<C>>,
    body: Pin<&'a mut Option<B>>,
    value: Option<T>,
    /// The value of the body, or its error.
    judge: fn(B::Output) -> Result<T, E>,
    children: Children<C>,
}

impl<C, B: Future, T, E> Unpin for Drive<'_, C, B, T, E> {}

impl<C, B: Future, T, E> Drop for Drive<'_, C, B, T, E> {
    fn drop(&mut self) {
        if let Some(panic) = self.cancel()
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

/// The children that were taken over, by number; the place of number 0 is the body's, which is kept elsewhere.
struct Children<C> {
    places: Vec<Option<C>>,
    wakers: Wakers,
    /// Numbers of places without a child.
    free: Vec<u32>,
    /// Those to be polled in the pass in progress; empty otherwise.
    pass: Vec<u32>,
    /// Those that were taken over and have no place yet.
    new: VecDeque<C>,
    /// The next pass begins with those.
    are_new_next: bool,
}

impl<C> Children<C> {
    fn len(&self) -> usize {
        self.places.len() - 1 - self.free.len() + self.new.len()
    }

    /// The number of the place that the next child gets.
    fn next_number(&self) -> u32 {
        let fresh = || u32::try_from(self.places.len()).expect("fewer than 2^32 children at a time");
        self.free.last().copied().unwrap_or_else(fresh)
    }

    /// Gives the child the place of [`next_number`](Self::next_number).
    fn insert(&mut self, child: C) {
        match self.free.pop() {
            Some(number) => self.places[number as usize] = Some(child),
            None => self.places.push(Some(child)),
        }
    }

    fn remove(&mut self, number: u32) -> Option<C> {
        let child = self.places[number as usize].take()?;
        self.free.push(number);
        Some(child)
    }
}

impl<'a, C, B, T, E> Drive<'a, C, B, T, E>
where
    C: Future<Output = Result<(), E>> + Unpin,
    B: Future,
{
    fn new(shared: Arc<ScopeState<C>>, body: Pin<&'a mut Option<B>>, judge: fn(B::Output) -> Result<T, E>) -> Self {
        let children = Children {
            places: vec![None],
            wakers: Wakers::new(&shared.ready),
            free: Vec::new(),
            pass: Vec::new(),
            new: VecDeque::new(),
            are_new_next: false,
        };
        shared.ready.wake(BODY);
        Self { shared, body, value: None, judge, children }
    }

    fn pass(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        self.poll_children(cx)?;
        if self.children.len() == 0 && self.value.is_some() && self.shared.close_if_empty() {
            return Poll::Ready(Ok(self.value.take().expect("it is there")));
        }
        if self.shared.ready.rest(cx.waker()).is_ready() || !self.children.new.is_empty() {
            cx.waker().wake_by_ref();
        } else if mini_context::notes().is_empty() {
            // No child that waits was polled.
            let reason = Reason::JoinSet(self.children.len() as u64 + u64::from(self.body.is_some()));
            mini_context::leave_note(Note { reason, location: self.shared.location });
        }
        Poll::Pending
    }

    /// Polls the children that were woken, then those that were spawned until then. If the budget of such a pass is
    /// spent, the next one goes the other way round, and the one after that this way again: so neither kind keeps the
    /// other waiting.
    fn poll_children(&mut self, cx: &mut Context<'_>) -> Result<(), E> {
        let new_first = mem::take(&mut self.children.are_new_next);
        if new_first && !self.poll_new(cx)? {
            return Ok(());
        }
        let is_through = self.poll_woken(cx)? && (new_first || self.poll_new(cx)?);
        self.children.are_new_next = !is_through && !new_first;
        Ok(())
    }

    /// Says whether the budget has sufficed for all of them, as does [`poll_new`](Self::poll_new). Each spends one:
    /// many children that wait for nothing of mini's give way too.
    fn poll_woken(&mut self, cx: &mut Context<'_>) -> Result<bool, E> {
        let mut pass = mem::take(&mut self.children.pass);
        self.shared.ready.take(&mut pass);
        #[cfg(feature = "sim")]
        crate::sim::preempt::shuffle(&mut pass);
        let mut next = 0;
        while let Some(&number) = pass.get(next)
            && mini_context::poll_budget(cx, &*self).is_ready()
        {
            next += 1;
            self.poll_one(number)?;
        }
        let is_through = next == pass.len();
        pass.drain(..next);
        if !is_through {
            self.shared.ready.put_back(&mut pass);
        }
        self.children.pass = pass;
        Ok(is_through)
    }

    /// Polls the children that have no place yet.
    fn poll_new(&mut self, cx: &mut Context<'_>) -> Result<bool, E> {
        self.take_over();
        for _ in 0..self.children.new.len() {
            if mini_context::poll_budget(cx, &*self).is_pending() {
                return Ok(false);
            }
            self.poll_first_new()?;
        }
        Ok(true)
    }

    /// Takes the new children over.
    fn take_over(&mut self) {
        if self.shared.ready.take_spawned() {
            let new = &mut self.children.new;
            if new.is_empty() {
                mem::swap(&mut self.shared.spawned.lock().children, new);
            } else {
                // The budget of the last pass was spent.
                let mut spawned = mem::take(&mut self.shared.spawned.lock().children);
                new.append(&mut spawned);
            }
            #[cfg(feature = "sim")]
            crate::sim::preempt::shuffle(new.make_contiguous());
        }
    }

    /// Polls the first new child, which is new until then, and gets a place if it waits.
    fn poll_first_new(&mut self) -> Result<(), E> {
        let children = &mut self.children;
        let waker = children.wakers.of(children.next_number());
        let child = children.new.front_mut().expect("the caller has counted them");
        let polled = poll_with(Pin::new(child), &waker)?;
        let child = children.new.pop_front().expect("it was there");
        if polled.is_pending() {
            children.insert(child);
        }
        Ok(())
    }

    /// Polls a child or the body; an error is that of the scope.
    fn poll_one(&mut self, number: u32) -> Result<(), E> {
        let waker = self.children.wakers.of(number);
        if number == BODY {
            let Some(body) = self.body.as_mut().as_pin_mut() else { return Ok(()) };
            if let Poll::Ready(output) = poll_with(body, &waker) {
                self.value = Some((self.judge)(output)?);
                self.body.set(None);
            }
            return Ok(());
        }
        // None: a late wake, of a child that has ended.
        let Some(Some(child)) = self.children.places.get_mut(number as usize) else { return Ok(()) };
        if poll_with(Pin::new(child), &waker)?.is_ready() {
            drop(self.children.remove(number));
        }
        Ok(())
    }
}

impl<C, B: Future, T, E> Drive<'_, C, B, T, E> {
    /// Drops the body, then the children. The first panic of a destructor comes back.
    fn cancel(&mut self) -> Option<Box<dyn Any + Send>> {
        let mut first = caught(|| self.body.set(None));
        for place in &mut self.children.places {
            if let Some(child) = place.take() {
                first = first.or(caught(|| drop(child)));
            }
        }
        for child in mem::take(&mut self.children.new).into_iter().chain(self.shared.close()) {
            first = first.or(caught(|| drop(child)));
        }
        first = first.or(caught(|| self.shared.ready.close()));
        first
    }
}

impl<C, B, T, E> Future for Drive<'_, C, B, T, E>
where
    C: Future<Output = Result<(), E>> + Unpin,
    B: Future,
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.pass(cx)));
        if let Ok(Poll::Pending) = polled {
            return Poll::Pending;
        }
        let panicked = self.cancel();
        match (polled, panicked) {
            (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
            (Ok(polled), None) => polled,
        }
    }
}

/// Polls a child or the body with the waker of its place.
#[inline]
fn poll_with<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    #[cfg(feature = "sim")]
    let _polled = crate::sim::preempt::begin_child();
    future.poll(&mut Context::from_waker(waker))
}

/// The panic of `f`, if it panics.
fn caught(f: impl FnOnce()) -> Option<Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(f)).err()
}
