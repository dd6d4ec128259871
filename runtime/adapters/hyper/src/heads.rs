//! `Heads`: what is known of the requests of a connection, and the limit for the head of the next one of HTTP/1.
//!
//! The hard part is to distinguish a client that is silent between two requests, which ends a connection in order, from
//! one that stops in the middle of a head. hyper's own error at the end of its limit is the same for both. At the end
//! of the stream hyper distinguishes them, as it knows whether it has unused bytes. So for hyper the limit never ends.
//! Its timer leaves a note here instead, and the stream ends, as if the client had closed it.
//!
//! Rejected: noticing whether bytes came after the last answer (half of a head may come together with the request
//! before it).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::Version;
use mini::time;

/// The known state of the requests of a connection.
#[derive(Default)]
pub(crate) struct Heads {
    /// The version of the first one.
    pub(crate) first: OnceLock<Version>,
    /// Relaxed: the task of the connection alone writes and reads it.
    is_late: AtomicBool,
}

impl Heads {
    /// Whether the head of the next request was not there in time.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Relaxed)
    }
}

/// The timer of hyper's limit for heads, for which alone hyper's HTTP/1 has one.
pub(crate) struct HeadTimer(pub(crate) Arc<Heads>);

impl hyper::rt::Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeadSleep { sleep: time::sleep_until(deadline.into()), heads: self.0.clone() })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into()
    }
}

/// Is never ready: at its end hyper has to read once more.
struct HeadSleep {
    sleep: time::Sleep,
    heads: Arc<Heads>,
}

impl hyper::rt::Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        if !self.heads.is_late.swap(true, Relaxed) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
