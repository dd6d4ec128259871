//! `ConnectUnix`: connects to a Unix listener, waiting if its queue is full.
//!
//! Made by `UnixStream::connect` and `UnixSeqpacket::connect`. A non-blocking connect(2) to a Unix socket is done at
//! once, or fails; with a full queue it fails with `EAGAIN`, and no event will ever tell that there is room (unix(7)).
//! The connect is then made on the blocking pool, in short turns, so that it ends soon after the future is dropped, or
//! the runtime has shut down.
//!
//! Apple's systems and the BSDs refuse the connection (`ECONNREFUSED`), so there is nothing to wait for.
//!
//! Rejected: giving the `WouldBlock` to the user, who could do nothing but try again after a sleep.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockAddr, Socket as RawSocket};

use super::{CONNECT, open};
use crate::call::CALLS_OF_A_SOCKET;
use crate::context;
use crate::error::failed;
use crate::hop::{self, Hop, Job};
use crate::kind::SocketKind;
use crate::reactor::{Reactor, shut_down_error};
use crate::source::{Site, Wait};
use crate::sys;

/// How long a job waits for room before it asks whether it is still wanted.
const TURN: Duration = Duration::from_millis(100);

/// Makes a connection; returned by [`UnixStream::connect`](crate::UnixStream::connect).
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
    wait: Wait,
    kind: PhantomData<fn() -> K>,
}

enum State {
    Start(io::Result<SockAddr>),
    Queueing(Hop<RawSocket>, SockAddr),
    Done,
}

impl<K: SocketKind, P> ConnectUnix<K, P> {
    #[track_caller]
    pub(super) fn new(addr: io::Result<SockAddr>, path: P, site: &'static Site) -> ConnectUnix<K, P> {
        let attempt = Attempt { state: State::Start(addr), wait: Wait::here(site), kind: PhantomData };
        ConnectUnix { attempt, path: Some(path) }
    }
}

impl<K: SocketKind> Attempt<K> {
    /// `None` if the queue is full, and the pool has been asked.
    fn start(&mut self, addr: &SockAddr) -> io::Result<Option<RawSocket>> {
        mini_context::spend_calls(CALLS_OF_A_SOCKET);
        let socket = open(K::TYPE)?;
        match sys::socket::connect(&socket, addr) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let pool = hop::pool(&self.wait);
                let (to, reactor) = (addr.clone(), context::reactor());
                let is_over = move || reactor.as_ref().is_some_and(Reactor::is_shut_down);
                let hop = Hop::start(&pool, move |job| connect_in_turns(job, socket, &to, is_over));
                self.state = State::Queueing(hop, addr.clone());
                Ok(None)
            }
            result => result.map(|_| Some(socket)),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<K>> {
        ready!(mini_context::check_budget(cx));
        if let State::Start(_) = self.state {
            self.wait.need_runtime(); // whether or not the queue is full
            let State::Start(addr) = std::mem::replace(&mut self.state, State::Done) else {
                unreachable!("just looked");
            };
            mini_context::spend_call();
            let addr = addr?;
            let started = self.start(&addr).map_err(failed(CONNECT, &addr));
            if let Some(socket) = started.map_err(|error| self.wait.located(error))? {
                return Poll::Ready(Ok(K::adopt(socket.into())));
            }
        }
        let State::Queueing(hop, addr) = &mut self.state else {
            panic!("a connect was polled again after it was done");
        };
        let socket = ready!(hop.poll(cx, &self.wait)).map_err(failed(CONNECT, &*addr));
        self.state = State::Done;
        Poll::Ready(Ok(K::adopt(socket?.into())))
    }
}

impl<K: SocketKind, P> Future for ConnectUnix<K, P> {
    type Output = io::Result<K>;

    /// # Panics
    ///
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<K>> {
        let ConnectUnix { attempt, path } = self.get_mut();
        let result = ready!(attempt.poll(cx));
        *path = None;
        Poll::Ready(result)
    }
}

/// Nothing in here is ever pinned.
impl<K, P> Unpin for ConnectUnix<K, P> {}

fn connect_in_turns(
    job: &Job<RawSocket>,
    socket: RawSocket,
    addr: &SockAddr,
    is_over: impl Fn() -> bool,
) -> io::Result<RawSocket> {
    if !job.is_wanted() {
        return Err(io::ErrorKind::Interrupted.into()); // to nobody: it has waited for a thread for too long
    }
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(TURN))?;
    while let Err(e) = socket.connect(addr) {
        let again = matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
        if !again || !job.is_wanted() {
            return Err(e);
        }
        if is_over() {
            return Err(shut_down_error());
        }
    }
    socket.set_write_timeout(None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl<K, P> fmt::Debug for ConnectUnix<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectUnix").finish_non_exhaustive()
    }
}
