//! What a client may ask for, and for how long.

use std::time::Duration;

/// What a client may ask for, and for how long; see [`Serve::limits`](crate::Serve::limits).
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
    /// How many connections there may be: 10,000 by default. More wait in the listener's queue. One that was upgraded
    /// no longer counts: it is the service's.
    pub connections: usize,
    /// From the connection to its first request: 10 s by default.
    pub first_request: Duration,
    /// How long a client may be silent: until the head of its next request is there over HTTP/1 (what other servers
    /// call the keep-alive time), and without an answer to a ping over HTTP/2. 10 s by default. A connection of HTTP/1
    /// without a byte of that request has then ended in order.
    pub idle: Duration,
    /// From the head of a request to that of its answer, with a body that the service reads before: 30 s by default.
    /// Then the client is told 503, outside of the service, whose layers do not see it, and the connection of HTTP/1 is
    /// closed. The answer's own body may take longer.
    pub request: Duration,
    /// How long a client may take nothing of what is sent to it, also after an upgrade (see [`Paced`](crate::Paced)):
    /// 30 s by default. What it has taken shows when the kernel says that there is room again, on Linux when a third of
    /// the socket's buffer of up to 4 MB is free: behind a fast network, a client of less than 50 kB a second needs a
    /// longer limit. A client of HTTP/2 that gives no window for an answer, but answers pings, is not bounded by it.
    pub write: Duration,
    /// For the requests that have begun when the server is to stop: 10 s by default. Where the program is to end
    /// too, and has a grace (`#[mini::main(grace = "10s")]`), a tenth of [what is left](mini::grace_left) of that is
    /// kept back, a second at most: so the program gets the [`Report`](crate::Report), and can do what comes after.
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
