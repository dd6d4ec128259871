//! `Race`: waits for the first of some futures.
//!
//! The hard part is that the arms belong to the function around the macro: `return`, `break`, `?` and `.await` in an
//! arm act there. So the macro has one `match` whose arms are the user's, and no loop, closure or block of its own
//! around them. The future, not the macro, loops until an output matches its pattern, so the future must know the
//! patterns. It checks them by a `match` whose guard notes that the pattern has matched, and then refuses: bindings are
//! moved only after the guard, so the output stays whole, whatever the pattern binds and how.
//!
//! The outputs have different types, so the winner's goes out as one of nested enums. By then the futures have been
//! dropped.
//!
//! Rejected: patterns checked by reference (`Some(mut x)` and `&x` do not match a reference, so the macro would have to
//! rewrite them). Futures by reference, with losers that continue later (a loser that holds a lock, or its place in a
//! queue, and is not polled, stops all others).

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::branches::{Empty, Walk, draw};

/// The output of a branch, or of one before it.
#[derive(Debug)]
pub enum Outcome<Before, T> {
    /// Of this branch.
    Here(T),
    /// Of one before it.
    Before(Before),
}

/// A list of the branches of a race: each branch with the list of those before it.
///
/// The futures are pinned where the macro is called. As parts of the list they would be copied, without optimisations,
/// each time that another branch is added.
pub trait Racers {
    /// The output of one of them.
    type Output;
    /// How many there are.
    const LEN: usize;

    /// Polls the branches of the walk until the output of one matches.
    fn poll(&mut self, walk: Walk, cx: &mut Context<'_>) -> Poll<Self::Output>;
    /// Drops the futures.
    fn end(&mut self);
    /// Whether no branch is left.
    fn is_over(&self) -> bool;
}

impl Racers for Empty {
    type Output = Infallible;
    const LEN: usize = 0;

    fn poll(&mut self, _walk: Walk, _cx: &mut Context<'_>) -> Poll<Infallible> {
        Poll::Pending
    }

    fn end(&mut self) {}

    fn is_over(&self) -> bool {
        true
    }
}

/// A branch, and those before it.
pub struct Racer<'a, Before, F, P> {
    before: Before,
    /// None if its condition did not hold, or its output did not match.
    future: Pin<&'a mut Option<F>>,
    matches: P,
}

impl<Before: Racers, F: Future, P: Fn(F::Output) -> (bool, F::Output)> Racers for Racer<'_, Before, F, P> {
    type Output = Outcome<Before::Output, F::Output>;
    const LEN: usize = Before::LEN + 1;

    fn poll(&mut self, walk: Walk, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.before.poll(walk, cx) {
            return Poll::Ready(Outcome::Before(output));
        }
        if walk.comes_to(Before::LEN)
            && let Some(future) = self.future.as_mut().as_pin_mut()
            && let Poll::Ready(output) = future.poll(cx)
        {
            self.future.set(None);
            let (is_match, output) = (self.matches)(output);
            if is_match {
                return Poll::Ready(Outcome::Here(output));
            }
        }
        Poll::Pending
    }

    fn end(&mut self) {
        self.before.end();
        self.future.set(None);
    }

    fn is_over(&self) -> bool {
        self.before.is_over() && self.future.is_none()
    }
}

/// The future of a `race!`: gives the output of the first branch whose output matches, or `None` if no branch is left.
#[must_use = "futures do nothing unless awaited"]
pub struct Race<L> {
    list: L,
    /// The branch that is polled first.
    start: usize,
    is_biased: bool,
}

impl<L> Unpin for Race<L> {} // the futures are pinned elsewhere

impl<L: Racers> Future for Race<L> {
    type Output = Option<L::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Of a race as a whole: where its first branch is refused, a later one could win that is not to win.
        ready!(mini_context::check_order(cx, &*self));
        let mut end = Poll::Pending;
        for walk in Walk::all(self.start, L::LEN) {
            if end.is_pending() {
                end = self.list.poll(walk, cx).map(Some);
            }
        }
        if end.is_pending() && self.list.is_over() {
            end = Poll::Ready(None);
        }
        match end {
            Poll::Ready(_) => {
                mini_context::spend(1); // branches that know of no budget may be ready each time
                self.list.end(); // before the output is given
            }
            Poll::Pending if self.is_biased => {}
            Poll::Pending => self.start = (self.start + 1) % L::LEN,
        }
        end
    }
}

/// Awaits the first branch of a list, any of them first.
pub fn fair<L: Racers>(list: L) -> Race<L> {
    Race { list, start: draw(L::LEN), is_biased: false }
}

