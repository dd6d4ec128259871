//! `OpenFile`: a file of the disk that is open, with its position.

use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Disk;
use super::changes::Entry;
use super::names::UMASK;
use super::node::{Ino, What};
use super::state::{State, error};
use super::stored::Stored;
use super::walk::{End, Last, Resolved};

/// The requested options of an open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) appends: bool,
    pub(crate) truncates: bool,
    pub(crate) creates: bool,
    pub(crate) creates_new: bool,
    pub(crate) mode: u32,
    /// More flags for open(2).
    pub(crate) flags: i32,
}

/// Flags that change nothing here.
const IGNORED: i32 = libc::O_ACCMODE | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
/// Those that do.
const KNOWN: i32 = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_SYNC | libc::O_DSYNC;

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct OpenFile {
    disk: Disk,
    ino: Ino,
    /// Clones share it.
    position: Arc<AtomicU64>,
    wanted: Wanted,
    /// How often the host had crashed when it was opened.
    crashes: u32,
}

impl Default for Wanted {
    fn default() -> Self {
        let [reads, writes, appends, truncates, creates, creates_new] = [false; 6];
        Self { reads, writes, appends, truncates, creates, creates_new, mode: 0o666, flags: 0 }
    }
}

impl Wanted {
    /// # Errors
    ///
    /// `InvalidInput` for what contradicts itself, `Unsupported` for flags that are not simulated.
    fn check(&self) -> io::Result<()> {
        let Self { reads, writes, appends, truncates, creates, creates_new, flags, .. } = *self;
        let (makes, changes) = (truncates || creates || creates_new, writes || appends);
        let is_valid = match (changes, appends) {
            (false, _) => reads && !makes,
            (true, true) => !truncates || creates_new,
            (true, false) => true,
        };
        if !is_valid || (creates || creates_new) && self.has(libc::O_DIRECTORY) {
            return error(libc::EINVAL);
        }
        if flags & !(IGNORED | KNOWN) != 0 {
            let text = format!("the flags {:#o} of open(2) are not simulated", flags & !(IGNORED | KNOWN));
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        Ok(())
    }

    fn changes(&self) -> bool {
        self.writes || self.appends
    }

    /// Each write is synced.
    fn syncs(&self) -> bool {
        self.flags & (libc::O_SYNC | libc::O_DSYNC) != 0
    }

    fn has(&self, flag: i32) -> bool {
        self.flags & flag == flag
    }
}

impl State {
    /// open(2)
    pub(super) fn open(&mut self, path: &Path, wanted: &Wanted) -> io::Result<Ino> {
        wanted.check()?;
        let creates = wanted.creates || wanted.creates_new;
        let follows = !(wanted.creates_new || wanted.has(libc::O_NOFOLLOW));
        let last = match follows {
            _ if creates => Last::Create { follows },
            true => Last::Follow,
            false => Last::Keep,
        };
        let place = self.walk(path, last)?;
        let ino = match place {
            Resolved { node: Some(_), .. } if wanted.creates_new => return error(libc::EEXIST),
            Resolved { node: Some(ino), is_slashed, .. } => {
                self.check_open(ino, is_slashed, wanted)?;
                ino
            }
            Resolved { end: End::Name(dir, name), .. } if creates => {
                let ino = self.add(What::File(Stored::default()), wanted.mode & !UMASK);
                self.change(vec![Entry::new(dir, name, ino)]);
                ino
            }
            Resolved { .. } => return error(libc::ENOENT),
        };
        if wanted.truncates {
            self.set_length(ino, 0);
        }
        Ok(ino)
    }

    /// Whether what is there can be opened so.
    fn check_open(&self, ino: Ino, is_slashed: bool, wanted: &Wanted) -> io::Result<()> {
        match &self.node(ino).what {
            What::Link(_) => error(libc::ELOOP),
            What::Dir(_) if wanted.changes() => error(libc::EISDIR),
            What::File(_) if is_slashed || wanted.has(libc::O_DIRECTORY) => error(libc::ENOTDIR),
            _ => Ok(()),
        }
    }

    fn set_length(&mut self, ino: Ino, length: u64) {
        self.node_mut(ino).as_file_mut().expect("only files are opened to be written to").set_length(length);
        self.note_change(ino);
    }

    fn read(&mut self, ino: Ino, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        if self.node(ino).is_dir() {
            return error(libc::EISDIR);
        }
        if self.is_to_fail("a read", ino) {
            return error(libc::EIO);
        }
        Ok(self.node(ino).as_file().expect("it is no directory").seen().read(at, buf))
    }

    fn write(&mut self, ino: Ino, at: u64, bytes: &[u8]) -> io::Result<usize> {
        // No offset of the system's is longer than 63 bits.
        let length = bytes.len().min((i64::MAX as u64).saturating_sub(at) as usize);
        if bytes.is_empty() || length == 0 {
            return if bytes.is_empty() { Ok(0) } else { error(libc::EFBIG) };
        }
        if self.is_to_fail("a write", ino) {
            return error(libc::EIO);
        }
        let room = self.room();
        let file = self.node_mut(ino).as_file_mut().expect("only files are opened to be written to");
        let length = file.seen().fitting(at, length, room);
        if length == 0 {
            return error(libc::ENOSPC);
        }
        file.write(at, &bytes[..length]);
        self.note_change(ino);
        Ok(length)
    }

