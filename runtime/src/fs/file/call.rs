//! The futures of a `File`'s position: what `read`, `write`, `seek` and their kin return.
//!
//! One `FileOp` for all, with a call in it that says what is done in each poll. Each has a name of its own around it.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, SeekFrom};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::File;
use crate::fs::sys::CHUNK;

/// An operation at the position of a file.
struct FileOp<'a, C> {
    file: &'a mut File,
    call: C,
    caller: Caller,
}

/// The method that the user has called, and the line of the call.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) call: &'static str,
    pub(super) location: &'static Location<'static>,
}

/// Reads into one buffer.
struct ReadCall<'a>(&'a mut [u8]);

/// Fills a buffer to the end.
struct ReadExactCall<'a> {
    buf: &'a mut [u8],
    filled: usize,
}

/// Appends the rest of a file to a vector.
struct ReadToEndCall<'a> {
    content: &'a mut Vec<u8>,
    before: usize,
}

/// Writes from one buffer.
struct WriteCall<'a>(&'a [u8]);

/// Writes a whole buffer.
struct WriteAllCall<'a>(&'a [u8]);

/// Waits for a write that was dropped.
struct FlushCall(());

/// Moves the position.
struct SeekCall(SeekFrom);

/// One operation, without the file.
trait FileCall {
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
    /// Returns the errors of read(2). `Interrupted` is handled and never returned.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: the bytes that a dropped future has fetched go to the next read of this `File`.
    #[track_caller]
    pub fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> Read<'a> {
        Read(FileOp::new(self, "mini::fs::File::read", ReadCall(buf)))
    }

    /// Reads until `buf` is full.
    ///
    /// # Examples
    ///
    /// See [`File::from_std`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](File::read), and `UnexpectedEof` if the file ends first; the front of `buf` then
    /// has the bytes before the end.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`read`](File::read).
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses the number of bytes read: they are in `buf`, and the next read begins behind them.
    #[track_caller]
    pub fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> ReadExact<'a> {
        ReadExact(FileOp::new(self, "mini::fs::File::read_exact", ReadExactCall { buf, filled: 0 }))
    }

    /// Appends to `content` the bytes from the position to the end; returns their number.
    ///
    /// # Examples
    ///
    /// See [`File`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](File::read), and an error if there is not enough memory. `content` has the bytes
    /// that were read before.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`read`](File::read).
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read is in `content`, and the next read begins behind it.
    #[track_caller]
    pub fn read_to_end<'a>(&'a mut self, content: &'a mut Vec<u8>) -> ReadToEnd<'a> {
        let before = content.len();
        ReadToEnd(FileOp::new(self, "mini::fs::File::read_to_end", ReadToEndCall { content, before }))
    }

    /// Writes the front of `buf`, and moves the position behind it. Ready when the kernel has it; see [`File`].
    ///
    /// Returns the number of bytes, `1..=buf.len()`, 256 KiB at most; `0` for an empty `buf`.
    ///
    /// # Examples
    ///
    /// See [`write_all`](File::write_all).
    ///
    /// # Errors
    ///
    /// Returns the errors of write(2), and the error of an earlier write whose future was dropped. `Interrupted` is
    /// handled and never returned.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on: the bytes are in the file once, in part, or not at all. See [`File`].
    #[track_caller]
    pub fn write<'a>(&'a mut self, buf: &'a [u8]) -> Write<'a> {
        Write(FileOp::new(self, "mini::fs::File::write", WriteCall(buf)))
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
    /// Returns the errors of [`write`](File::write). A part of `buf` may be written then.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`write`](File::write).
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses the number of bytes written.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> WriteAll<'a> {
        WriteAll(FileOp::new(self, "mini::fs::File::write_all", WriteAllCall(buf)))
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
    /// Returns the errors of that write.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn flush(&mut self) -> Flush<'_> {
        Flush(FileOp::new(self, "mini::fs::File::flush", FlushCall(())))
    }

    /// Moves the position, and returns the new one, counted from the beginning of the file (lseek(2)).
    ///
    /// It may lie behind the end: a write there leaves a gap, which reads as zeros.
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
    /// Returns the errors of lseek(2): `InvalidInput` for a position before the beginning, `NotSeekable` for a fifo or
    /// a terminal.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on: the position is moved or not.
    #[track_caller]
    pub fn seek(&mut self, to: SeekFrom) -> Seek<'_> {
        Seek(FileOp::new(self, "mini::fs::File::seek", SeekCall(to)))
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

