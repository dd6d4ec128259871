//! The options that only TCP has, on streams, listeners, and sockets that are neither yet.
//!
//! A `TcpSocket` keeps its options when it becomes a listener or a stream. On Linux, connections inherit most options
//! of their listener (tcp(7)).

use std::time::Duration;

/// The options of everything that is TCP.
#[rustfmt::skip] // it moves the second lines of the texts, a column each time
macro_rules! tcp_methods { () => {
    options! {
        "```", "TcpSocket::new_v4()?";
        nodelay / set_nodelay: bool = Raw::tcp_nodelay, Raw::set_tcp_nodelay, "true",
            "whether small writes are sent at once (`TCP_NODELAY` in tcp(7)), rather than gathered (Nagle's algorithm, \
             RFC 896)";
        keepalive / set_keepalive: bool = Raw::keepalive, Raw::set_keepalive, "true",
            "whether an idle peer is asked now and then whether it is still there (`SO_KEEPALIVE` in socket(7))";
        keepalive_time / set_keepalive_time: Duration = sys::options::keepalive_time, sys::options::set_keepalive_time,
            "std::time::Duration::from_secs(60)",
            "how long a connection is idle before the peer is first asked, in whole seconds, at least one \
             (`TCP_KEEPIDLE` in tcp(7)); setting it turns keepalive on";
        keepalive_interval / set_keepalive_interval: Duration =
            sys::options::keepalive_interval, sys::options::set_keepalive_interval,
            "std::time::Duration::from_secs(10)",
            "how long an answer is waited for before the peer is asked again, in whole seconds, at least one \
             (`TCP_KEEPINTVL` in tcp(7)); setting it turns keepalive on";
        keepalive_retries / set_keepalive_retries: u32 =
            sys::options::keepalive_retries, sys::options::set_keepalive_retries, "3",
            "how many questions may stay without an answer before the connection is given up \
             (`TCP_KEEPCNT` in tcp(7)); setting it turns keepalive on";
    }

    options! {
        "```no_run", "TcpSocket::new_v4()?";
        quickack / set_quickack: bool = sys::quickack, sys::set_quickack, "true",
            "whether the kernel confirms at once what arrives; it goes back to its own judgement after a while, so \
             this is set again and again, after each read say (`TCP_QUICKACK` in tcp(7))";
    }

    /// Returns the time for which the kernel keeps sending after the stream is dropped (`SO_LINGER` in socket(7)).
    ///
    /// With `None`, the default, the kernel sends in the background for as long as it takes. With zero it stops at once
    /// and resets the peer's connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let listener = mini::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let addr = listener.local_addr()?;
    /// let stream = mini::net::TcpStream::connect(addr).await?;
    /// stream.set_linger(Some(std::time::Duration::ZERO))?;
    /// assert!(stream.linger()?.is_some());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of getsockopt(2).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.sock().linger()
    }

    /// Sets the value of [`linger`](Self::linger), rounded up to whole seconds, so that only zero resets the
    /// connection.
    ///
    /// With more than zero seconds, dropping the stream blocks the thread, at most for that time.
    ///
    /// # Examples
    ///
    /// See [`linger`](Self::linger).
    ///
    /// # Errors
    ///
    /// Returns the errors of setsockopt(2).
    pub fn set_linger(&self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(options::whole_seconds);
        sys::socket::set_linger(self.as_fd(), limit)
    }
} }
pub(crate) use tcp_methods;

/// The time, rounded up to seconds that fit into the C type of it (`struct linger` in socket(7)).
pub(super) fn whole_seconds(time: Duration) -> Duration {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    Duration::from_secs(seconds.min(libc::c_int::MAX as u64))
}
