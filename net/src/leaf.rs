//! The leaf futures, the core of every future that a method returns; `future` has the names that users see.
//!
//! Made by the sockets and `async_fd`, from plain `#[track_caller]` functions, so that each knows the line of its call.
//! Each is a `Waiting` (an fd, and the future's own place among its waiters) and an operation. `Op` covers every
//! operation that is done once it has succeeded; `call` has these operations.
//!
//! Rejected: `async fn`. Its futures have no name, no known size, and cannot report where they wait.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::SockAddr;

use crate::addr::{Resolve, no_address};
use crate::call::{self, SendToAddr};
use crate::ready::{Interest, Ready};
use crate::slot::{Key, Seen};
use crate::source::{CallSite, Channel, Left, Site, Source, poll_error};
use crate::unfilled::make_room;

/// An operation on a socket that completes when it could be done.
///
/// `C` is the operation.
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct Op<'a, C, T: AsFd = OwnedFd> {
    waiting: Waiting<'a, Source<T>>,
    call: C,
}

/// Future of `read_exact`: resolves to `io::Result<()>` when the buffer is full.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadExact<'a, T: AsFd = OwnedFd> {
    waiting: Waiting<'a, Source<T>>,
    buf: &'a mut [u8],
    filled: usize,
}

/// Future of `read_to_end`: resolves to `io::Result<usize>`, the number of bytes read.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadToEnd<'a, T: AsFd = OwnedFd> {
    waiting: Waiting<'a, Source<T>>,
    buf: &'a mut Vec<u8>,
    read: usize,
}

/// Future of `write_all`: resolves to `io::Result<()>` when the whole buffer is written.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAll<'a, T: AsFd = OwnedFd> {
    waiting: Waiting<'a, Source<T>>,
    rest: &'a [u8],
}

/// Future of `send_to`: resolves to `io::Result<usize>`, the length of the message.
///
/// `P` is the type of a Unix socket's path, which is kept until the message is sent: its destructor may remove the
/// socket.
#[must_use = "futures do nothing unless awaited"]
pub struct SendTo<'a, P = ()> {
    sending: Sending<'a>,
    path: Option<P>,
}

/// The sending itself, whose code does not depend on the type of the path.
struct Sending<'a> {
    waiting: Waiting<'a, Source>,
    buf: &'a [u8],
    to: Receiver,
}

/// Waits for readiness, and returns it as an `O`.
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct Readiness<'a, O, T: AsFd = OwnedFd> {
    waiting: Waiting<'a, Source<T>>,
    pub(crate) interest: Interest,
    output: PhantomData<fn() -> O>,
}

/// The receiver of a message.
pub(crate) enum Receiver {
    Host(Resolve),
    Known(SockAddr),
    /// The user gave an invalid address; the error is returned once.
    Wrong(Option<io::Error>),
}

impl From<io::Result<SockAddr>> for Receiver {
    fn from(addr: io::Result<SockAddr>) -> Receiver {
        match addr {
            Ok(addr) => Receiver::Known(addr),
            Err(e) => Receiver::Wrong(Some(e)),
        }
    }
}

/// One operation, without the waiting.
pub(crate) trait Call<T: AsFd> {
    type Output;

    /// A call that was interrupted by a signal is made again at once. Not if it is a user's: then the error may mean
    /// something else, and is the user's too.
    const IS_MADE_AGAIN: bool = true;

    fn interest(&self) -> Interest;

    /// Returns `true` if it moves no bytes, for which no stream has to be ready (read(2), write(2)).
    fn is_empty(&self) -> bool {
        false
    }

    /// The error that makes a wait pointless, before the wait begins.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(Self::Output, Left)>;
}

/// One function for each kind of call, in which futures, `poll_` and `try_` methods and foreign traits meet.
impl<T: AsFd> Source<T> {
    /// Makes the call until it returns something other than `WouldBlock`, waiting in between; see [`Source::poll_io`].
    pub(crate) fn poll_call<C: Call<T>>(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        key: Option<&mut Key>,
        call: &mut C,
    ) -> Poll<io::Result<C::Output>> {
        if call.is_empty()
            && self.is_stream()
            && let Some(polled) = self.poll_empty(cx, call)
        {
            return polled;
        }
        if C::IS_MADE_AGAIN {
            return self.poll_io(cx, call_site, call.interest(), key, |source| call.call(source));
        }
        let made = self.poll_io(cx, call_site, call.interest(), key, |source| match call.call(source) {
            Ok((value, left)) => Ok((Ok(value), left)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok((Err(e), Left::Perhaps)),
            Err(e) => Err(e),
        });
        made.map(|made| made?)
    }

    /// Makes a call that moves nothing, whatever the readiness is. None if it has to wait all the same: the stream is
    /// about to connect.
    #[cold]
    fn poll_empty<C: Call<T>>(&self, cx: &mut Context<'_>, call: &mut C) -> Option<Poll<io::Result<C::Output>>> {
        if mini_context::check_budget(cx, self.leaf(call.interest())).is_pending() {
            return Some(Poll::Pending);
        }
        let made = call.call(self).map(|(output, _)| output);
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return None;
        }
        mini_context::spend_call();
        Some(Poll::Ready(made))
    }

