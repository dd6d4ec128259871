//! `ReadDir`: the entries of a directory, many to a hop.
//!
//! The directory's stream goes to a thread of the pool, and comes back with up to `BATCH` entries. It comes back even
//! if no future waits: then the next call finds it.
//!
//! Rejected: all entries at once. A directory of a million files would take seconds and memory that most loops don't
//! need.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::calls as fs;
use super::operation::{About, Operation, Step, need_runtime, no_answer, pool};
use crate::fs::job::Job;

/// Entries of one hop: some 100 µs of a thread's time, if the file system has them at hand.
const BATCH: usize = 128;

const NEXT_ENTRY: &str = "mini::fs::ReadDir::next_entry";

/// Opens a directory to read its entries.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let mut entries = mini::fs::read_dir(".").await?;
/// let mut found = false;
/// while let Some(entry) = entries.next_entry().await? {
///     found |= entry.file_name() == "Cargo.toml";
/// }
/// assert!(found);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of opendir(3).
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn read_dir<P: AsRef<Path>>(path: P) -> Operation<ReadDir, P> {
    Operation::hop(About::new("mini::fs::read_dir", path.as_ref()), |about| {
        let batch = fill(fs::read_dir(&about.path)?);
        let mut dir = ReadDir { path: about.path.clone(), state: State::Ended, ready: VecDeque::new() };
        dir.take(batch);
        Ok(dir)
    })
    .keeping(path)
}

/// The entries of a directory, in no order, without `.` and `..`; made by [`read_dir`].
///
/// A file that is created or removed during the reading may or may not be among the entries (readdir(3)).
///
/// # Examples
///
/// See [`read_dir`].
pub struct ReadDir {
    path: PathBuf,
    state: State,
    ready: VecDeque<io::Result<DirEntry>>,
}

enum State {
    /// There is more to read.
    Open(fs::ReadDir),
    Reading(Job<Batch>),
    Ended,
    /// The runtime has shut down, and the stream is gone.
    Lost,
}

struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    /// `None` at the end.
    stream: Option<fs::ReadDir>,
}

/// Something in a directory.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let mut entries = mini::fs::read_dir("src").await?;
/// while let Some(entry) = entries.next_entry().await? {
///     assert_eq!(entry.path(), std::path::Path::new("src").join(entry.file_name()));
///     assert_ne!(entry.ino(), 0);
/// }
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct DirEntry {
    /// The directory is kept open by its entries.
    entry: Arc<fs::DirEntry>,
    /// If the directory tells (readdir(3)).
    file_type: Option<FileType>,
}

/// Future of [`ReadDir::next_entry`]: resolves to `io::Result<Option<DirEntry>>`.
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct NextEntry<'a> {
    dir: &'a mut ReadDir,
    location: &'static Location<'static>,
}

