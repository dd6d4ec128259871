//! Waiting until there is nothing else to do.
//!
//! The future takes a place in the [`IdleQueue`] of the core whose worker polls it. If it is polled on another core,
//! because its task was stolen or another task polls it, it gives that place up and takes one on the other core.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mini_context::{Note, Reason, forget_wait, leave_note};
use mini_kernel::scheduler::current;
use mini_kernel::scheduler::idle_queue::IdleQueue;

/// Waits until the worker that runs this task has nothing else to do: no task is ready, and a check of its sockets and
/// timers has woken none.
///
/// A task that awaits this before each step has a low priority: it comes after everything else. A server that does so
/// before each `accept` serves the connections it has before it takes new ones. Waiting tasks are released one at a
/// time, in their order, so that each finds nothing else ready. With a paused clock they run before time moves on.
///
/// On a worker that is never idle this never ends, and neither does it while another task loops over `yield_now`. A
/// stolen task waits for its new worker. On a thread that runs no tasks, such as one of another executor, it lets other
/// tasks run once, and is then ready.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// mini::block_on(async {
///     let order = Rc::new(RefCell::new(Vec::new()));
///     let log = order.clone();
///     let low = mini::spawn_local(async move {
///         mini::task::idle().await;
///         log.borrow_mut().push("low");
///     });
///     let log = order.clone();
///     mini::spawn_local(async move {
///         for _ in 0..3 {
///             log.borrow_mut().push("high");
///             mini::task::yield_now().await;
///         }
///     });
///     low.await.unwrap();
///     assert_eq!(*order.borrow(), ["high", "high", "high", "low"]);
/// });
/// ```
///
/// # Cancel safety
///
/// Safe: there is nothing to lose but the place in the line.
#[track_caller]
pub fn idle() -> Idle {
    Idle { step: Step::Begins, location: Location::caller() }
}

/// Future of [`idle`]: resolves to `()` when there is nothing else to do.
#[must_use = "futures do nothing unless awaited"]
pub struct Idle {
    step: Step,
    location: &'static Location<'static>,
}

enum Step {
    Begins,
    /// In the line of a core, at this place.
    At(Arc<IdleQueue>, u64),
    /// Others have had their turn when this is polled again.
    Yielded,
    Over,
}

impl Future for Idle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone(); // user code: before a place is given up
        let here = current::with_held(|core| (!core.is_closed()).then(|| core.idle_queue().clone())).flatten();
        self.step = match (std::mem::replace(&mut self.step, Step::Over), here) {
            (Step::Over | Step::Yielded, _) => return Poll::Ready(()),
            (Step::At(idle_queue, place), Some(here)) if Arc::ptr_eq(&idle_queue, &here) => {
                match idle_queue.stay(place, waker) {
                    Ok(()) => Step::At(idle_queue, place),
                    Err(_) => return Poll::Ready(()),
                }
            }
            (Step::At(idle_queue, place), _) if !idle_queue.leave(place) => return Poll::Ready(()),
            (_, Some(here)) => {
                let place = here.enter(waker);
                Step::At(here, place)
            }
            (_, None) => {
                waker.wake();
                Step::Yielded
            }
        };
        leave_note(Note { reason: Reason::Idle, location: self.location });
        Poll::Pending
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Step::At(idle_queue, place) = &self.step {
            idle_queue.leave(*place);
            forget_wait(|wait| wait.is_for(Reason::Idle));
        }
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Idle at {}", self.location)
    }
}

const fn assert_anywhere<T: Send + Sync + Unpin>() {}
const _: () = assert_anywhere::<Idle>();