    /// Makes the call once; see [`Source::try_op`].
    pub(crate) fn try_call<C: Call<T>>(&self, mut call: C) -> io::Result<C::Output> {
        self.try_op(call.interest(), |source| call.call(source))
    }
}

/// The place where a future waits: an fd, or a standard stream.
pub(crate) trait Waitable {
    /// Removes the waiter of a future that is dropped.
    fn forget(&self, key: &mut Key);
}

impl<T: AsFd> Waitable for Source<T> {
    fn forget(&self, key: &mut Key) {
        Source::forget(self, key);
    }
}

/// A future's hold on a place: when the future is dropped, its waiter is removed.
pub(crate) struct Waiting<'a, P: Waitable> {
    pub(crate) place: &'a P,
    pub(crate) call_site: CallSite,
    pub(crate) key: Key,
}

impl<'a, P: Waitable> Waiting<'a, P> {
    #[track_caller]
    pub(crate) fn new(place: &'a P, site: &'static Site) -> Waiting<'a, P> {
        Waiting::of(place, CallSite::here(site))
    }

    fn of(place: &'a P, call_site: CallSite) -> Waiting<'a, P> {
        Waiting { place, call_site, key: Key::default() }
    }
}

impl<T: AsFd> Waiting<'_, Source<T>> {
    /// # Panics
    ///
    /// Panics outside a mini runtime, unless the source belongs to one.
    fn need_runtime(&self) {
        if !self.place.has_runtime() {
            self.call_site.need_runtime();
        }
    }

    fn poll_call<C: Call<T>>(&mut self, cx: &mut Context<'_>, call: &mut C) -> Poll<io::Result<C::Output>> {
        self.place.poll_call(cx, &self.call_site, Some(&mut self.key), call)
    }
}

impl<P: Waitable> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        // Rare: a wait that has ended has no key.
        if !self.key.is_empty() {
            self.place.forget(&mut self.key);
            self.call_site.forget_note();
        }
    }
}

impl<'a, C, T: AsFd> Op<'a, C, T> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source<T>, site: &'static Site, call: C) -> Op<'a, C, T> {
        Op { waiting: Waiting::new(source, site), call }
    }

    pub(crate) fn of(source: &'a Source<T>, call_site: CallSite, call: C) -> Op<'a, C, T> {
        Op { waiting: Waiting::of(source, call_site), call }
    }

    /// Panics with a message that names the call, if this thread runs no mini runtime and the fd belongs to none.
    pub(crate) fn need_runtime(&self) {
        self.waiting.need_runtime();
    }
}

impl<'a, T: AsFd> ReadExact<'a, T> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source<T>, site: &'static Site, buf: &'a mut [u8]) -> ReadExact<'a, T> {
        ReadExact { waiting: Waiting::new(source, site), buf, filled: 0 }
    }
}

impl<'a, T: AsFd> ReadToEnd<'a, T> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source<T>, site: &'static Site, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, T> {
        ReadToEnd::of(source, CallSite::here(site), buf)
    }

    pub(crate) fn of(source: &'a Source<T>, call_site: CallSite, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, T> {
        ReadToEnd { waiting: Waiting::of(source, call_site), buf, read: 0 }
    }
}

impl<'a, T: AsFd> WriteAll<'a, T> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source<T>, site: &'static Site, buf: &'a [u8]) -> WriteAll<'a, T> {
        WriteAll { waiting: Waiting::new(source, site), rest: buf }
    }
}

impl<'a, P> SendTo<'a, P> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source, site: &'static Site, buf: &'a [u8], to: Receiver, path: P) -> SendTo<'a, P> {
        SendTo { sending: Sending { waiting: Waiting::new(source, site), buf, to }, path: Some(path) }
    }
}

impl<'a, O, T: AsFd> Readiness<'a, O, T> {
    #[track_caller]
    pub(crate) fn new(source: &'a Source<T>, site: &'static Site, interest: Interest) -> Readiness<'a, O, T> {
        Readiness::of(source, CallSite::here(site), interest)
    }

    pub(crate) fn of(source: &'a Source<T>, call_site: CallSite, interest: Interest) -> Readiness<'a, O, T> {
        Readiness { waiting: Waiting::of(source, call_site), interest, output: PhantomData }
    }

    pub(crate) fn need_runtime(&self) {
        self.waiting.need_runtime();
    }

    pub(crate) fn poll_seen(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Seen>> {
        let Waiting { place, call_site, key } = &mut self.waiting;
        place.poll_ready(cx, call_site, self.interest, Some(key))
    }
}

impl<C: Call<T>, T: AsFd> Future for Op<'_, C, T> {
    type Output = io::Result<C::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Op { waiting, call } = self.get_mut();
        if let Err(e) = call.check() {
            return poll_error(cx, waiting.place.leaf(call.interest()), e);
        }
        waiting.poll_call(cx, call)
    }
}

