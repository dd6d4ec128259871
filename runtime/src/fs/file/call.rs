//! The futures of a `File`'s position: what `read`, `write`, `seek` and their kin return.
//!
//! One `FileOp` for all, with a call in it that says what is done in each poll.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, SeekFrom};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::File;
use crate::fs::sys::CHUNK;

/// An operation at the position of a file; returned by the methods of [`File`].
#[must_use = "futures do nothing unless awaited"]
pub struct FileOp<'a, C> {
    file: &'a mut File,
    call: C,
    caller: Caller,
}

/// What the user has called, and where.
#[derive(Clone, Copy)]
pub struct Caller {
    pub(super) call: &'static str,
    pub(super) location: &'static Location<'static>,
}

/// Reads into one buffer.
pub struct Read<'a>(&'a mut [u8]);

/// Fills a buffer to the end.
pub struct ReadExact<'a> {
    buf: &'a mut [u8],
    filled: usize,
}

/// Appends the rest of a file to a vector.
pub struct ReadToEnd<'a> {
    content: &'a mut Vec<u8>,
    before: usize,
}

/// Writes from one buffer.
pub struct Write<'a>(&'a [u8]);

/// Writes a whole buffer.
pub struct WriteAll<'a>(&'a [u8]);

/// Waits for a write that was dropped.
pub struct Flush(());

/// Moves the position.
pub struct Seek(SeekFrom);

/// One operation, without the file.
pub trait Call {
    type Output;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<Self::Output>>;
}

impl File {
    /// Reads into the front of `buf`, and moves the position behind it.
    ///
    /// Returns the number of bytes, `0..=buf.len()`, 256 KiB at most. `0` with a non-empty `buf` is the end of the
    /// file, for now: a file can grow.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut file = mini::fs::File::open("Cargo.toml").await?;
    /// let mut buf = [0; 4096];
    /// let mut length = 0;
    /// while let read @ 1.. = file.read(&mut buf).await? {
    ///     length += read as u64;
    /// }
    /// assert_eq!(length, file.metadata().await?.len());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of read(2). `Interrupted` is handled and never returned.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no byte.
    #[track_caller]
    pub fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> FileOp<'a, Read<'a>> {
        FileOp::new(self, "mini::fs::File::read", Read(buf))
    }

    /// Reads until `buf` is full.
    ///
    /// # Examples
    ///
    /// See [`File::from_std`].
    ///
    /// # Errors
    ///
    /// As [`read`](File::read); `UnexpectedEof` if the file ends before, with what there was in the front of `buf`.
    ///
    /// # Panics
    ///
    /// As [`read`](File::read).
    ///
    /// # Cancel safety
    ///
    /// Loses how far it has come: those bytes are in `buf`, and the position is behind them.
    #[track_caller]
    pub fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> FileOp<'a, ReadExact<'a>> {
        FileOp::new(self, "mini::fs::File::read_exact", ReadExact { buf, filled: 0 })
    }

    /// Appends to `content` what there is from the position to the end; returns how many bytes that were.
    ///
    /// # Examples
    ///
    /// See [`File`].
    ///
    /// # Errors
    ///
    /// As [`read`](File::read); that there is not enough memory. What was read before is in `content`.
    ///
    /// # Panics
    ///
    /// As [`read`](File::read).
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read is in `content`, and the position is behind it.
    #[track_caller]
    pub fn read_to_end<'a>(&'a mut self, content: &'a mut Vec<u8>) -> FileOp<'a, ReadToEnd<'a>> {
        let before = content.len();
        FileOp::new(self, "mini::fs::File::read_to_end", ReadToEnd { content, before })
    }

    /// Writes the front of `buf`, and moves the position behind it. Ready when the kernel has it; see [`File`].
    ///
    /// Returns the number of bytes, `1..=buf.len()`, 256 KiB at most; `0` for an empty `buf`.
    ///
    /// # Examples
    ///
    /// As with [`write_all`](File::write_all).
    ///
    /// # Errors
    ///
    /// Those of write(2), and that of an earlier write whose future was dropped. `Interrupted` is handled and never
    /// returned.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on: the bytes are in the file once, in part, or not at all. See [`File`].
    #[track_caller]
    pub fn write<'a>(&'a mut self, buf: &'a [u8]) -> FileOp<'a, Write<'a>> {
        FileOp::new(self, "mini::fs::File::write", Write(buf))
    }

    /// Writes all of `buf`, in steps of up to 256 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let path = std::env::temp_dir().join(format!("mini-doc-write-all-{}", std::process::id()));
    /// let mut file = mini::fs::File::create(&path).await?;
    /// file.write_all(b"one, ").await?;
    /// file.write_all(b"two").await?;
    /// assert_eq!(mini::fs::read(&path).await?, b"one, two");
    /// # mini::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write`](File::write). A part of `buf` may be written then.
    ///
    /// # Panics
    ///
    /// As [`write`](File::write).
    ///
    /// # Cancel safety
    ///
    /// Loses how much was written.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> FileOp<'a, WriteAll<'a>> {
        FileOp::new(self, "mini::fs::File::write_all", WriteAll(buf))
    }

    /// Waits for a write whose future was dropped. Otherwise there is nothing to wait for: nothing is buffered here.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let path = std::env::temp_dir().join(format!("mini-doc-flush-{}", std::process::id()));
    /// let mut file = mini::fs::File::create(&path).await?;
    /// # let write = file.write_all(b"in time?");
    /// let _ = mini::time::timeout(std::time::Duration::from_micros(1), write).await;
    /// file.flush().await?; // now it is in the file, or was never begun
    /// # mini::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of that write.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn flush(&mut self) -> FileOp<'_, Flush> {
        FileOp::new(self, "mini::fs::File::flush", Flush(()))
    }

    /// Moves the position, and returns where it is then, from the beginning of the file (lseek(2)).
    ///
    /// It may lie behind the end: what is written there leaves a gap, which reads as zeros.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::io::SeekFrom;
    ///
    /// let mut file = mini::fs::File::open("Cargo.toml").await?;
    /// let length = file.seek(SeekFrom::End(0)).await?;
    /// assert_eq!(file.seek(SeekFrom::Current(-4)).await?, length - 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of lseek(2): `InvalidInput` in front of the beginning, `NotSeekable` for a fifo or a terminal.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on: the position is moved or not.
    #[track_caller]
    pub fn seek(&mut self, to: SeekFrom) -> FileOp<'_, Seek> {
        FileOp::new(self, "mini::fs::File::seek", Seek(to))
    }
}

