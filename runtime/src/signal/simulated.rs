//! Signals of a simulation: a listener that is made in one hears those that the simulation sends to its host.
//!
//! No handler is installed, and no socket is used. The listeners of a thread's simulations are in a list; each notes
//! that a signal has arrived, and wakes the task that waits for it. A listener belongs to one runtime, so a listener
//! that has outlived its simulation receives no signals of the next one.
//!
//! The waiting task is the one that has polled last: a listener is borrowed for a wait.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};

use libc::c_int;
use mini_context::sim;
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::scheduler::current;
use mini_net::CallSite;

use super::ear;
use super::unix::SignalKind;
use crate::runtime::Id;
use crate::runtime::layers::Layers;
use crate::sim::names::numbers;
use crate::sim::{Current, Names};
use crate::task::group::simulated;

thread_local! {
    static LISTENERS: RefCell<Vec<Weak<Listener>>> = const { RefCell::new(Vec::new()) };
}

/// What a listener hears with.
pub(super) enum Ear {
    System(ear::Ear),
    Simulated(Arc<Listener>),
}

/// A wait for the next signal.
pub(super) enum Hearing<'a> {
    System(ear::Hearing<'a>),
    Simulated(Waiting<'a>),
}

/// Hears a signal of a host.
pub(super) struct Listener {
    runtime: Id,
    host: u32,
    signal: c_int,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// At least one signal has come that was not received.
    has_come: bool,
    waiter: Option<Waker>,
}

/// The wait of a future.
pub(super) struct Waiting<'a> {
    listener: &'a Listener,
    call_site: CallSite,
    /// The last poll has left a waker and a note.
    has_waited: bool,
}

#[inline]
pub(super) fn is_simulated() -> bool {
    sim::is_simulated()
}

/// Lets all that listen to `kind` on `host` hear it, in the simulation of this thread.
pub(crate) fn deliver(host: u32, kind: SignalKind) {
    let is_meant = |listener: &Arc<Listener>| {
        (listener.host, listener.signal) == (host, kind.as_raw_value()) && listener.is_at_home()
    };
    let listeners: Vec<_> =
        LISTENERS.with_borrow(|all| all.iter().filter_map(Weak::upgrade).filter(is_meant).collect());
    for listener in listeners {
        listener.note();
    }
}

impl Current {
    /// Sends a signal to all listeners of these hosts. Ctrl-C (SIGINT) and SIGTERM also cancel the
    /// [`shutdown`](crate::shutdown) token of the host, as under `#[mini::main(grace = "10s")]`.
    ///
    /// The listeners are [`signal::ctrl_c`](crate::signal::ctrl_c), [`signal::termination`](crate::signal::termination)
    /// and [`signal::unix::signal`](crate::signal::unix::signal) of the simulation. A signal without a listener is
    /// lost: default effects, such as the end of the process, are not simulated. A second request to end does no more
    /// than the first. Real signals are not delivered to a simulation, and simulated signals are not delivered outside
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::signal::unix::SignalKind;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let server = mini::spawn(async {
    ///             let signal = mini::signal::termination().await.unwrap();
    ///             mini::time::sleep(std::time::Duration::from_secs(10)).await; // ends in order
    ///             signal
    ///         });
    ///         let sim = mini::sim::current();
    ///         sim.settle().await; // the server listens
    ///         sim.signal("test", SignalKind::terminate());
    ///         assert_eq!(server.await.unwrap(), SignalKind::terminate());
    ///         assert_eq!(sim.elapsed().as_secs(), 10);
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of the simulation; if there is no such host.
    #[track_caller]
    pub fn signal(&self, names: impl Names, kind: SignalKind) {
        assert!(is_simulated(), "`Current::signal` was called outside the simulation");
        for host in numbers(names) {
            deliver(host, kind);
            if [SignalKind::terminate(), SignalKind::interrupt()].contains(&kind) {
                simulated::ask_to_end(host);
            }
        }
    }
}

impl Ear {
    pub(super) fn open(signal: c_int) -> io::Result<Self> {
        let Some(runtime) = current::with_shared(|shared| Layers::of(shared).id).filter(|_| is_simulated()) else {
            return ear::Ear::open(signal).map(Self::System);
        };
        if !matches!(signal, 1..=31 | 34..=64) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL)); // as sigaction(2) on Linux with glibc
        }
        let listener = Arc::new(Listener { runtime, host: sim::host(), signal, state: Mutex::default() });
        LISTENERS.with_borrow_mut(|all| {
            all.retain(|listener| listener.strong_count() > 0);
            all.push(Arc::downgrade(&listener));
        });
        Ok(Self::Simulated(listener))
    }

    pub(super) fn hear(&self, call_site: CallSite) -> Hearing<'_> {
        match self {
            Self::System(ear) => Hearing::System(ear.hear(call_site)),
            Self::Simulated(listener) => Hearing::Simulated(Waiting { listener, call_site, has_waited: false }),
        }
    }

    /// Ready with `None` when the runtime has shut down.
    pub(super) fn poll(&self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<Option<()>> {
        match self {
            Self::System(ear) => ear.poll(cx, call_site),
            Self::Simulated(listener) => listener.poll(cx, call_site),
        }
    }
}

