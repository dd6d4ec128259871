//! `File`: an open file.
//!
//! The operations at its position (read, write, seek) are in `stream`, and their futures in `call`; `open` is the part
//! that it shares with the jobs that work on it. The operations below and those in `inode` do not use the position, so
//! they take `&self`.

use std::fmt;
use std::fs::File as StdFile;
use std::io::SeekFrom;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use super::calls;
use super::operation::{About, Operation, Step};
use super::options::OpenOptions;

mod call;
mod inode;
mod open;
mod stream;
#[cfg(feature = "tokio-io")]
mod tokio_io;
#[cfg(feature = "futures-io")]
mod traits;

use call::Caller;
pub use call::{Flush, Read, ReadExact, ReadToEnd, Seek, Write, WriteAll};
use open::{FileHold, Open};
use stream::Stream;

/// An open file.
///
/// # What is written
///
/// A write is ready only when the kernel has the data. So nothing is lost if the `File` is then dropped, the runtime
/// shuts down, or the process ends without a `flush`. The write itself returns its error. The price is one hop to the
/// blocking pool for each write, of up to 256 KiB: gather small pieces in a buffer (`BufWriter` of `futures-lite`,
/// which then needs its `flush`), or write them together (`poll_write_vectored`). Data that the kernel has survive the
/// process, and after [`sync_all`](File::sync_all) a power cut.
///
/// A write whose future was dropped before it was ready may be carried out or not, in whole or in part, but not twice
/// and not after a later write, read or seek of this `File`: they wait for it, and so do `flush` and `set_len`. If the
/// same bytes are written next, they take its place. Its error comes from the next write or `flush`; if there is none,
/// it is printed when the `File` is dropped.
///
/// # What is read
///
/// On local file systems of Linux, up to 256 KiB at once are read without a hop if they are cached.
///
/// The bytes that a dropped read has fetched go to the next read of this `File`, even if another program has changed
/// them since; so does an end of the file, even if the file has grown since. For a seek or a write of this `File`, the
/// position is before these bytes: their number is subtracted, even if a clone has moved the position in between. If
/// [`set_len`](File::set_len) has cut the file, they are read again. Bytes from a fifo, a terminal or another device
/// can't be put back: they always go to the next read.
///
/// # Who else has it open
///
/// The position is that of the kernel, so it is shared with [clones](File::try_clone) and with child processes that
/// inherited the file. Clones that read at the same time get different bytes; which clone gets which is undefined.
///
/// The job of a dropped read continues, and moves the shared position behind the bytes that it fetches. Clones and
/// child processes do not get these bytes. [`into_std`](File::into_std) and a seek by `SeekFrom::Current(0)` wait for
/// the job and move the position back.
///
/// This `File` does not know of operations of another process, or of a clone that the standard library made. While such
/// an operation reads or writes, the kernel may make a read or seek of this `File` wait for it, on a thread that runs
/// tasks.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use std::io::SeekFrom;
/// use mini::fs::File;
///
/// # let path = std::env::temp_dir().join(format!("mini-doc-file-{}", std::process::id()));
/// let mut file = File::options().read(true).write(true).create(true).open(&path).await?;
/// file.write_all(b"hello").await?;
/// file.seek(SeekFrom::Start(1)).await?;
/// let mut rest = Vec::new();
/// file.read_to_end(&mut rest).await?;
/// assert_eq!(rest, b"ello");
/// # mini::fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub struct File {
    open: Arc<Open>,
    stream: Stream,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let file = mini::fs::File::open("Cargo.toml").await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn open<P: AsRef<Path>>(path: P) -> Operation<File, P> {
        OpenOptions::new().read(true).open_as("mini::fs::File::open", path.as_ref()).keeping(path)
    }

    /// Opens a file for writing: creates it if it does not exist, otherwise removes its content.
    ///
    /// # Examples
    ///
    /// See [`File`].
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn create<P: AsRef<Path>>(path: P) -> Operation<File, P> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open_as("mini::fs::File::create", path.as_ref()).keeping(path)
    }

    /// Creates a file that must not be there yet, to be read and written.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::io::ErrorKind;
    /// use mini::fs::File;
    ///
    /// # let path = std::env::temp_dir().join(format!("mini-doc-new-{}", std::process::id()));
    /// let file = File::create_new(&path).await?;
    /// assert_eq!(File::create_new(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    /// # mini::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2): `AlreadyExists` even for a link to nothing.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn create_new<P: AsRef<Path>>(path: P) -> Operation<File, P> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.open_as("mini::fs::File::create_new", path.as_ref()).keeping(path)
    }

    /// Returns options for further ways to open a file; the same as [`OpenOptions::new`].
    ///
    /// # Examples
    ///
    /// See [`File`].
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes over a file of the standard library, with its position.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut file = mini::fs::File::from_std(std::fs::File::open("Cargo.toml")?);
    /// let mut buf = [0; 9];
    /// file.read_exact(&mut buf).await?;
    /// assert_eq!(&buf, b"[package]");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// In a simulation, as its files are on a disk in memory.
    #[track_caller]
    pub fn from_std(file: StdFile) -> File {
        File::new(calls::adopt(file), Path::new(""), false)
    }

    pub(super) fn new(file: calls::File, path: &Path, is_quick: bool) -> File {
        File::with(Open::new(file, path.to_owned(), is_quick))
    }

    fn with(open: Open) -> File {
        File { open: Arc::new(open), stream: Stream::default() }
    }

    /// Becomes a file of the standard library, at the same position.
    ///
    /// Waits for operations whose future was dropped before they were ready, and for operations that were made and not
    /// polled yet. So a task that holds such a future (of [`metadata`](File::metadata), say) and awaits this first
    /// waits forever.
    ///
    /// Bytes that a dropped read has taken from a fifo or a terminal are lost; [`try_into_std`](File::try_into_std)
    /// refuses in this case.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::io::Seek;
    ///
    /// let mut file = mini::fs::File::open("Cargo.toml").await?;
    /// file.read_exact(&mut [0; 4]).await?;
    /// let mut file: std::fs::File = file.into_std().await;
    /// assert_eq!(file.stream_position()?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If the file is that of a simulation: the system has none.
    ///
    /// # Cancel safety
    ///
    /// Loses the file, which is closed.
    pub async fn into_std(mut self) -> StdFile {
        let caller = Caller::here("mini::fs::File::into_std");
        std::future::poll_fn(|cx| self.stream.poll_rest(cx, &self.open, caller)).await;
        if !self.stream.is_at_rest() {
            let _ = self.seek(SeekFrom::Current(0)).await; // to before the kept bytes; a fifo can't
        }
        loop {
            match Arc::try_unwrap(self.open) {
                Ok(open) => return open.into_std(),
                Err(shared) => self.open = shared,
            }
            std::future::poll_fn(|cx| Open::poll_alone(&self.open, cx)).await;
        }
    }

    /// Converts the file like [`into_std`](File::into_std), if there is nothing to wait for.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let file = mini::fs::File::open("Cargo.toml").await?;
    /// let file: std::fs::File = file.try_into_std().expect("nothing else uses it");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// This file again, if an operation is under way, or a seek that tokio's `AsyncSeek` has started, or if a dropped
    /// read has fetched bytes that no read has returned.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`into_std`](File::into_std).
    pub fn try_into_std(self) -> Result<StdFile, File> {
        if !self.stream.is_at_rest() {
            return Err(self);
        }
        let File { open, stream } = self;
        Arc::try_unwrap(open).map(Open::into_std).map_err(|open| File { open, stream })
    }

    /// Creates another handle to the same open file, with the same position.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut file = mini::fs::File::open("Cargo.toml").await?;
    /// let mut clone = file.try_clone().await?;
    /// let mut buf = [0; 8];
    /// file.read_exact(&mut buf[..4]).await?;
    /// clone.read_exact(&mut buf[4..]).await?;
    /// assert_eq!(&buf, b"[package");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2) with `F_DUPFD_CLOEXEC`: no more files can be opened.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn try_clone(&self) -> Operation<File> {
        let (lease, about) = self.part("mini::fs::File::try_clone");
        Operation::first(about, move |_| Step::Done(lease.try_clone().map(File::with)))
    }

    /// Returns the parts that every operation on this file needs.
    #[track_caller]
    fn part(&self, call: &'static str) -> (FileHold, About) {
        (FileHold::new(&self.open), About::new(call, self.open.path()))
    }
}

impl From<StdFile> for File {
    #[track_caller]
    fn from(file: StdFile) -> File {
        File::from_std(file)
    }
}

impl From<OwnedFd> for File {
    #[track_caller]
    fn from(fd: OwnedFd) -> File {
        File::from_std(fd.into())
    }
}

impl AsFd for File {
    #[track_caller]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.std().as_fd()
    }
}

impl AsRawFd for File {
    #[track_caller]
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fd, path) = (calls::number(self.open.std()), self.open.path());
        f.debug_struct("File").field("fd", &fd).field("path", &path).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(File, OpenOptions)>();
};
