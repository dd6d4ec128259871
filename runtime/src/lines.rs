//! Lines, and what else ends with a byte, out of a buffered reader.
//!
//! In place of the trait of `futures-lite`, whose `read_line` replaces what is in the string where the standard
//! library's appends, and panics in debug builds if a read fails in the middle of a line, as by a reset of the peer's.
//! The other traits of `mini::io` are its.
//!
//! Rejected: the trait of `futures-util` (the same assertion).

use std::fmt;
use std::future::Future;
use std::io::{self, BufRead, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::AsyncBufRead;
use futures_lite::Stream;
use pin_project_lite::pin_project;

/// The methods of a buffered reader, like those of the standard library's [`BufRead`](std::io::BufRead).
///
/// # Examples
///
/// ```
/// use mini::io::{AsyncBufReadExt, BufReader, StreamExt};
///
/// # mini::block_on(async {
/// let (client, server) = mini::net::UnixStream::pair()?;
/// client.write_all(b"one\ntwo\r\nthree").await?;
/// drop(client);
/// let mut lines = BufReader::new(server).lines();
/// assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
/// // It is a stream, too.
/// let rest: Vec<String> = lines.try_collect().await?;
/// assert_eq!(rest, ["two", "three"]);
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncBufReadExt: AsyncBufRead {
    /// What is in the buffer, after a read if that is empty. Nothing, at the end.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::{AsyncBufReadExt, BufReader};
    ///
    /// # mini::block_on(async {
    /// let mut reader = BufReader::new(&b"hello"[..]);
    /// assert_eq!(reader.fill_buf().await?, b"hello");
    /// reader.consume(4);
    /// assert_eq!(reader.fill_buf().await?, b"o");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the reader.
    ///
    /// # Panics
    ///
    /// The future panics if it is polled again after it was ready.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    fn fill_buf(&mut self) -> FillBuf<'_, Self>
    where
        Self: Unpin,
    {
        FillBuf { reader: Some(self) }
    }

    /// So many bytes of the buffer have been used.
    ///
    /// # Examples
    ///
    /// See [`fill_buf`](Self::fill_buf).
    fn consume(&mut self, count: usize)
    where
        Self: Unpin,
    {
        AsyncBufRead::consume(Pin::new(self), count);
    }

    /// Appends bytes to `buf` up to and with the first `delimiter`, or up to the end. Returns how many.
    ///
    /// There is no limit: to bound the memory that a peer can fill, read from a
    /// [`take`](crate::io::AsyncReadExt::take).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::{AsyncBufReadExt, BufReader};
    ///
    /// # mini::block_on(async {
    /// let (mut reader, mut buf) = (BufReader::new(&b"a,b"[..]), Vec::new());
    /// assert_eq!(reader.read_until(b',', &mut buf).await?, 2);
    /// assert_eq!(reader.read_until(b',', &mut buf).await?, 1);
    /// assert_eq!(reader.read_until(b',', &mut buf).await?, 0);
    /// assert_eq!(buf, b"a,b");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the reader; `buf` has the bytes that were read before.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read is in `buf`, and another call goes on.
    fn read_until<'a>(&'a mut self, delimiter: u8, buf: &'a mut Vec<u8>) -> ReadUntil<'a, Self>
    where
        Self: Unpin,
    {
        ReadUntil { begin: buf.len(), reader: self, delimiter, buf }
    }

    /// Appends a line to `buf`, with its `\n`, or what there is up to the end. Returns how many bytes; 0 at the end.
    ///
    /// Without a limit, as [`read_until`](Self::read_until).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::{AsyncBufReadExt, BufReader};
    ///
    /// # mini::block_on(async {
    /// let mut text = String::from("> ");
    /// BufReader::new(&b"hello\nworld\n"[..]).read_line(&mut text).await?;
    /// assert_eq!(text, "> hello\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the reader, or `InvalidData` if the line is not UTF-8. Nothing is appended then, and the
    /// part of the line that was read is lost.
    ///
    /// # Cancel safety
    ///
    /// Not safe: what was read of the line is lost. [`Lines::next_line`] keeps it.
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> ReadLine<'a, Self>
    where
        Self: Unpin,
    {
        ReadLine { reader: self, buf, line: Vec::new() }
    }

    /// The lines, without their `\n` or `\r\n`.
    ///
    /// # Examples
    ///
    /// See [`AsyncBufReadExt`].
    fn lines(self) -> Lines<Self>
    where
        Self: Sized,
    {
        Lines { reader: self, line: Vec::new() }
    }

    /// The parts between `delimiter`s, without them.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::{AsyncBufReadExt, BufReader, StreamExt};
    ///
    /// # mini::block_on(async {
    /// let parts: Vec<Vec<u8>> = BufReader::new(&b"a\0b\0"[..]).split(0).try_collect().await?;
    /// assert_eq!(parts, [b"a", b"b"]);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn split(self, delimiter: u8) -> Split<Self>
    where
        Self: Sized,
    {
        Split { reader: self, delimiter, part: Vec::new() }
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}

/// Appends to `buf` until it has read `delimiter`, or is at the end; says whether it has read something.
fn poll_until<R: AsyncBufRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    buf: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    loop {
        let mut available = ready!(reader.as_mut().poll_fill_buf(cx))?;
        let count = BufRead::read_until(&mut available, delimiter, buf)?;
        reader.as_mut().consume(count);
        if count == 0 || buf.last() == Some(&delimiter) {
            return Poll::Ready(Ok(()));
        }
    }
}

/// The next part, with the delimiter unless the end comes first. What was read of one that ends with an error is lost.
fn poll_part<R: AsyncBufRead + ?Sized>(
    reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    part: &mut Vec<u8>,
) -> Poll<Option<io::Result<Vec<u8>>>> {
    let read = ready!(poll_until(reader, cx, delimiter, part));
    let part = std::mem::take(part);
    Poll::Ready(match read {
        Err(error) => Some(Err(error)),
        Ok(()) => (!part.is_empty()).then_some(Ok(part)),
    })
}

fn text(line: Vec<u8>) -> io::Result<String> {
    String::from_utf8(line).map_err(|_| io::Error::new(ErrorKind::InvalidData, "the line is not UTF-8"))
}

/// Future of [`AsyncBufReadExt::fill_buf`]: resolves to `io::Result<&[u8]>`.
#[must_use = "futures do nothing unless awaited"]
pub struct FillBuf<'a, R: ?Sized> {
    reader: Option<&'a mut R>,
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reader = self.reader.as_deref_mut().expect("polled after it was ready");
        if ready!(Pin::new(reader).poll_fill_buf(cx))?.is_empty() {
            return Poll::Ready(Ok(&[]));
        }
        let reader = self.reader.take().expect("asked above");
        // Once more, for the lifetime of the reader.
        match Pin::new(reader).poll_fill_buf(cx) {
            Poll::Ready(filled) => Poll::Ready(filled),
            Poll::Pending => panic!("a buffered reader does not have what it had"),
        }
    }
}

