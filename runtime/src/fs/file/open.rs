//! `Open`: what a `File` shares with the jobs that work on it.
//!
//! A job holds it by a `FileHold`. `into_std` waits until the last lease is gone, so a lease wakes the task that waits
//! *after* it has given up its reference. Clones share `OfClones`, as they share the kernel's position.
//!
//! Rejected: a duplicate of the descriptor for `into_std` to return. There may be none left.

use std::fs::{File as StdFile, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::fs::calls::{self, File, now};

pub(super) struct Open {
    std: File,
    path: PathBuf,
    /// Whether the file is known to lie where asking the kernel for its metadata takes no wait.
    is_quick: bool,
    /// Jobs of this handle that write.
    writing: AtomicUsize,
    shared: Arc<OfClones>,
}

/// The state that clones share.
#[derive(Default)]
struct OfClones {
    /// How often the length was set.
    cuts: AtomicUsize,
    /// See [`Open::is_seekable`].
    is_seekable: OnceLock<bool>,
    /// Held while a thread uses the position, as the kernel makes every other use of it wait, or sets the length.
    turn: Mutex<()>,
    /// Tasks that wait until theirs is the only reference, or nothing is written.
    waiting: Mutex<Vec<Waker>>,
}

/// A job's hold on a file.
pub(super) struct FileHold {
    /// Until the drop.
    open: Option<Arc<Open>>,
    is_writing: bool,
}

impl Open {
    /// Sets the length, in a thread that may block. Counts a cut within the same turn: a write is before both or after.
    pub(super) fn set_len(&self, size: u64) -> io::Result<()> {
        let _turn = self.turn();
        let is_cut = self.std.metadata().map_or(true, |before| size < before.len());
        self.std.set_len(size)?;
        self.shared.cuts.fetch_add(usize::from(is_cut), Relaxed);
        Ok(())
    }

    /// How often something was cut off.
    pub(super) fn cuts(&self) -> usize {
        self.shared.cuts.load(Relaxed)
    }

    pub(super) fn new(std: File, path: PathBuf, is_quick: bool) -> Open {
        Open { std, path, is_quick, writing: AtomicUsize::new(0), shared: Arc::default() }
    }

    /// The metadata of the file, if that takes no wait.
    pub(super) fn metadata_now(&self) -> Option<io::Result<Metadata>> {
        if self.is_quick { Some(self.std.metadata()) } else { now::metadata_of(&self.std) }
    }

    pub(super) fn std(&self) -> &File {
        &self.std
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn into_std(self) -> StdFile {
        calls::give_up(self.std)
    }

    /// Locks the position, in a thread that may block. A fifo or a terminal has no lock: its read may be waiting for
    /// the answer to a write.
    pub(super) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        (self.is_seekable() == Some(true)).then(|| lock(&self.shared.turn))
    }

    /// Whether reads and writes have a position; `None` if the system fails to say. It is asked once.
    pub(super) fn is_seekable(&self) -> Option<bool> {
        let known = &self.shared.is_seekable;
        if known.get().is_none() {
            _ = known.set(calls::is_seekable(&self.std).ok()?);
        }
        known.get().copied()
    }

    /// Locks the position, if that takes no wait.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.shared.turn.try_lock().ok()
    }

    /// Ready when `open` is the only reference.
    pub(super) fn poll_alone(open: &Arc<Open>, cx: &mut Context<'_>) -> Poll<()> {
        open.shared.wait(cx);
        // The last lease has either gone before the lock was taken, and is not counted any more, or finds the waker.
        if Arc::strong_count(open) == 1 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ready when no job of this handle writes.
    pub(super) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.writing.load(Relaxed) == 0 {
            return Poll::Ready(());
        }
        self.shared.wait(cx);
        // As above: the last write has either gone, or finds the waker.
        if self.writing.load(Relaxed) == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl OfClones {
    /// Leaves a waker, which the next lease that ends calls.
    fn wait(&self, cx: &mut Context<'_>) {
        let waker = cx.waker().clone();
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|other| other.will_wake(&waker)) {
            waiting.push(waker);
        }
    }
}

/// Locks a mutex of the standard library, also in models, which never come here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileHold {
    pub(super) fn new(open: &Arc<Open>) -> FileHold {
        FileHold { open: Some(open.clone()), is_writing: false }
    }

    /// For a job that writes at the position.
    pub(super) fn writing(open: &Arc<Open>) -> FileHold {
        open.writing.fetch_add(1, Relaxed);
        let mut lease = FileHold::new(open);
        lease.is_writing = true;
        lease
    }

    pub(super) fn open(&self) -> &Open {
        self.open.as_ref().expect("there until the drop")
    }

    pub(super) fn std(&self) -> &File {
        self.open().std()
    }

    pub(super) fn metadata_now(&self) -> Option<io::Result<Metadata>> {
        self.open().metadata_now()
    }

    pub(super) fn try_clone(&self) -> io::Result<Open> {
        let Open { std, path, is_quick, shared, .. } = self.open();
        let writing = AtomicUsize::new(0);
        Ok(Open { std: std.try_clone()?, path: path.clone(), is_quick: *is_quick, writing, shared: shared.clone() })
    }
}

impl Drop for FileHold {
    fn drop(&mut self) {
        let shared = self.open().shared.clone();
        if self.is_writing {
            self.open().writing.fetch_sub(1, Relaxed);
        }
        drop(self.open.take());
        let waiting = std::mem::take(&mut *lock(&shared.waiting));
        for waker in waiting {
            waker.wake();
        }
    }
}
