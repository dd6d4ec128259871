//! `ConnectUnix`: connects to a Unix listener, waiting if its queue is full.
//!
//! Made by `UnixStream::connect` and `UnixSeqpacket::connect`. A non-blocking connect(2) to a Unix socket is done at
//! once, or fails. With a full queue it fails with `EAGAIN`, and no event reports that there is room (unix(7)). The
//! connect is then tried again after a delay of the runtime, which holds no thread and goes by its clock. The socket
//! belongs to the runtime of the first poll, and so does the wait: it fails after the end of that runtime.
//!
//! Apple's systems and the BSDs refuse the connection (`ECONNREFUSED`), so there is nothing to wait for.
//!
//! # Rejected
//!
//! - Giving the `WouldBlock` to the user, who could do nothing but try again after a sleep.
//! - A connect(2) that blocks, on the blocking pool: one listener that accepts nothing takes all threads of the pool,
//!   from jobs, files and lookups that have nothing to do with it.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockAddr, SockRef};

use super::{Shown, open};
use crate::call::CALLS_OF_A_SOCKET;
use crate::current;
use crate::error::{CONNECT, failed};
use crate::kind::SocketKind;
use crate::source::{CallSite, Site, Source};
use crate::sys;

/// The first delay. Each one is twice as long as the one before, up to `LONGEST`.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

/// Future of `connect` and `connect_addr` of a Unix socket: resolves to `io::Result<K>`, the connected socket.
///
/// `P` is the type of the path, which is kept until the connection is made or refused: its destructor may remove the
/// socket.
#[must_use = "futures do nothing unless awaited"]
pub struct ConnectUnix<K, P = ()> {
    attempt: Attempt<K>,
    path: Option<P>,
}

/// The connecting itself, whose code does not depend on the type of the path.
struct Attempt<K> {
    state: State,
    call_site: CallSite,
    kind: PhantomData<fn() -> K>,
}

enum State {
    Start(io::Result<SockAddr>),
    Trying(Trying),
    Done,
}

/// A socket on its way to a listener.
struct Trying {
    source: Source,
    addr: SockAddr,
    /// Before the next try.
    delay: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
    next_delay: Duration,
}

impl<K: SocketKind, P> ConnectUnix<K, P> {
    #[track_caller]
    pub(super) fn new(addr: io::Result<SockAddr>, path: P, site: &'static Site) -> ConnectUnix<K, P> {
        let attempt = Attempt { state: State::Start(addr), call_site: CallSite::here(site), kind: PhantomData };
        ConnectUnix { attempt, path: Some(path) }
    }
}

impl<K: SocketKind> Attempt<K> {
    fn start(&mut self) -> io::Result<()> {
        let State::Start(addr) = std::mem::replace(&mut self.state, State::Done) else {
            panic!("a connect was polled again after it was done");
        };
        let addr = addr?;
        mini_context::spend_calls(CALLS_OF_A_SOCKET);
        let socket = open(K::TYPE).map_err(failed(CONNECT, Shown(&addr)))?;
        let source = Source::new(socket.into(), K::RULE);
        self.state = State::Trying(Trying { source, addr, delay: None, next_delay: SHORTEST });
        Ok(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<K>> {
        ready!(mini_context::check_budget(cx, &*self));
        let trying = loop {
            match &mut self.state {
                State::Trying(trying) => break trying,
                _ => {
                    self.call_site.need_runtime(); // whether or not the queue is full
                    mini_context::spend_call();
                    self.start()?;
                }
            }
        };
        let connected = ready!(trying.poll(cx, &self.call_site));
        let connected = connected.map_err(|error| failed(CONNECT, Shown(&trying.addr))(self.call_site.located(error)));
        let State::Trying(Trying { source, .. }) = std::mem::replace(&mut self.state, State::Done) else {
            unreachable!("it was just polled");
        };
        Poll::Ready(connected.map(|()| K::from_source(source)))
    }
}

impl Trying {
    fn poll(&mut self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<io::Result<()>> {
        loop {
            if let Some(delay) = &mut self.delay {
                if let Err(e) = self.source.check_runtime() {
                    return Poll::Ready(Err(e));
                }
                if delay.as_mut().poll(cx).is_pending() {
                    call_site.leave_note(-1);
                    return Poll::Pending;
                }
                mini_context::spend_call();
            }
            match sys::socket::connect(&SockRef::from(self.source.io()), &self.addr) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let delay = current::delay().unwrap_or_else(|| call_site.panic_without_runtime());
                    self.delay = Some(delay(call_site.location, self.next_delay));
                    self.next_delay = LONGEST.min(2 * self.next_delay);
                }
                result => return Poll::Ready(result.map(drop)),
            }
        }
    }
}

impl<K: SocketKind, P> Future for ConnectUnix<K, P> {
    type Output = io::Result<K>;

    /// # Panics
    ///
    /// Panics if it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<K>> {
        let ConnectUnix { attempt, path } = self.get_mut();
        let result = ready!(attempt.poll(cx));
        *path = None;
        Poll::Ready(result)
    }
}

/// Nothing in here is ever pinned.
impl<K, P> Unpin for ConnectUnix<K, P> {}

impl<K> Drop for Attempt<K> {
    fn drop(&mut self) {
        if let State::Trying(_) = self.state {
            self.call_site.forget_note();
        }
    }
}

impl<K, P> fmt::Debug for ConnectUnix<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectUnix").finish_non_exhaustive()
    }
}
