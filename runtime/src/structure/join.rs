//! `Join`: waits for all of some futures, or for the first error.
//!
//! A `join!` is a `try_join!` whose branches cannot fail. A branch keeps its output until all are done. One that is
//! `maybe` is not waited for: once all others are done it is dropped, and its output is an `Option`.
//!
//! All branches are polled whenever the task is: they share its waker, so a join costs nothing but the memory of its
//! futures. For many futures there are scopes.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::branches::{Empty, Walk};

/// A list of the branches of a join: each branch with the list of those before it.
pub trait Branches<E> {
    /// The outputs, as pairs.
    type Output;
    /// How many branches there are.
    const LEN: usize;

    /// Polls the branches of the walk.
    fn poll(&mut self, walk: Walk, cx: &mut Context<'_>) -> Result<(), E>;
    /// Whether all that are awaited are done.
    fn is_done(&self) -> bool;
    /// Takes the outputs of the branches that are done.
    fn take(&mut self) -> Self::Output;
    /// Drops the futures, and the outputs that are there.
    fn end(&mut self);
}

impl<E> Branches<E> for Empty {
    type Output = ();
    const LEN: usize = 0;

    fn poll(&mut self, _walk: Walk, _cx: &mut Context<'_>) -> Result<(), E> {
        Ok(())
    }

    fn is_done(&self) -> bool {
        true
    }

    fn take(&mut self) {}

    fn end(&mut self) {}
}

pin_project! {
    /// A future, until it is done, and then its value. Pinned where the macro is called, as in `race.rs`.
    pub struct Branch<F, T> {
        #[pin]
        future: Option<F>,
        value: Option<T>,
    }
}

/// Functions of their own: without optimisations each has room for a future, and those of the branches before it would
/// be on the stack with it.
impl<F: Future<Output = Result<T, E>>, T, E> Branch<F, T> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Result<(), E> {
        let mut this = self.project();
        if let Some(future) = this.future.as_mut().as_pin_mut()
            && let Poll::Ready(output) = future.poll(cx)
        {
            *this.value = Some(output?);
            this.future.set(None);
        }
        Ok(())
    }

    fn end(self: Pin<&mut Self>) {
        let mut this = self.project();
        this.future.set(None);
        *this.value = None;
    }
}

/// A branch, and those before it.
pub struct Behind<'a, Before, F, T, const IS_AWAITED: bool> {
    before: Before,
    branch: Pin<&'a mut Branch<F, T>>,
}

impl<Before, F, T, E, const IS_AWAITED: bool> Branches<E> for Behind<'_, Before, F, T, IS_AWAITED>
where
    Before: Branches<E>,
    F: Future<Output = Result<T, E>>,
{
    type Output = (Before::Output, Option<T>);
    const LEN: usize = Before::LEN + 1;

    fn poll(&mut self, walk: Walk, cx: &mut Context<'_>) -> Result<(), E> {
        self.before.poll(walk, cx)?;
        if walk.comes_to(Before::LEN) { self.branch.as_mut().poll(cx) } else { Ok(()) }
    }

    fn is_done(&self) -> bool {
        self.before.is_done() && (!IS_AWAITED || self.branch.value.is_some())
    }

    fn take(&mut self) -> Self::Output {
        (self.before.take(), self.branch.as_mut().project().value.take())
    }

    fn end(&mut self) {
        self.before.end();
        self.branch.as_mut().end();
    }
}

/// The future of a `join!` or `try_join!`.
#[must_use = "futures do nothing unless awaited"]
pub struct Join<L, E> {
    list: L,
    /// The branch that is polled first.
    start: usize,
    error: PhantomData<fn() -> E>,
}

impl<L, E> Unpin for Join<L, E> {} // the futures are pinned elsewhere

impl<L: Branches<E>, E> Future for Join<L, E> {
    type Output = Result<L::Output, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let [to_the_end, to_the_start] = Walk::all(self.start, L::LEN);
        self.start = (self.start + 1) % L::LEN;
        let list = &mut self.list;
        let walked = list.poll(to_the_end, cx).and_then(|()| list.poll(to_the_start, cx));
        if walked.is_ok() && !list.is_done() {
            return Poll::Pending;
        }
        let outputs = walked.map(|()| list.take());
        list.end(); // before outputs or error are given
        Poll::Ready(outputs)
    }
}

/// Awaits the branches of a list.
pub fn join<L: Branches<E>, E>(list: L) -> Join<L, E> {
    Join { list, start: 0, error: PhantomData }
}

/// A future as a branch.
pub fn branch<F: IntoFuture<Output = Result<T, E>>, T, E>(future: F) -> Branch<F::IntoFuture, T> {
    Branch { future: Some(future.into_future()), value: None }
}

/// A branch that is awaited, behind others.
pub fn awaited<Before, F, T>(before: Before, branch: Pin<&mut Branch<F, T>>) -> Behind<'_, Before, F, T, true> {
    Behind { before, branch }
}

/// A branch that is not awaited, behind others.
pub fn maybe<Before, F, T>(before: Before, branch: Pin<&mut Branch<F, T>>) -> Behind<'_, Before, F, T, false> {
    Behind { before, branch }
}

/// The output of a branch that was awaited.
pub fn done<T>(output: Option<T>) -> T {
    output.expect("the branch is done")
}

/// The futures of a `try_join!` are as they are.
pub use std::convert::identity;

pin_project! {
    /// A future that cannot fail, and returns a `Result`.
    pub struct Whole<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Whole<F> {
    type Output = Result<F::Output, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map(Ok)
    }
}

