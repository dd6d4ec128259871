//! `next_connection`: an accept that outlasts a shortage of descriptors or memory.
//!
//! Called by servers, in the place of a listener's own `accept`. It is here and not in `net` as a pause takes a timer.
//!
//! The hard part is to report a shortage only once. A server that is full accepts a connection whenever another one
//! ends, and fails at the next; and a process may have several listeners that all fail. So what counts is the real time
//! since any of them last failed.
//!
//! Rejected: an accept that waits for room by itself. A server's own loop would not hear of the shortage, and could not
//! act on it. Rejected: a descriptor kept in reserve, to accept and close at once. That would refuse clients that could
//! be served a moment later.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mini_net::Listener;
use mini_net::kind::Accepted;
use mini_time::{Sleep, sleep};

/// How long an accept waits after a shortage. Ten tries a second cost nothing, and a client hardly notices.
const PAUSE: Duration = Duration::from_millis(100);

/// How long no accept must have failed before a shortage is reported again.
const QUIET: Duration = Duration::from_secs(10);

/// When an accept of this process last failed.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Accepts the next connection and its peer's address. Use it in the loop of a server that should survive a shortage of
/// descriptors.
///
/// Works like the listener's [`accept`](crate::net::TcpListener::accept), except in a shortage: if the process has too
/// many open files (`EMFILE`), or the system too many of them or too little memory (`ENFILE`, `ENOBUFS`, `ENOMEM`),
/// this call prints a line on stderr and tries again ten times a second. During the shortage, connected clients are
/// served, and others wait in the listener's queue. A shortage is reported once for all listeners, and again after ten
/// seconds without a failed accept.
///
/// A server that wants to know of a shortage, or to close something, calls `accept` itself.
///
/// # Examples
///
/// ```no_run
/// # mini::block_on(async {
/// use mini::net::{TcpListener, next_connection};
///
/// let listener = TcpListener::bind("127.0.0.1:7000").await?;
/// loop {
///     let (stream, from) = next_connection(&listener).await?;
///     mini::spawn(async move { stream.write_all(format!("hello {from}\n").as_bytes()).await });
/// }
/// # #[allow(unreachable_code)]
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Permanent errors of accept(2): that the listener is none, or that a sandbox forbids it. If it has to wait: that the
/// runtime has shut down.
///
/// # Panics
///
/// If it has to wait outside a mini runtime, unless the listener has already joined one.
///
/// # Cancel safety
///
/// Safe: a future dropped before it is ready has accepted no connection.
#[track_caller]
pub fn next_connection<L: Listener>(listener: &L) -> NextConnection<'_, L> {
    NextConnection { accept: listener.accept_next(), pause: None }
}

/// Future of [`next_connection`]: resolves to `io::Result<(Connection, Addr)>`, such as `(TcpStream, SocketAddr)`.
#[must_use = "futures do nothing unless awaited"]
pub struct NextConnection<'a, L: Listener + 'a> {
    accept: L::Accept<'a>,
    pause: Option<Sleep>,
}

impl<L: Listener> Future for NextConnection<'_, L> {
    type Output = io::Result<Accepted<L>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextConnection { accept, pause } = self.get_mut();
        loop {
            if let Some(pause) = pause {
                ready!(Pin::new(pause).poll(cx));
            }
            *pause = None;
            match ready!(Pin::new(&mut *accept).poll(cx)) {
                Err(error) if mini_net::is_shortage(&error) => {
                    tell(&error);
                    *pause = Some(sleep(PAUSE));
                }
                result => return Poll::Ready(result),
            }
        }
    }
}

/// Returns an endless stream of a listener's connections, accepted as by [`next_connection`]. Requires the feature
/// `stream`.
///
/// # Examples
///
/// ```
/// use futures_lite::StreamExt;
/// use mini::net::{TcpListener, TcpStream, incoming};
///
/// # mini::block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let mut incoming = incoming(&listener);
/// let (stream, from) = incoming.next().await.expect("it has no end")?;
/// assert_eq!(from, client.local_addr()?);
/// # drop(stream);
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Each item as [`next_connection`]'s output.
///
/// # Panics
///
/// Panics when it is polled, in the same cases as [`next_connection`].
#[cfg(feature = "stream")]
#[track_caller]
pub fn incoming<L: Listener>(listener: &L) -> Incoming<'_, L> {
    Incoming { listener, next: next_connection(listener) }
}

/// The connections of a listener; returned by [`incoming`].
#[cfg(feature = "stream")]
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<'a, L: Listener + 'a> {
    listener: &'a L,
    next: NextConnection<'a, L>,
}

#[cfg(feature = "stream")]
impl<L: Listener> futures_core::Stream for Incoming<'_, L> {
    type Item = io::Result<Accepted<L>>;

    #[track_caller]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let accepted = ready!(Pin::new(&mut this.next).poll(cx));
        this.next = next_connection(this.listener);
        Poll::Ready(Some(accepted))
    }
}

#[cfg(feature = "stream")]
impl<L: Listener> fmt::Debug for Incoming<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("listener", self.listener).finish_non_exhaustive()
    }
}

/// Says that there is no room, unless that was said before.
#[cold]
fn tell(error: &io::Error) {
    let now = Instant::now();
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
    if is_news(last, now) {
        let error = mini_net::with_limit(error);
        say!("failed to accept a connection: {error}; new connections wait until there is room");
    }
}

fn is_news(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.saturating_duration_since(last) >= QUIET)
}

impl<L: Listener> fmt::Debug for NextConnection<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextConnection").field("accept", &self.accept).field("pause", &self.pause).finish()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<NextConnection<'_, mini_net::TcpListener>>();
    assert::<NextConnection<'_, std::sync::Arc<mini_net::UnixListener>>>(); // as tasks share one
};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_news_again_when_nothing_has_failed_for_a_while() {
        let begin = Instant::now();
        assert!(is_news(None, begin));
        assert!(!is_news(Some(begin), begin + PAUSE));
        assert!(!is_news(Some(begin), begin + QUIET - PAUSE));
        assert!(is_news(Some(begin), begin + QUIET));
        assert!(!is_news(Some(begin + PAUSE), begin), "threads may come in another order");
    }
}