/// Awaits the first branch of a list, in their order.
pub fn biased<L: Racers>(list: L) -> Race<L> {
    Race { list, start: 0, is_biased: true }
}

/// Adds a branch after others. `matches` returns `true` if the output matches its pattern.
pub fn racer<Before, F, P>(before: Before, future: Pin<&mut Option<F>>, matches: P) -> Racer<'_, Before, F, P>
where
    F: Future,
    P: Fn(F::Output) -> (bool, F::Output),
{
    Racer { before, future, matches }
}

/// Panics because no branch is left in a race without an `else` arm.
#[track_caller]
#[cold]
pub fn no_branch_left() -> ! {
    panic!("no branch of `race!` is left: each is disabled by its `if`, or its output did not match; add an `else` arm")
}

/// Waits for the first of several futures, and drops the others.
///
/// `race!(a, b)` returns the output of the first future that is ready. With arms, `pattern = future => expression`, it
/// evaluates the expression of the arm whose future was first; `break`, `continue`, `return`, `?` and `.await` in it
/// act on the function around the macro. The macro takes the futures by value, and needs no `.await`.
///
/// - An output that does not match its pattern puts its branch out of the race.
/// - A branch with `, if condition` takes part only if the condition holds; otherwise its future is not even made. All
///   conditions are evaluated before the first future is made.
/// - `else => expression` is evaluated when no branch is left.
/// - The branch that is polled first is drawn anew each time, so none starves the others. With `biased;` in front the
///   branches are polled in their order.
///
/// When an arm begins, the losers have been dropped: they have released what they held, and lose what their docs
/// describe under "Cancel safety". To continue a future after it has lost, pin it outside and pass `&mut future`. Poll
/// it again soon, as it may hold a lock that others wait for.
///
/// # Examples
///
/// ```
/// use mini::sync::mpsc;
/// use mini::time::{Duration, interval};
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let (sender, mut receiver) = mpsc::channel(4);
/// # let sender2 = sender.clone();
/// mini::spawn(async move {
///     for n in 1..=3 {
///         sender.send(n).await.unwrap();
///     }
/// });
/// # drop(sender2);
/// let mut beat = interval(Duration::from_secs(1));
/// let (mut sum, mut beats) = (0, 0);
/// loop {
///     mini::race! {
///         Some(n) = receiver.recv() => sum += n,
///         _ = beat.tick(), if beats < 10 => beats += 1,
///         else => break,
///     }
/// }
/// assert_eq!((sum, beats), (6, 10));
///
/// let first = mini::race!(async { 1 }, std::future::pending());
/// assert_eq!(first, 1);
/// # });
/// ```
///
/// # Panics
///
/// If no branch is left and there is no `else`.
///
/// # Cancel safety
///
/// If the caller is dropped, so are the futures. Losers are dropped: each future has to be one that may be.
#[macro_export]
macro_rules! race {
    (biased; $($arms:tt)*) => { $crate::__race!(@form biased { $($arms)* } $($arms)*) };
    ($($arms:tt)*) => { $crate::__race!(@form fair { $($arms)* } $($arms)*) };
}

/// For those who come from tokio, and look for it.
#[doc(hidden)]
#[macro_export]
macro_rules! select {
    ($($arms:tt)*) => {
        ::std::compile_error!(
            "the `select!` of mini is `race!`, with the same arms: it drops the other futures before the arm; see the \
            guide, `mini::guide::select`"
        )
    };
}

