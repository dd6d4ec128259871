//! The limits on connections, and on the time that clients may take.

use std::time::Duration;

/// The limits on connections, and on the time that clients may take; see [`Serve::limits`](crate::Serve::limits).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mini_hyper::Limits;
///
/// let limits = Limits { connections: 100, request: Duration::from_secs(5), ..Limits::default() };
/// assert_eq!(limits.grace, Duration::from_secs(10));
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum number of connections: 10,000 by default. Further connections wait in the listener's queue. A
    /// connection that was upgraded no longer counts: it belongs to the service.
    pub connections: usize,
    /// The time from the connection to its first request: 10 s by default.
    pub first_request: Duration,
    /// The time that a client may be silent: 10 s by default. Over HTTP/1 it lasts until the head of the next request
    /// has arrived (other servers call it the keep-alive time), over HTTP/2 it is the time that a ping may stay
    /// unanswered. An HTTP/1 connection that is closed without a byte of that request has ended in order.
    pub idle: Duration,
    /// The time from the head of a request to the head of its answer: 30 s by default. It includes a body that the
    /// service reads first. After it the client receives status 503, which the layers of the service do not see, and an
    /// HTTP/1 connection is closed. The answer's own body may take longer.
    pub request: Duration,
    /// The time that a client may take none of the data sent to it, even after an upgrade (see
    /// [`Paced`](crate::Paced)): 30 s by default. Progress is noticed when the kernel reports room again, on Linux when
    /// a third of the socket's buffer of up to 4 MB is free. So behind a fast network, a client that takes less than 50
    /// kB per second needs a longer limit. An HTTP/2 client that gives no window for an answer, but answers pings, is
    /// not bounded by this limit.
    pub write: Duration,
    /// The time that requests in progress get when the server stops: 10 s by default. If the program ends too, and has
    /// a grace (`#[mini::main(grace = "10s")]`), a tenth of [the grace left](mini::grace_left) is kept back, at most a
    /// second. So the program gets the [`Report`](crate::Report), and has time to act on it.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 10_000,
            first_request: seconds(10),
            idle: seconds(10),
            request: seconds(30),
            write: seconds(30),
            grace: seconds(10),
        }
    }
}
