//! Sending and receiving whole messages, on UDP and Unix datagram sockets.
//!
//! `send_to` is in `udp` and `unix`, because what names a receiver differs.

use std::marker::PhantomData;

use crate::call::RecvFrom;

/// Whole messages, for a type whose addresses are `$addr`.
macro_rules! datagram_methods {
    ($addr:ty, $recv_from:ident, $of:ident) => {
        /// Sends `buf` as one message to the connected peer; returns its length.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.send(b"ping").await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.recv(&mut buf).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of send(2), such as a message that is too long. Fails if it has to wait and the runtime
        /// has shut down.
        ///
        /// # Panics
        ///
        /// Panics if it has to wait outside a mini runtime, unless the socket has already joined one.
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has sent nothing.
        #[track_caller]
        pub fn send<'a>(&'a self, buf: &'a [u8]) -> future::Send<'a> {
            future::Send::of(Op::new(self.source(), site!(send, Write), SendCall(buf)))
        }

        /// Receives one message from the connected peer, or from any sender if there is none.
        ///
        /// Returns the length of the message, or of `buf` if that is shorter: then the rest of the message is lost
        /// (recv(2)). 0 is an empty message.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.send(b"ping").await?;
        /// let mut buf = [0; 2];
        /// assert_eq!(b.recv(&mut buf).await?, 2);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2): for example, the peer refused an earlier message. Fails if it has to wait and
        /// the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has received nothing.
        #[track_caller]
        pub fn recv<'a>(&'a self, buf: &'a mut [u8]) -> future::Recv<'a> {
            future::Recv::of(Op::new(self.source(), site!(recv, Read), Recv(buf)))
        }

        /// Receives one message like [`recv`](Self::recv), and returns the sender's address too.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::UdpSocket;
        ///
        /// let a = UdpSocket::bind("127.0.0.1:0").await?;
        /// let b = UdpSocket::bind("127.0.0.1:0").await?;
        /// a.send_to(b"ping", b.local_addr()?).await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.recv_from(&mut buf).await?, (4, a.local_addr()?));
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`recv`](Self::recv).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has received nothing.
        #[track_caller]
        pub fn recv_from<'a>(&'a self, buf: &'a mut [u8]) -> future::$recv_from<'a> {
            future::$recv_from::of(Op::new(self.source(), site!(recv_from, Read), RecvFrom::new(buf, 0)))
        }

        /// Receives one message like [`recv_from`](Self::recv_from), but does not remove it.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::UdpSocket;
        ///
        /// let a = UdpSocket::bind("127.0.0.1:0").await?;
        /// let b = UdpSocket::bind("127.0.0.1:0").await?;
        /// a.send_to(b"ping", b.local_addr()?).await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.peek_from(&mut buf).await?, (4, a.local_addr()?));
        /// assert_eq!(b.recv_from(&mut buf).await?, (4, a.local_addr()?));
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`recv`](Self::recv).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        ///
        /// # Cancel safety
        ///
        /// Safe: it removes no message.
        #[track_caller]
        pub fn peek_from<'a>(&'a self, buf: &'a mut [u8]) -> future::$recv_from<'a> {
            future::$recv_from::of(Op::new(self.source(), site!(peek_from, Read), RecvFrom::new(buf, PEEK)))
        }

        /// Sends once, without waiting. Returns `WouldBlock` if there is no room.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, _b) = mini::net::UnixDatagram::pair()?;
        /// assert_eq!(a.try_send(b"ping")?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of send(2).
        pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
            self.source().try_call(SendCall(buf))
        }

        /// Receives once, without waiting. Returns `WouldBlock` if nothing has arrived.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.try_send(b"ping")?;
        /// assert_eq!(b.try_recv(&mut [0; 16])?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2).
        pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
            self.source().try_call(Recv(buf))
        }

        /// Receives once, without waiting, like [`try_recv`](Self::try_recv), and returns the sender's address too.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.try_send(b"ping")?;
        /// let (received, from) = b.try_recv_from(&mut [0; 16])?;
        /// assert_eq!(received, 4);
        /// assert!(from.is_unnamed());
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recvfrom(2).
        pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, $addr)> {
            self.source().try_call(RecvFrom::<$of>::new(buf, 0))
        }

        /// Peeks once, without waiting, like [`peek_from`](Self::peek_from). Returns `WouldBlock` if nothing has
        /// arrived.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.try_send(b"ping")?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.try_peek_from(&mut buf)?.0, 4);
        /// assert_eq!(b.try_recv(&mut buf)?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recvfrom(2).
        pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, $addr)> {
            self.source().try_call(RecvFrom::<$of>::new(buf, PEEK))
        }

        /// Polls to send one message: the `poll` form of [`send`](Self::send).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, _b) = mini::net::UnixDatagram::pair()?;
        /// assert_eq!(std::future::poll_fn(|cx| a.poll_send(cx, b"ping")).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`send`](Self::send).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        #[track_caller]
        pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let call_site = CallSite::here(site!(poll_send, Write));
            self.source().poll_call(cx, &call_site, None, &mut SendCall(buf))
        }

        /// Polls to receive one message: the `poll` form of [`recv`](Self::recv).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.send(b"ping").await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(std::future::poll_fn(|cx| b.poll_recv(cx, &mut buf)).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`recv`](Self::recv).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        #[track_caller]
        pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            let call_site = CallSite::here(site!(poll_recv, Read));
            self.source().poll_call(cx, &call_site, None, &mut Recv(buf))
        }

        /// Polls to receive one message: the `poll` form of [`recv_from`](Self::recv_from).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixDatagram::pair()?;
        /// a.send(b"ping").await?;
        /// let mut buf = [0; 16];
        /// let (received, _) = std::future::poll_fn(|cx| b.poll_recv_from(cx, &mut buf)).await?;
        /// assert_eq!(received, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`recv`](Self::recv).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        #[track_caller]
        pub fn poll_recv_from(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<(usize, $addr)>> {
            let call_site = CallSite::here(site!(poll_recv_from, Read));
            self.source().poll_call(cx, &call_site, None, &mut RecvFrom::<$of>::new(buf, 0))
        }

        /// Polls to peek at one message: the `poll` form of [`peek_from`](Self::peek_from).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// See [`poll_recv_from`](Self::poll_recv_from).
        ///
        /// # Errors
        ///
        /// Same as [`recv`](Self::recv).
        ///
        /// # Panics
        ///
        /// Same as [`send`](Self::send).
        #[track_caller]
        pub fn poll_peek_from(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<(usize, $addr)>> {
            let call_site = CallSite::here(site!(poll_peek_from, Read));
            self.source().poll_call(cx, &call_site, None, &mut RecvFrom::<$of>::new(buf, PEEK))
        }
    };
}
pub(crate) use datagram_methods;

impl<'a, K> RecvFrom<'a, K> {
    pub(crate) fn new(buf: &'a mut [u8], flags: libc::c_int) -> RecvFrom<'a, K> {
        RecvFrom { buf, flags, kind: PhantomData }
    }
}