impl<C: FileCall> FileOp<'_, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<C::Output>> {
        let FileOp { file, call, caller } = self;
        call.poll(file, cx, *caller)
    }
}

impl FileCall for ReadCall<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        file.stream.poll_read(cx, &file.open, &mut *self.0, caller)
    }
}

impl FileCall for ReadExactCall<'_> {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<()>> {
        if self.buf.is_empty() {
            return mini_context::poll_budget(cx, self).map(Ok);
        }
        while self.filled < self.buf.len() {
            match ready!(file.stream.poll_read(cx, &file.open, &mut self.buf[self.filled..], caller))? {
                0 => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                read => self.filled += read,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl FileCall for ReadToEndCall<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        let content = &mut *self.content;
        loop {
            // As much as was read so far: few steps for a long file, little memory for a short one.
            let (length, room) = (content.len(), (content.len() - self.before).clamp(8 << 10, CHUNK));
            if content.try_reserve(room).is_err() {
                return Poll::Ready(Err(ErrorKind::OutOfMemory.into()));
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

impl FileCall for WriteCall<'_> {
    type Output = usize;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<usize>> {
        file.stream.poll_write(cx, &file.open, &[IoSlice::new(self.0)], caller)
    }
}

impl FileCall for WriteAllCall<'_> {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return mini_context::poll_budget(cx, self).map(Ok);
        }
        while !self.0.is_empty() {
            let written = ready!(file.stream.poll_write(cx, &file.open, &[IoSlice::new(self.0)], caller))?;
            self.0 = &self.0[written..];
        }
        Poll::Ready(Ok(()))
    }
}

impl FileCall for FlushCall {
    type Output = ();

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, _: Caller) -> Poll<io::Result<()>> {
        file.stream.poll_flush(cx, &file.open)
    }
}

impl FileCall for SeekCall {
    type Output = u64;

    fn poll(&mut self, file: &mut File, cx: &mut Context<'_>, caller: Caller) -> Poll<io::Result<u64>> {
        file.stream.poll_seek(cx, &file.open, self.0, caller)
    }
}

macro_rules! futures {
    ($($doc:literal $name:ident<$l:lifetime> = $call:ty => $output:ty;)*) => { $(
        #[doc = $doc]
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<$l>(FileOp<$l, $call>);

        impl Future for $name<'_> {
            type Output = io::Result<$output>;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                self.0.poll(cx)
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} of {:?} at {}", stringify!($name), self.0.file.open.path(), self.0.caller.location)
            }
        }
    )* };
}

futures! {
    "Future of [`File::read`]: resolves to `io::Result<usize>`, the number of bytes read, 0 at the end."
    Read<'a> = ReadCall<'a> => usize;

    "Future of [`File::read_exact`]: resolves to `io::Result<()>` when the buffer is full."
    ReadExact<'a> = ReadExactCall<'a> => ();

    "Future of [`File::read_to_end`]: resolves to `io::Result<usize>`, the number of bytes read."
    ReadToEnd<'a> = ReadToEndCall<'a> => usize;

    "Future of [`File::write`]: resolves to `io::Result<usize>`, the number of bytes written."
    Write<'a> = WriteCall<'a> => usize;

    "Future of [`File::write_all`]: resolves to `io::Result<()>` when the whole buffer is written."
    WriteAll<'a> = WriteAllCall<'a> => ();

    "Future of [`File::flush`]: resolves to `io::Result<()>` when no operation is under way."
    Flush<'a> = FlushCall => ();

    "Future of [`File::seek`]: resolves to `io::Result<u64>`, the new position."
    Seek<'a> = SeekCall => u64;
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Read<'_>, ReadToEnd<'_>, WriteAll<'_>, Seek<'_>)>();
};