impl<T: Channel> Future for ReadExact<'_, T> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ReadExact { waiting, buf, filled } = self.get_mut();
        if buf.is_empty() {
            return mini_context::poll_budget(cx, filled).map(Ok);
        }
        while *filled < buf.len() {
            let rest = &mut buf[*filled..];
            match ready!(waiting.poll_call(cx, &mut call::Recv(rest)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                received => *filled += received,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Channel> Future for ReadToEnd<'_, T> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ReadToEnd { waiting, buf, read } = self.get_mut();
        loop {
            make_room(buf);
            match ready!(waiting.poll_call(cx, &mut call::RecvMore(buf)))? {
                0 => return Poll::Ready(Ok(*read)),
                received => *read += received,
            }
        }
    }
}

impl<T: Channel> Future for WriteAll<'_, T> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let WriteAll { waiting, rest } = self.get_mut();
        if rest.is_empty() {
            return mini_context::poll_budget(cx, rest).map(Ok);
        }
        while !rest.is_empty() {
            match ready!(waiting.poll_call(cx, &mut call::Send(rest)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => *rest = &rest[sent..],
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<P> Future for SendTo<'_, P> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let SendTo { sending, path } = self.get_mut();
        let result = ready!(sending.poll(cx));
        *path = None;
        Poll::Ready(result)
    }
}

impl Sending<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(mini_context::check_budget(cx, &*self));
        let Sending { waiting, buf, to } = self;
        if let Receiver::Host(resolve) = to {
            let first = ready!(resolve.poll(cx, None)).map(|mut addrs| addrs.next());
            *to = match first {
                Ok(Some(addr)) => Receiver::Known(addr.into()),
                Ok(None) => Receiver::Wrong(Some(no_address())),
                Err(e) => Receiver::Wrong(Some(e)),
            };
        }
        let known = match to {
            Receiver::Known(addr) => addr,
            Receiver::Wrong(e) => {
                mini_context::spend_call();
                return Poll::Ready(Err(e.take().unwrap_or_else(no_address)));
            }
            Receiver::Host(_) => unreachable!("looked up above"),
        };
        let sent = waiting.poll_call(cx, &mut SendToAddr { buf, to: known });
        sent.map_err(|error| waiting.call_site.located(error))
    }
}

impl<T: AsFd> Future for Readiness<'_, (), T> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_seen(cx).map_ok(drop)
    }
}

impl<T: AsFd> Future for Readiness<'_, Ready, T> {
    type Output = io::Result<Ready>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        let this = self.get_mut();
        let seen = ready!(this.poll_seen(cx))?;
        Poll::Ready(Ok((seen.ready() & this.interest.mask()).shown()))
    }
}

/// Nothing in here is ever pinned: the call is used by reference only.
impl<C, T: AsFd> Unpin for Op<'_, C, T> {}

/// Nothing in here is ever pinned: nor is the path.
impl<P> Unpin for SendTo<'_, P> {}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<Op<'_, crate::call::Recv<'_>>>();
    assert::<Op<'_, crate::call::Accept<crate::TcpListener>>>();
    assert::<(ReadExact<'_>, ReadToEnd<'_>, WriteAll<'_>, SendTo<'_>, Readiness<'_, Ready>)>();
    assert::<(crate::tcp::Connect, crate::unix::ConnectUnix<crate::UnixStream>, crate::addr::LookupHost)>();
    assert::<crate::addr::TryEach<'static, (), crate::TcpListener>>();
};

impl<P: Waitable> fmt::Debug for Waiting<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallSite { site, location } = &self.call_site;
        write!(f, "{}::{} at {location}", site.owner, site.method)
    }
}

impl<C, T: AsFd> Op<'_, C, T> {
    /// Shows where it waits, under the name that users know it by.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(name).field(&self.waiting).finish()
    }
}

impl<T: AsFd> fmt::Debug for ReadExact<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadExact").field(&self.waiting).finish()
    }
}

impl<T: AsFd> fmt::Debug for ReadToEnd<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadToEnd").field(&self.waiting).finish()
    }
}

impl<T: AsFd> fmt::Debug for WriteAll<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteAll").field(&self.waiting).finish()
    }
}

impl<P> fmt::Debug for SendTo<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendTo").field(&self.sending.waiting).finish()
    }
}

impl<O, T: AsFd> Readiness<'_, O, T> {
    /// Shows where it waits, under the name that users know it by.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(name).field(&self.waiting).finish()
    }
}