impl Listener {
    /// Whether its simulation is the one that runs on this thread.
    fn is_at_home(&self) -> bool {
        is_simulated() && current::with_shared(|shared| Layers::of(shared).id) == Some(self.runtime)
    }

    /// A signal has come.
    fn note(&self) {
        let waiter = {
            let mut state = lock(&self.state);
            state.has_come = true;
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            mini_context::contain(|| waiter.wake()); // a panic keeps no other listener from hearing
        }
    }

    fn poll(&self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<Option<()>> {
        ready!(mini_context::check_budget(cx, self));
        if !self.is_at_home() {
            return Poll::Ready(None);
        }
        let waiter = cx.waker().clone(); // may be the user's code, so not under the lock
        let displaced = {
            let mut state = lock(&self.state);
            if mem::take(&mut state.has_come) {
                mini_context::spend_call();
                return Poll::Ready(Some(()));
            }
            state.waiter.replace(waiter)
        };
        drop(displaced);
        call_site.leave_note(-1);
        Poll::Pending
    }

    fn forget_waiter(&self) {
        let waiter = lock(&self.state).waiter.take();
        drop(waiter);
    }
}

impl Hearing<'_> {
    /// Panics where the ear may not wait.
    pub(super) fn need_runtime(&self) {
        if let Self::System(hearing) = self {
            hearing.need_runtime();
        }
    }
}

impl Future for Hearing<'_> {
    type Output = Option<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        match self.get_mut() {
            Self::System(hearing) => Pin::new(hearing).poll(cx),
            Self::Simulated(waiting) => {
                let polled = waiting.listener.poll(cx, &waiting.call_site);
                waiting.has_waited = polled.is_pending();
                polled
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.has_waited {
            self.listener.forget_waiter();
            self.call_site.forget_note();
        }
    }
}

impl fmt::Debug for Hearing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(hearing) => hearing.fmt(f),
            Self::Simulated(waiting) => f.debug_tuple("Simulated").field(&waiting.call_site).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::unix::signal;
    use crate::sim::Sim;
    use crate::time::{Duration, timeout};

    #[test]
    fn the_listeners_of_a_host_hear_what_is_sent_to_it() {
        let heard = Sim::new(1).run(async {
            let kind = SignalKind::hangup();
            let listeners = [1, 2, 1].map(|host| {
                sim::begin_step(host, sim::now());
                signal(kind).unwrap()
            });
            deliver(1, kind);
            deliver(2, SignalKind::quit());
            deliver(3, kind);
            let mut heard = Vec::new();
            for mut listener in listeners {
                heard.push(timeout(Duration::from_secs(60), listener.recv()).await.is_ok());
            }
            heard
        });
        assert_eq!(heard.unwrap(), [true, false, true]);
    }

    #[test]
    fn listeners_that_are_gone_are_forgotten() {
        let left = Sim::new(1).run(async {
            for _ in 0..100 {
                drop(signal(SignalKind::hangup()).unwrap());
            }
            LISTENERS.with_borrow(Vec::len)
        });
        assert_eq!(left.unwrap(), 1);
    }
}
