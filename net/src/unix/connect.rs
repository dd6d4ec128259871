//! `ConnectUnix`: connects to a Unix listener, waiting if its queue is full.
//!
//! Made by `UnixStream::connect` and `UnixSeqpacket::connect`. A non-blocking connect(2) to a Unix socket is done at once, or fails; with a full queue it
//! fails with `EAGAIN`, and no event will ever tell that there is room (unix(7)). The connect is then made on the blocking
//! pool, in short turns, so that it ends soon after nobody wants it any more, or the runtime has shut down.
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
use crate::context;
use crate::error::failed;
use crate::hop::{self, Hop, Job};
use crate::kind::SocketKind;
use crate::reactor::{Reactor, shut_down_error};
use crate::socket::Socket;
use crate::source::{Site, Wait};
use crate::sys;

/// How long a job waits for room before it asks whether it is still wanted.
const TURN: Duration = Duration::from_millis(100);

/// Makes a connection; returned by [`UnixStream::connect`](crate::UnixStream::connect).
#[must_use = "futures do nothing unless awaited"]
pub struct ConnectUnix<K> {
    state: State,
    wait: Wait,
    kind: PhantomData<fn() -> K>,
}

enum State {
    Start(io::Result<SockAddr>),
    Queueing(Hop<RawSocket>, SockAddr),
    Done,
}

impl<K: SocketKind> ConnectUnix<K> {
    #[track_caller]
    pub(super) fn new(addr: io::Result<SockAddr>, site: &'static Site) -> ConnectUnix<K> {
        ConnectUnix { state: State::Start(addr), wait: Wait::here(site), kind: PhantomData }
    }

    /// `None` if the queue is full, and the pool has been asked.
    fn start(&mut self, addr: &SockAddr) -> io::Result<Option<RawSocket>> {
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
            result => result.map(|()| Some(socket)),
        }
    }
}

impl<K: SocketKind> Future for ConnectUnix<K> {
    type Output = io::Result<Socket<K>>;

    /// # Panics
    ///
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Socket<K>>> {
        ready!(context::poll_budget(cx));
        let this = self.get_mut();
        if let State::Start(_) = this.state {
            let State::Start(addr) = std::mem::replace(&mut this.state, State::Done) else {
                unreachable!("just looked");
            };
            let addr = addr?;
            if let Some(socket) = this.start(&addr).map_err(failed(CONNECT, &addr))? {
                return Poll::Ready(Ok(Socket::adopt(socket.into())));
            }
        }
        let State::Queueing(hop, addr) = &mut this.state else {
            panic!("a connect was polled again after it was done");
        };
        let socket = ready!(hop.poll(cx, &this.wait)).map_err(failed(CONNECT, &*addr));
        this.state = State::Done;
        Poll::Ready(Ok(Socket::adopt(socket?.into())))
    }
}

fn connect_in_turns(
    job: &Job<RawSocket>,
    socket: RawSocket,
    addr: &SockAddr,
    is_over: impl Fn() -> bool,
) -> io::Result<RawSocket> {
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

impl<K> fmt::Debug for ConnectUnix<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectUnix").finish_non_exhaustive()
    }
}