impl<'a, C> FileOp<'a, C> {
    #[track_caller]
    fn new(file: &'a mut File, name: &'static str, call: C) -> FileOp<'a, C> {
        FileOp { file, call, caller: Caller::here(name) }
    }
}

impl Caller {
    #[track_caller]
    pub(super) fn here(call: &'static str) -> Caller {
        Caller { call, location: Location::caller() }
    }
}

impl<C: Call> Future for FileOp<'_, C> {
    type Output = io::Result<C::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let FileOp { file, call, caller } = self.get_mut();
        call.poll(file, cx, *caller)
    }
}

/// Nothing in here is ever pinned: the call is used by reference only.
impl<C> Unpin for FileOp<'_, C> {}

impl Call for Read<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        file.stream.poll_read(cx, &file.open, self.0, caller)
    }
}

impl Call for ReadExact<'_> {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<()>> {
        while self.filled < self.buf.len() {
            match ready!(file.stream.poll_read(cx, &file.open, &mut self.buf[self.filled..], caller))? {
                0 => return Poll::Ready(Err(file.error("read", ErrorKind::UnexpectedEof))),
                read => self.filled += read,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Call for ReadToEnd<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        let content = &mut *self.content;
        loop {
            // As much as was read so far: few steps for a long file, little memory for a short one.
            let (length, room) = (content.len(), (content.len() - self.before).clamp(8 << 10, CHUNK));
            if content.try_reserve(room).is_err() {
                return Poll::Ready(Err(file.error("read", ErrorKind::OutOfMemory)));
            }
            content.resize(length + room, 0);
            let polled = file.stream.poll_read(cx, &file.open, &mut content[length..], caller);
            let read = if let Poll::Ready(Ok(read)) = polled { read } else { 0 };
            content.truncate(length + read);
            if ready!(polled)? == 0 {
                return Poll::Ready(Ok(length - self.before));
            }
        }
    }
}

impl Call for Write<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        file.stream.poll_write(cx, &file.open, &[IoSlice::new(self.0)], caller)
    }
}

impl Call for WriteAll<'_> {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<()>> {
        while !self.0.is_empty() {
            let written = ready!(file.stream.poll_write(cx, &file.open, &[IoSlice::new(self.0)], caller))?;
            self.0 = &self.0[written..];
        }
        Poll::Ready(Ok(()))
    }
}

impl Call for Flush {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, _: Caller) -> Poll<io::Result<()>> {
        file.stream.poll_flush(cx, &file.open)
    }
}

impl Call for Seek {
    type Output = u64;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<u64>> {
        file.stream.poll_seek(cx, &file.open, self.0, caller)
    }
}

impl<C> fmt::Debug for FileOp<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileOp on {:?} at {}", self.file.open.path(), self.caller.location)
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(FileOp<'_, Read<'_>>, FileOp<'_, ReadToEnd<'_>>, FileOp<'_, WriteAll<'_>>, FileOp<'_, Seek>)>();
};