impl ReadDir {
    /// Reads the next entry; the output is `None` at the end.
    ///
    /// # Examples
    ///
    /// See [`read_dir`].
    ///
    /// # Errors
    ///
    /// Returns the errors of readdir(3). Reading continues after an error if the system permits.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: no entry is lost.
    #[track_caller]
    pub fn next_entry(&mut self) -> NextEntry<'_> {
        NextEntry { dir: self, location: Location::caller() }
    }

    /// Polls for the next entry; see [`next_entry`](ReadDir::next_entry).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut entries = mini::fs::read_dir("src").await?;
    /// assert!(std::future::poll_fn(|cx| entries.poll_next_entry(cx)).await?.is_some());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`next_entry`](ReadDir::next_entry).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`next_entry`](ReadDir::next_entry).
    #[track_caller]
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        self.poll_next(cx, Location::caller())
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        location: &'static Location<'static>,
    ) -> Poll<io::Result<Option<DirEntry>>> {
        if !matches!(self.state, State::Reading(_)) {
            need_runtime(NEXT_ENTRY, location);
        }
        loop {
            if !self.ready.is_empty() || matches!(self.state, State::Ended | State::Lost) {
                ready!(mini_context::poll_budget(cx, self));
            }
            if let Some(entry) = self.ready.pop_front() {
                return Poll::Ready(entry.map(Some));
            }
            // Before the stream is taken out of its place: without a runtime this panics.
            let is_open = matches!(self.state, State::Open(_));
            let pool = is_open.then(|| pool(NEXT_ENTRY, location));
            match std::mem::replace(&mut self.state, State::Lost) {
                State::Open(stream) => {
                    let pool = pool.expect("just looked");
                    self.state = State::Reading(Job::start(&pool, location, move || fill(stream)));
                }
                State::Reading(mut job) => match Pin::new(&mut job).poll(cx) {
                    Poll::Ready(Ok(batch)) => self.take(batch),
                    Poll::Ready(Err(lost)) => return Poll::Ready(Err(no_answer(lost))),
                    Poll::Pending => {
                        self.state = State::Reading(job);
                        return Poll::Pending;
                    }
                },
                State::Ended => {
                    self.state = State::Ended;
                    return Poll::Ready(Ok(None));
                }
                State::Lost => {
                    let text = "the directory was lost with a job that was not carried out";
                    return Poll::Ready(Err(io::Error::other(text)));
                }
            }
        }
    }

    fn take(&mut self, batch: Batch) {
        self.ready = batch.entries;
        self.state = batch.stream.map_or(State::Ended, State::Open);
    }
}

/// Reads some entries, in a thread that may block.
fn fill(mut stream: fs::ReadDir) -> Batch {
    let mut entries = VecDeque::with_capacity(BATCH);
    while entries.len() < BATCH {
        let Some(entry) = stream.next() else { return Batch { entries, stream: None } };
        entries.push_back(entry.map(|entry| DirEntry { file_type: entry.file_type().ok(), entry: Arc::new(entry) }));
    }
    Batch { entries, stream: Some(stream) }
}

impl DirEntry {
    /// Returns the path: the directory's path, as given to [`read_dir`], joined with the name.
    ///
    /// # Examples
    ///
    /// See [`DirEntry`].
    pub fn path(&self) -> PathBuf {
        self.entry.path()
    }

    /// Returns the name without the path.
    ///
    /// # Examples
    ///
    /// See [`DirEntry`].
    pub fn file_name(&self) -> OsString {
        self.entry.file_name()
    }

    /// Returns the inode number (stat(2)), which costs nothing.
    ///
    /// # Examples
    ///
    /// See [`DirEntry`].
    pub fn ino(&self) -> u64 {
        self.entry.ino()
    }

    /// Returns the type of the entry; links are not followed. Most file systems return the type with the name; then it
    /// takes no hop.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut entries = mini::fs::read_dir(".").await?;
    /// while let Some(entry) = entries.next_entry().await? {
    ///     let is_source = entry.file_name() == "src";
    ///     assert!(!is_source || entry.file_type().await?.is_dir());
    /// }
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of lstat(2), if that call is needed.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn file_type(&self) -> Operation<FileType> {
        let (entry, known) = (self.entry.clone(), self.file_type);
        let about = About::new("mini::fs::DirEntry::file_type", &self.path());
        Operation::first(about, move |_| match known {
            Some(file_type) => Step::Done(Ok(file_type)),
            None => Step::hop(move |_| entry.file_type()),
        })
    }

    /// Returns the metadata of the entry. Like [`symlink_metadata`](super::symlink_metadata), it does not follow a
    /// link.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut entries = mini::fs::read_dir("src").await?;
    /// let entry = entries.next_entry().await?.unwrap();
    /// assert!(entry.metadata().await?.modified().is_ok());
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fstatat(2).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn metadata(&self) -> Operation<Metadata> {
        let entry = self.entry.clone();
        let about = About::new("mini::fs::DirEntry::metadata", &self.path());
        Operation::hop(about, move |_| entry.metadata())
    }
}

impl Future for NextEntry<'_> {
    type Output = io::Result<Option<DirEntry>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextEntry { dir, location } = self.get_mut();
        dir.poll_next(cx, location)
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").field("path", &self.path).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(ReadDir, DirEntry, NextEntry<'_>)>();
};