/// Future of [`AsyncBufReadExt::read_until`]: resolves to `io::Result<usize>`, the number of bytes read.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadUntil<'a, R: ?Sized> {
    reader: &'a mut R,
    delimiter: u8,
    buf: &'a mut Vec<u8>,
    /// How much was there before.
    begin: usize,
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadUntil<'_, R> {
    type Output = io::Result<usize>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { reader, delimiter, buf, begin } = &mut *self;
        ready!(poll_until(Pin::new(reader), cx, *delimiter, buf))?;
        Poll::Ready(Ok(buf.len() - *begin))
    }
}

/// Future of [`AsyncBufReadExt::read_line`]: resolves to `io::Result<usize>`, the number of bytes read.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadLine<'a, R: ?Sized> {
    reader: &'a mut R,
    buf: &'a mut String,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLine<'_, R> {
    type Output = io::Result<usize>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { reader, buf, line } = &mut *self;
        ready!(poll_until(Pin::new(reader), cx, b'\n', line))?;
        let line = text(std::mem::take(line))?;
        buf.push_str(&line);
        Poll::Ready(Ok(line.len()))
    }
}

pin_project! {
    /// The lines of a reader, a [`Stream`]; made by [`AsyncBufReadExt::lines`].
    ///
    /// A line that is not UTF-8 is an error of the kind `InvalidData`; the next call returns the next line. If a read
    /// fails, the part of the line that was read before is lost.
    ///
    /// # Examples
    ///
    /// See [`AsyncBufReadExt`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Lines<R> {
        #[pin]
        reader: R,
        line: Vec<u8>,
    }
}

impl<R: AsyncBufRead> Stream for Lines<R> {
    type Item = io::Result<String>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let line = ready!(poll_part(this.reader, cx, b'\n', this.line));
        Poll::Ready(line.map(|line| {
            let mut line = line?;
            if line.ends_with(b"\n") {
                line.truncate(line.len() - if line.ends_with(b"\r\n") { 2 } else { 1 });
            }
            text(line)
        }))
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads the next line; the output is `None` at the end.
    ///
    /// # Examples
    ///
    /// See [`AsyncBufReadExt`].
    ///
    /// # Errors
    ///
    /// Returns the errors of the reader, or `InvalidData` if the line is not UTF-8.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read of the line is kept for the next call.
    pub fn next_line(&mut self) -> NextLine<'_, R> {
        NextLine { lines: self }
    }
}

/// Future of [`Lines::next_line`]: resolves to `io::Result<Option<String>>`.
#[must_use = "futures do nothing unless awaited"]
pub struct NextLine<'a, R> {
    lines: &'a mut Lines<R>,
}

impl<R: AsyncBufRead + Unpin> Future for NextLine<'_, R> {
    type Output = io::Result<Option<String>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.lines).poll_next(cx).map(Option::transpose)
    }
}

pin_project! {
    /// A [`Stream`] of the parts of a reader's data; returned by [`AsyncBufReadExt::split`].
    ///
    /// If a read fails, the part that was read before is lost.
    ///
    /// # Examples
    ///
    /// See [`AsyncBufReadExt::split`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Split<R> {
        #[pin]
        reader: R,
        delimiter: u8,
        part: Vec<u8>,
    }
}

impl<R: AsyncBufRead> Stream for Split<R> {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let part = ready!(poll_part(this.reader, cx, *this.delimiter, this.part));
        Poll::Ready(part.map(|part| {
            let mut part = part?;
            part.pop_if(|last| last == this.delimiter);
            Ok(part)
        }))
    }
}

macro_rules! debug {
    ($($name:ident [$($params:tt)*] [$($bound:tt)*]),*) => {
        $(impl<R $($bound)*> fmt::Debug for $name<$($params)*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}

debug!(FillBuf['_, R] [: ?Sized], ReadUntil['_, R] [: ?Sized], ReadLine['_, R] [: ?Sized]);
debug!(Lines[R] [], NextLine['_, R] [], Split[R] []);
