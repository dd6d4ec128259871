//! `Connect`: from a host to a connection, one address after the other.
//!
//! Made by `TcpStream::connect` and `TcpSocket::connect`. Starting to connect never waits; then the outcome is an
//! operation like any other (`sys::socket::connected`), which returns `WouldBlock` until there is one. On the loopback
//! the outcome is there at once, and nothing is registered.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, ready};

use socket2::{Domain, SockRef, Socket as RawSocket, Type};

use crate::addr::{Addrs, Resolve, no_address};
use crate::call::CALLS_OF_A_SOCKET;
use crate::error::{CONNECT, failed};
use crate::kind::sealed::Kind;
use crate::ready::Interest;
use crate::slot::Key;
use crate::source::{CallSite, Source};
use crate::sys::socket;
use crate::tcp::TcpStream;

/// Future of [`TcpStream::connect`] and [`TcpSocket::connect`](crate::TcpSocket::connect): resolves to
/// `io::Result<TcpStream>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Connect {
    resolve: Resolve,
    /// The addresses still to be tried, once known.
    addrs: Option<Addrs>,
    /// The socket to use for the one address there is, rather than a new one for each.
    prepared: Option<RawSocket>,
    attempt: Option<Attempt>,
    last_error: Option<io::Error>,
}

/// A connection being made to one address. Dropping the source removes the waiter.
struct Attempt {
    to: SocketAddr,
    source: Source,
    key: Key,
    /// Nothing has to be waited for.
    is_done: bool,
}

impl Connect {
    pub(super) fn new(resolve: Resolve, prepared: Option<RawSocket>) -> Connect {
        Connect { resolve, addrs: None, prepared, attempt: None, last_error: None }
    }

    fn poll_attempt(&mut self, cx: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        let Some(attempt) = &mut self.attempt else {
            return Poll::Ready(None);
        };
        let outcome = ready!(attempt.poll(cx, &self.resolve.call_site));
        let Attempt { to, source, mut key, .. } = self.attempt.take().expect("just polled");
        match outcome {
            Ok(()) => {
                source.forget(&mut key);
                Poll::Ready(Some(TcpStream::from_source(source)))
            }
            Err(e) => {
                self.fail(to, e);
                Poll::Ready(None)
            }
        }
    }

    fn start(&mut self, addr: SocketAddr) {
        mini_context::spend_calls(CALLS_OF_A_SOCKET);
        let socket = match self.prepared.take() {
            Some(socket) => Ok(socket),
            None => socket::open(Domain::for_address(addr), Type::STREAM),
        };
        let started = socket.map(as_source).and_then(|source| {
            let is_done = socket::connect(&SockRef::from(source.io()), &addr.into())?;
            Ok((source, is_done))
        });
        match started {
            Ok((source, is_done)) => self.attempt = Some(Attempt { to: addr, source, key: Key::default(), is_done }),
            Err(e) => self.fail(addr, e),
        }
    }

    fn fail(&mut self, to: SocketAddr, error: io::Error) {
        self.last_error = Some(failed(CONNECT, to)(self.resolve.call_site.located(error)));
    }
}

/// However it is dropped, it is closed as a socket of mini's is.
fn as_source(socket: RawSocket) -> Source {
    Source::new(socket.into(), TcpStream::RULE)
}

impl Attempt {
    fn poll(&mut self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<io::Result<()>> {
        let Attempt { source, key, is_done, .. } = self;
        if *is_done {
            return Poll::Ready(Ok(()));
        }
        source.poll_io(cx, call_site, Interest::WRITABLE, Some(key), Source::connected)
    }
}

impl Future for Connect {
    type Output = io::Result<TcpStream>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let this = self.get_mut();
        let leaf = ptr::from_ref(this);
        loop {
            if let Some(stream) = ready!(this.poll_attempt(cx)) {
                return Poll::Ready(Ok(stream));
            }
            let addrs = match &mut this.addrs {
                Some(addrs) => addrs,
                None => {
                    this.resolve.call_site.need_runtime(); // whether or not this one has to wait
                    ready!(mini_context::check_budget(cx, leaf)); // a lookup may fail at once
                    let addrs = ready!(this.resolve.poll(cx, Some(CONNECT)));
                    mini_context::spend_call();
                    this.addrs.insert(addrs?)
                }
            };
            ready!(mini_context::check_budget(cx, leaf)); // each address costs a socket
            match addrs.next() {
                Some(addr) => this.start(addr),
                None => {
                    return Poll::Ready(Err(this.last_error.take().unwrap_or_else(no_address)));
                }
            }
        }
    }
}

impl Drop for Connect {
    fn drop(&mut self) {
        drop(self.prepared.take().map(as_source));
        // The waiter goes with the source; the note does not.
        if self.attempt.is_some() {
            self.resolve.call_site.forget_note();
        }
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("host", &self.resolve)
            .field("attempt", &self.attempt.as_ref().map(|attempt| &attempt.source))
            .finish_non_exhaustive()
    }
}