/// Wraps a future that cannot fail, so that it returns a `Result`.
pub fn infallible<F: IntoFuture>(future: F) -> Whole<F::IntoFuture> {
    Whole { future: future.into_future() }
}

/// Unwraps a result that cannot be an error.
pub fn whole<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// The expansion of `join!` and `try_join!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __join {
    // One branch at a time: its output gets a name, and the branch is added to the list. A function of the name
    // `maybe`, and what is in a module of that name, are no less futures than others.
    (@branches $kind:ident $any:tt $names:tt $outputs:tt $list:tt maybe ($($of:tt)*) $($rest:tt)*) => {
        $crate::__join!(@awaited $kind $names $outputs $list maybe ($($of)*) $($rest)*)
    };
    (@branches $kind:ident $any:tt $names:tt $outputs:tt $list:tt maybe :: $($rest:tt)*) => {
        $crate::__join!(@awaited $kind $names $outputs $list maybe :: $($rest)*)
    };
    (@branches $kind:ident $any:tt [$(($value:expr))*] $outputs:tt [$list:expr]
        maybe $future:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__join!(@branches $kind $any [$(($value))* (output)] ($outputs, output)
            [$crate::structure::maybe($list, $crate::__join!(@branch $kind $future))] $($($rest)*)?)
    };
    (@branches $kind:ident $any:tt [$(($value:expr))*] $outputs:tt [$list:expr] $future:expr $(, $($rest:tt)*)?) => {
        $crate::__join!(@branches $kind any [$(($value))* ($crate::structure::done(output))] ($outputs, output)
            [$crate::structure::awaited($list, $crate::__join!(@branch $kind $future))] $($($rest)*)?)
    };
    (@awaited $kind:ident [$(($value:expr))*] $outputs:tt [$list:expr] $future:expr $(, $($rest:tt)*)?) => {
        $crate::__join!(@branches $kind any [$(($value))* ($crate::structure::done(output))] ($outputs, output)
            [$crate::structure::awaited($list, $crate::__join!(@branch $kind $future))] $($($rest)*)?)
    };
    (@branch $kind:ident $future:expr) => {
        ::std::pin::pin!($crate::structure::branch($crate::structure::$kind($future)))
    };
    (@awaited $($rest:tt)*) => { $crate::__join!(@branches) };
    (@branches infallible any [$(($value:expr))*] $outputs:tt [$list:expr]) => {
        match {
            let outputs = $crate::structure::join($list).await;
            $crate::structure::whole(outputs)
        } {
            $outputs => ($($value,)*),
        }
    };
    (@branches identity any [$(($value:expr))*] $outputs:tt [$list:expr]) => {
        match {
            let outputs = $crate::structure::join($list).await;
            outputs
        } {
            ::std::result::Result::Ok($outputs) => ::std::result::Result::Ok(($($value,)*)),
            ::std::result::Result::Err(error) => ::std::result::Result::Err(error),
        }
    };
    (@branches $kind:ident none [] $outputs:tt $list:tt) => {
        ::std::compile_error!("this needs futures to wait for, as in `join!(first(), second())`")
    };
    (@branches $kind:ident none [$(($value:expr))+] $outputs:tt $list:tt) => {
        ::std::compile_error!("a `maybe` future ends when all others are done: add one that is not `maybe`")
    };
    (@branches $($rest:tt)*) => {
        ::std::compile_error!("expected futures with commas between them, as in `join!(first(), maybe second())`")
    };
}

/// Waits for several futures at once, and gives their outputs as a tuple.
///
/// The futures run concurrently in this task, and each gets its turn to be polled first. The macro takes them by value,
/// and needs no `.await`. A future after `maybe` is not waited for: once all others are done it is dropped, and its
/// output is an `Option`. `maybe(..)` and `maybe::..` are a function and a path of that name, as elsewhere.
///
/// Whenever the task is woken, all futures that are not done are polled. For many futures, or a number that is not
/// known when the program is written, use [`scope!`](crate::scope).
///
/// # Examples
///
/// ```
/// use mini::time::{Duration, sleep};
///
/// async fn length(word: &str) -> usize {
///     word.len()
/// }
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let (first, second) = mini::join!(length("a"), length("word"));
/// assert_eq!((first, second), (1, 4));
///
/// let heartbeat = async {
///     loop {
///         sleep(Duration::from_secs(1)).await;
///     }
/// };
/// let (length, _heartbeat) = mini::join!(length("work"), maybe heartbeat);
/// assert_eq!(length, 4);
/// # });
/// ```
///
/// # Cancel safety
///
/// If the caller is dropped, the futures are dropped, and so are the outputs of those that are done.
#[macro_export]
macro_rules! join {
    ($($branches:tt)*) => { $crate::__join!(@branches infallible none [] () [$crate::structure::Empty] $($branches)*) };
}

/// Waits for several futures that return a `Result`; the first error drops the others. See [`join!`](crate::join).
///
/// The output is `Ok` with the values as a tuple, or the first error. The error is returned after the other futures
/// have been dropped.
///
/// # Examples
///
/// ```
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// # mini::block_on(async {
/// assert_eq!(mini::try_join!(parse("1"), parse("2")), Ok((1, 2)));
/// let failed = mini::try_join!(parse("x"), async {
///     std::future::pending::<()>().await;
///     Ok(())
/// });
/// assert!(failed.is_err());
/// # });
/// ```
///
/// # Errors
///
/// Returns the first error of a future.
///
/// # Cancel safety
///
/// As cancel safe as [`join!`](crate::join).
#[macro_export]
macro_rules! try_join {
    ($($branches:tt)*) => { $crate::__join!(@branches identity none [] () [$crate::structure::Empty] $($branches)*) };
}
