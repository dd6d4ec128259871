//! The two halves of a stream: one task reads, another writes.
//!
//! Made by `split` and `into_split`. A half is a reference to the stream, borrowed or counted, with the methods of one
//! direction; those are the stream's own, so a half adds nothing to what they cost. As methods of streams take `&self`,
//! an `Arc` of the stream does as well; what halves add is that each direction has one owner, and that dropping the
//! owned writing half ends the writing, which the peer sees as the end.
//!
//! Rejected: `Deref` to the stream (a half that reads could write); a destructor on the borrowed half (it would keep
//! the stream borrowed to the end of the block).

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::call::{Peek, Recv, RecvVectored, Send, SendVectored};
use crate::kind::{SocketKind, StreamKind};
use crate::leaf::{Op, ReadExact, Readiness, WriteAll};
use crate::ready::{Interest, Ready};
use crate::socket::Socket;

/// The half of a stream that reads; used through the aliases, such as
/// [`tcp::OwnedReadHalf`](crate::tcp::OwnedReadHalf).
///
/// # Examples
///
/// See [`split`](Socket::split) and [`into_split`](Socket::into_split).
#[derive(Debug)]
pub struct ReadHalf<S>(S);

/// The half of a stream that writes; used through the aliases, such as
/// [`tcp::OwnedWriteHalf`](crate::tcp::OwnedWriteHalf).
///
/// # Examples
///
/// See [`split`](Socket::split) and [`into_split`](Socket::into_split).
#[derive(Debug)]
pub struct WriteHalf<S>(S);

/// The reading half of a stream of the kind `K`, borrowed.
pub(crate) type BorrowedReadHalf<'a, K> = ReadHalf<&'a Socket<K>>;
/// The writing half of a stream of the kind `K`, borrowed.
pub(crate) type BorrowedWriteHalf<'a, K> = WriteHalf<&'a Socket<K>>;
/// The reading half of a stream of the kind `K`, by itself.
pub(crate) type OwnedReadHalf<K> = ReadHalf<Arc<Socket<K>>>;
/// The writing half of a stream of the kind `K`, by itself.
pub(crate) type OwnedWriteHalf<K> = WriteHalf<EndOnDrop<K>>;

/// The halves of a kind of stream under their own names, for its module.
macro_rules! halves {
    ($stream:ident) => {
        split::halves! { @alias $stream, "The reading half of a", ", borrowed", "split",
            ReadHalf<'a> = BorrowedReadHalf<'a, kind::$stream> }
        split::halves! { @alias $stream, "The writing half of a", ", borrowed", "split",
            WriteHalf<'a> = BorrowedWriteHalf<'a, kind::$stream> }
        split::halves! { @alias $stream, "The reading half of a", ", by itself", "into_split",
            OwnedReadHalf = OwnedReadHalf<kind::$stream> }
        split::halves! { @alias $stream, "The writing half of a", ", by itself; dropping it ends the writing", "into_split",
            OwnedWriteHalf = OwnedWriteHalf<kind::$stream> }

        #[doc = concat!("Two halves that are not of one [`", stringify!($stream), "`].")]
        ///
        /// # Examples
        ///
        /// See [`reunite`](OwnedReadHalf::reunite).
        pub type ReuniteError = split::ReuniteError<kind::$stream>;
    };
    (@alias $stream:ident, $what:literal, $how:literal, $maker:literal,
        $alias:ident$(<$a:lifetime>)? = $($half:tt)*) => {
        #[doc = concat!($what, " [`", stringify!($stream), "`]", $how, ".")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`", $maker, "`](", stringify!($stream), "::", $maker, ").")]
        pub type $alias$(<$a>)? = split::$($half)*;
    };
}

pub(crate) use halves;

/// The two halves are not of one stream; here they are again.
///
/// # Examples
///
/// See [`reunite`](crate::tcp::OwnedReadHalf::reunite).
#[derive(Debug)]
pub struct ReuniteError<K: StreamKind>(pub OwnedReadHalf<K>, pub OwnedWriteHalf<K>);