    /// fsync(2)
    fn sync_node(&mut self, ino: Ino) -> io::Result<()> {
        let fails = self.is_to_fail("a sync", ino);
        let unsynced = self.node(ino).as_file().map_or(0, Stored::unsynced);
        if fails {
            // Some of it may have come to the disk before.
            let written = if unsynced > 0 { self.random.below(unsynced as u64) as usize } else { 0 };
            if let Some(file) = self.node_mut(ino).as_file_mut() {
                file.sync_only(written);
            }
            return error(libc::EIO);
        }
        match self.node_mut(ino).as_file_mut() {
            Some(file) => file.sync(),
            None => self.sync_names(ino),
        }
        Ok(())
    }
}

impl Disk {
    /// open(2)
    pub(crate) fn open(&self, path: &Path, wanted: &Wanted) -> io::Result<OpenFile> {
        let (ino, crashes) = self.with(|state| {
            let ino = state.open(path, wanted)?;
            state.node_mut(ino).opens += 1;
            state.hold(ino);
            Ok::<_, io::Error>((ino, state.crashes))
        })?;
        Ok(OpenFile { disk: self.clone(), ino, position: Arc::default(), wanted: *wanted, crashes })
    }
}

impl OpenFile {
    /// Runs `f`, unless the host has crashed since the file was opened.
    fn with<T>(&self, f: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.disk.with(|state| if state.crashes == self.crashes { f(state) } else { error(libc::EIO) })
    }

    /// read(2)
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.with(|state| {
            if !self.wanted.reads {
                return error(libc::EBADF);
            }
            let begin = self.position.load(Relaxed);
            let read = state.read(self.ino, begin, buf)?;
            self.position.store(begin + read as u64, Relaxed);
            Ok(read)
        })
    }

    /// write(2)
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|state| {
            if !self.wanted.changes() {
                return error(libc::EBADF);
            }
            let begin = match self.position.load(Relaxed) {
                _ if self.wanted.appends => state.node(self.ino).size(),
                begin => begin,
            };
            let written = state.write(self.ino, begin, bytes)?;
            if written > 0 {
                self.position.store(begin + written as u64, Relaxed);
            }
            if self.wanted.syncs() {
                state.sync_node(self.ino)?;
            }
            Ok(written)
        })
    }

    /// lseek(2)
    pub(crate) fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        self.with(|state| {
            let position = match to {
                SeekFrom::Start(position) => Some(position),
                SeekFrom::Current(offset) => self.position.load(Relaxed).checked_add_signed(offset),
                SeekFrom::End(offset) => state.node(self.ino).size().checked_add_signed(offset),
            };
            let Some(position) = position.filter(|&position| position <= i64::MAX as u64) else {
                return error(libc::EINVAL);
            };
            self.position.store(position, Relaxed);
            Ok(position)
        })
    }

    /// ftruncate(2)
    pub(crate) fn set_length(&self, length: u64) -> io::Result<()> {
        self.with(|state| {
            if !self.wanted.changes() || length > i64::MAX as u64 {
                return error(libc::EINVAL);
            }
            state.set_length(self.ino, length);
            if self.wanted.syncs() { state.sync_node(self.ino) } else { Ok(()) }
        })
    }

    /// fsync(2)
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.with(|state| state.sync_node(self.ino))
    }

    /// fchmod(2)
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.with(|state| {
            state.node_mut(self.ino).mode = mode & 0o7777;
            Ok(())
        })
    }

    /// fstat(2)
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.with(|state| state.metadata(self.ino))
    }

    pub(crate) fn mode(&self) -> io::Result<u32> {
        self.with(|state| Ok(state.node(self.ino).mode))
    }

    /// Whether it is a file, and no directory.
    pub(crate) fn is_file(&self) -> io::Result<bool> {
        self.with(|state| Ok(!state.node(self.ino).is_dir()))
    }

    /// What the directory `self` has.
    pub(crate) fn entries(&self) -> io::Result<Vec<(std::ffi::OsString, Ino, super::Kind)>> {
        self.with(|state| Ok(state.entries(self.ino)))
    }

    /// fstatat(2), of a name in the directory `self`. A link is not followed.
    pub(crate) fn metadata_at(&self, name: &std::ffi::OsStr) -> io::Result<Metadata> {
        self.with(|state| match state.dir(self.ino).seen.get(name) {
            Some(&ino) => state.metadata(ino),
            None => error(libc::ENOENT),
        })
    }

    /// What the metadata of something in the directory `self` say that its inode number is.
    pub(crate) fn number_of(&self, ino: Ino) -> u64 {
        let told = self.with(|state| match state.nodes.contains_key(&ino) {
            true => state.metadata(ino),
            false => error(libc::ENOENT),
        });
        told.map_or(ino.0, |metadata| metadata.ino())
    }

    /// dup(2)
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        self.with(|state| {
            state.node_mut(self.ino).opens += 1;
            state.hold(self.ino);
            let (disk, position) = (self.disk.clone(), self.position.clone());
            Ok(Self { disk, position, ino: self.ino, wanted: self.wanted, crashes: self.crashes })
        })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // An error is that of a crash, which has closed it.
        let _closed: io::Result<()> = self.with(|state| {
            state.node_mut(self.ino).opens -= 1;
            state.release(self.ino);
            Ok(())
        });
    }
}
