//! `Ear`: what a listener hears the system's signals with. A mailbox that a handler leaves word in, and the wait of
//! `AsyncFd` for it.
//!
//! Called by `unix`; a simulation uses `simulated.rs` instead.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use libc::c_int;
use mini_net::future::AsyncFdIo;
use mini_net::{AsyncFd, CallSite, Interest};

use super::mailbox::Mailbox;

pub(super) struct Ear(AsyncFd<Mailbox>);

/// A wait for the next signal.
pub(super) struct Hearing<'a>(AsyncFdIo<'a, Take, Mailbox>, &'a Mailbox);

type Take = fn(&Mailbox) -> io::Result<()>;

impl Ear {
    pub(super) fn open(signal: c_int) -> io::Result<Self> {
        AsyncFd::with_interest(Mailbox::open(signal)?, Interest::READABLE).map(Self)
    }

    pub(super) fn hear(&self, call_site: CallSite) -> Hearing<'_> {
        Hearing(self.0.async_io_for(call_site, Interest::READABLE, Mailbox::take), self.0.get_ref())
    }

    /// Ready with `None` when the runtime has shut down.
    pub(super) fn poll(&self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<Option<()>> {
        self.0.get_ref().check_process();
        loop {
            let ready = self.0.poll_ready_for(cx, call_site, Interest::READABLE);
            let Ok(mut guard) = ready!(ready) else { return Poll::Ready(None) };
            if let Ok(taken) = guard.try_io(|fd| fd.get_ref().take()) {
                return Poll::Ready(taken.ok());
            }
        }
    }
}

impl Hearing<'_> {
    /// Panics where the ear may not wait.
    pub(super) fn need_runtime(&self) {
        self.0.need_runtime();
    }
}

impl Future for Hearing<'_> {
    type Output = Option<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.1.check_process();
        Pin::new(&mut self.get_mut().0).poll(cx).map(Result::ok)
    }
}

impl fmt::Debug for Hearing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