/// How a half holds its stream. Nobody else can implement this.
pub trait Share: sealed::Sealed {
    /// The kind of the stream.
    type Kind: StreamKind;

    /// The stream.
    fn stream(&self) -> &Socket<Self::Kind>;
}

/// A share of a stream that ends the writing when it is dropped.
#[derive(Debug)]
pub struct EndOnDrop<K: StreamKind> {
    stream: Arc<Socket<K>>,
    /// Until the half has been forgotten or reunited.
    is_armed: bool,
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! shares {
    ($($ty:ty: $this:ident => $stream:expr;)*) => { $(
        impl<K: StreamKind> sealed::Sealed for $ty {}

        impl<K: StreamKind> Share for $ty {
            type Kind = K;

            fn stream(&self) -> &Socket<K> {
                let $this = self;
                $stream
            }
        }
    )* };
}

shares! {
    &Socket<K>: this => this;
    Arc<Socket<K>>: this => this;
    EndOnDrop<K>: this => &this.stream;
}

impl<K: StreamKind> Socket<K> {
    /// Two halves that borrow the stream, for two futures of one task.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (mut a, b) = mini::net::UnixStream::pair()?;
    /// let (reader, writer) = a.split();
    /// writer.write_all(b"ping").await?;
    /// b.write_all(b"pong").await?;
    /// let mut buf = [0; 4];
    /// reader.read_exact(&mut buf).await?;
    /// assert_eq!(&buf, b"pong");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn split(&mut self) -> (BorrowedReadHalf<'_, K>, BorrowedWriteHalf<'_, K>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Two halves that own the stream together, for two tasks.
    ///
    /// Dropping the writing half tells the peer that nothing more comes. The stream is closed when both are gone.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (a, b) = mini::net::UnixStream::pair()?;
    /// let (reader, writer) = a.into_split();
    /// writer.write_all(b"ping").await?;
    /// drop(writer);
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(b.read(&mut buf).await?, 4);
    /// assert_eq!(b.read(&mut buf).await?, 0);
    /// b.write_all(b"pong").await?;
    /// assert_eq!(reader.read(&mut buf).await?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn into_split(self) -> (OwnedReadHalf<K>, OwnedWriteHalf<K>) {
        let stream = Arc::new(self);
        let writing = EndOnDrop { stream: stream.clone(), is_armed: true };
        (ReadHalf(stream), WriteHalf(writing))
    }
}

impl<K: StreamKind> ReadHalf<Arc<Socket<K>>> {
    /// Makes a stream of its two halves again.
    ///
    /// # Examples
    ///
    /// ```
    /// let (a, b) = mini::net::UnixStream::pair()?;
    /// let ((a_reader, a_writer), (b_reader, b_writer)) = (a.into_split(), b.into_split());
    /// let error = a_reader.reunite(b_writer).unwrap_err();
    /// let a = error.0.reunite(a_writer).unwrap();
    /// # drop((a, b_reader));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReuniteError`], with both halves in it, if they are not of one stream.
    pub fn reunite(self, writer: OwnedWriteHalf<K>) -> Result<Socket<K>, ReuniteError<K>> {
        if !Arc::ptr_eq(&self.0, &writer.0.stream) {
            return Err(ReuniteError(self, writer));
        }
        writer.forget();
        Ok(Arc::into_inner(self.0).expect("there were two halves, and one is gone"))
    }
}

impl<K: StreamKind> WriteHalf<EndOnDrop<K>> {
    /// As [`reunite`](OwnedReadHalf::reunite) of the other half.
    ///
    /// # Examples
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reunite(self, reader: OwnedReadHalf<K>) -> Result<Socket<K>, ReuniteError<K>> {
        reader.reunite(self)
    }