/// The expansion of `race!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __race {
    // The first arm has a `=` among its first tokens. The first of plain futures ends with a comma, or is all there is.
    (@form $order:ident $all:tt = $($rest:tt)*) => { $crate::__race!(@begin $order $all) };
    (@form $order:ident $all:tt , $($rest:tt)*) => { $crate::__race!(@plain $order $all) };
    (@form $order:ident $all:tt $a:tt = $($rest:tt)*) => { $crate::__race!(@begin $order $all) };
    (@form $order:ident $all:tt $a:tt , $($rest:tt)*) => { $crate::__race!(@plain $order $all) };
    (@form $order:ident $all:tt $a:tt $b:tt = $($rest:tt)*) => { $crate::__race!(@begin $order $all) };
    (@form $order:ident $all:tt $a:tt $b:tt , $($rest:tt)*) => { $crate::__race!(@plain $order $all) };
    (@form $order:ident $all:tt $a:tt $b:tt $c:tt = $($rest:tt)*) => { $crate::__race!(@begin $order $all) };
    (@form $order:ident $all:tt $a:tt $b:tt $c:tt , $($rest:tt)*) => { $crate::__race!(@plain $order $all) };
    (@form $order:ident $all:tt $a:tt $b:tt $c:tt $d:tt $($rest:tt)*) => {
        $crate::__race!(@form $order $all $($rest)*)
    };
    (@form $order:ident $all:tt $($rest:tt)*) => { $crate::__race!(@plain $order $all) };
    (@plain $order:ident { $($future:expr),+ $(,)? }) => {
        $crate::__race!(@begin $order { $(output = $future => output,)+ })
    };
    (@plain $order:ident {}) => {
        ::std::compile_error!(
            "`race!` needs futures to wait for, as in `race!(first(), second())` or `race! { x = first() => x, y = \
            second() => y }`"
        )
    };
    (@plain $order:ident $all:tt) => { $crate::__race!(@begin $order $all) };

    // One arm at a time: it is added to the conditions, to the list, and to the arms of the `match`.
    (@begin $order:ident { $($arms:tt)* }) => {
        $crate::__race!(@arms $order {} [$crate::structure::Empty] [] $($arms)*)
    };
    (@arms $order:ident $conditions:tt $list:tt [$($arm:tt)+]) => {
        $crate::__race!(@match $order $conditions $list [$($arm)+] $crate::structure::no_branch_left())
    };
    (@arms $order:ident $conditions:tt $list:tt [$($arm:tt)+] else => $else:expr $(,)?) => {
        $crate::__race!(@match $order $conditions $list [$($arm)+] $else)
    };
    (@arms $order:ident { $($condition:tt)* } [$list:expr] [$(($outcome:pat => $arm:expr))*]
        $pattern:pat = $future:expr $(, if $if:expr)? => $then:block, $($rest:tt)*
    ) => {
        $crate::__race!(@arms $order { $($condition)* $(let condition: bool = $if;)? }
            [$crate::structure::racer($list, $crate::__race!(@future $future $(, $if => condition)?),
                $crate::__race!(@matches $pattern))]
            [$(($crate::structure::Outcome::Before($outcome) => $arm))*
                ($crate::structure::Outcome::Here($pattern) => $then)] $($rest)*)
    };
    (@arms $order:ident { $($condition:tt)* } [$list:expr] [$(($outcome:pat => $arm:expr))*]
        $pattern:pat = $future:expr $(, if $if:expr)? => $then:block $($rest:tt)*
    ) => {
        $crate::__race!(@arms $order { $($condition)* $(let condition: bool = $if;)? }
            [$crate::structure::racer($list, $crate::__race!(@future $future $(, $if => condition)?),
                $crate::__race!(@matches $pattern))]
            [$(($crate::structure::Outcome::Before($outcome) => $arm))*
                ($crate::structure::Outcome::Here($pattern) => $then)] $($rest)*)
    };
    (@arms $order:ident { $($condition:tt)* } [$list:expr] [$(($outcome:pat => $arm:expr))*]
        $pattern:pat = $future:expr $(, if $if:expr)? => $then:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__race!(@arms $order { $($condition)* $(let condition: bool = $if;)? }
            [$crate::structure::racer($list, $crate::__race!(@future $future $(, $if => condition)?),
                $crate::__race!(@matches $pattern))]
            [$(($crate::structure::Outcome::Before($outcome) => $arm))*
                ($crate::structure::Outcome::Here($pattern) => $then)] $($($rest)*)?)
    };
    (@arms $($rest:tt)*) => {
        ::std::compile_error!("an arm of `race!` is `pattern = future => expression` or `pattern = future, if \
            condition => expression`; write parentheses around a first future that contains a `=`")
    };

    // The futures end with the statement, before an arm begins. All conditions come before the first future, which may
    // borrow what they look at.
    (@match $order:ident { $($condition:tt)* } [$list:expr] [$(($outcome:pat => $then:expr))+] $else:expr) => {
        match {
            $($condition)*
            let outcome = $crate::structure::$order($list).await;
            outcome
        } {
            $(::std::option::Option::Some($outcome) => $then,)+
            ::std::option::Option::None => $else,
            #[allow(unreachable_patterns)]
            _ => ::std::unreachable!("the output has matched its pattern"),
        }
    };
    (@future $future:expr) => {
        ::std::pin::pin!(::std::option::Option::Some(::std::future::IntoFuture::into_future($future)))
    };
    (@future $future:expr, $if:expr => $condition:ident) => {
        ::std::pin::pin!(if $condition {
            ::std::option::Option::Some(::std::future::IntoFuture::into_future($future))
        } else {
            ::std::option::Option::None
        })
    };
    (@matches $pattern:pat) => {
        |output| {
            let mut is_match = false;
            #[allow(unused_variables, unused_mut)]
            match output {
                $pattern if {
                    is_match = true;
                    false
                } => ::std::unreachable!(),
                _ => {}
            }
            (is_match, output)
        }
    };
}