    /// Drops this half without ending the writing: the peer sees no end before the other half is dropped too.
    ///
    /// # Examples
    ///
    /// ```
    /// let (a, b) = mini::net::UnixStream::pair()?;
    /// let (_reader, writer) = a.into_split();
    /// writer.forget();
    /// assert_eq!(b.try_read(&mut [0; 16]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn forget(mut self) {
        self.0.is_armed = false;
    }
}

impl<K: StreamKind> Drop for EndOnDrop<K> {
    fn drop(&mut self) {
        if self.is_armed {
            // The one failure is that the peer is gone.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }
}

/// Methods that are the stream's own.
macro_rules! methods {
    ($(fn $name:ident$(<$($lt:lifetime),*>)?(&$($life:lifetime)? $this:ident $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => { $(
        #[doc = concat!("[`", stringify!($name), "`](Socket::", stringify!($name), ") of the stream.")]
        ///
        /// # Examples
        ///
        /// See [`split`](Socket::split) and [`into_split`](Socket::into_split).
        ///
        /// # Errors
        ///
        /// As there, and so is whether it panics and what is lost when it is dropped.
        #[track_caller]
        pub fn $name$(<$($lt),*>)?(&$($life)? $this $(, $arg: $ty)*) -> $out {
            $this.0.stream().$name($($arg),*)
        }
    )* };
}

impl<S: Share> ReadHalf<S> {
    methods! {
        fn read<'a>(&'a self, buf: &'a mut [u8]) -> Op<'a, Recv<'a>>;
        fn read_vectored<'a, 'b>(&'a self, bufs: &'a mut [IoSliceMut<'b>]) -> Op<'a, RecvVectored<'a, 'b>>;
        fn read_exact<'a>(&'a self, buf: &'a mut [u8]) -> ReadExact<'a>;
        fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;
        fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
        fn peek<'a>(&'a self, buf: &'a mut [u8]) -> Op<'a, Peek<'a>>;
        fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;
        fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize>;
        fn readable(&self) -> Readiness<'_, ()>;
        fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
        fn ready(&self, interest: Interest) -> Readiness<'_, Ready>;
        fn local_addr(&self) -> io::Result<<S::Kind as SocketKind>::Addr>;
        fn peer_addr(&self) -> io::Result<<S::Kind as SocketKind>::Addr>;
    }
}

impl<S: Share> WriteHalf<S> {
    methods! {
        fn write<'a>(&'a self, buf: &'a [u8]) -> Op<'a, Send<'a>>;
        fn write_vectored<'a, 'b>(&'a self, bufs: &'a [IoSlice<'b>]) -> Op<'a, SendVectored<'a, 'b>>;
        fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAll<'a>;
        fn try_write(&self, buf: &[u8]) -> io::Result<usize>;
        fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize>;
        fn writable(&self) -> Readiness<'_, ()>;
        fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
        fn ready(&self, interest: Interest) -> Readiness<'_, Ready>;
        fn local_addr(&self) -> io::Result<<S::Kind as SocketKind>::Addr>;
        fn peer_addr(&self) -> io::Result<<S::Kind as SocketKind>::Addr>;
    }

    /// Ends the writing at once: the peer reads the end of the stream after what was written.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (mut a, b) = mini::net::UnixStream::pair()?;
    /// a.split().1.shutdown()?;
    /// assert_eq!(b.read(&mut [0; 4]).await?, 0);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of shutdown(2): `NotConnected` if the peer is gone.
    pub fn shutdown(&self) -> io::Result<()> {
        self.0.stream().shutdown(Shutdown::Write)
    }
}

impl<S: Share> AsRef<Socket<S::Kind>> for ReadHalf<S> {
    fn as_ref(&self) -> &Socket<S::Kind> {
        self.0.stream()
    }
}

impl<S: Share> AsRef<Socket<S::Kind>> for WriteHalf<S> {
    fn as_ref(&self) -> &Socket<S::Kind> {
        self.0.stream()
    }
}

impl<K: StreamKind> Error for ReuniteError<K> {}

impl<K: StreamKind> fmt::Display for ReuniteError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of one stream")
    }
}
