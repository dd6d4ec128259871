//! The file system of a simulated host: in memory, and what was not synced may be lost when the host crashes.
//!
//! `mini::fs` calls it in place of the system (`fs/calls/simulated.rs`). [`Disk`] is also what a test has of it. A
//! simulation runs on one thread, and its disks are found there.
//!
//! `state` is what is on a disk, `changes` what happens to names until the disk has them, `stored` the same for
//! contents, `crash` what is left; `walk`, `names` and `open` are the system calls.
//!
//! Rejected: a part of the world of a runtime. The caller is a blocking job, which knows only its thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_context::sim;
use mini_kernel::primitives::{Mutex, lock};

use super::Current;
use super::names::number;
use super::sites;

mod changes;
mod content;
mod crash;
mod names;
mod node;
mod open;
mod stand_ins;
mod state;
mod stored;
mod walk;

pub(crate) use node::{Ino, Kind};
pub(crate) use open::{OpenFile, Wanted};
use state::State;
use walk::Last;

/// The disk of a host in a simulation.
///
/// In a simulation all of [`mini::fs`](crate::fs) works on a file system in memory. Each host has a disk of its own:
/// [`Current::disk`] returns the disk of the calling task's host, [`Current::disk_of`] that of any host. A disk begins
/// with an empty `/tmp` (and an empty [`temp_dir`](std::env::temp_dir)), and the current directory is `/`. [`std::fs`]
/// still uses the real disk.
///
/// # What a crash leaves
///
/// Without a crash nothing is lost. After [`crash`](Disk::crash) the disk has
///
/// - the data of each file that were written before its last [`sync_all`](crate::fs::File::sync_all) or
///   [`sync_data`](crate::fs::File::sync_data), and the first few of the writes and cuts since then: the seed draws the
///   number, from none to all;
/// - the names that each directory had at its last `sync_all` (open a directory with
///   [`File::open`](crate::fs::File::open) to call it), and the first few of the changes since then. A rename between
///   two directories happens as a whole or not at all.
///
/// So a new file is certain to exist only if both the file and its directory were synced. A file whose name was synced,
/// but not its data, may be empty. Permissions are on the disk at once. Files that were open when it crashed fail with
/// `EIO`.
///
/// # What differs from a real one
///
/// The only user has all permissions, and the umask is 022. Modification times are virtual, and begin with the year
/// 2000. Other times, owners, device and inode numbers and the number of names in
/// [`MetadataExt`](std::os::unix::fs::MetadataExt) are those of a stand-in in the real directory for temporary files,
/// or in /tmp, /var/tmp or /dev/shm. If the system cannot make a stand-in, for example because the file is too large,
/// the query of metadata returns an error of the kind `Other`. Fifos, devices and locks of files are missing. The only
/// flags of open(2) are `O_DIRECTORY`, `O_NOFOLLOW`, `O_NONBLOCK`, `O_SYNC` and `O_DSYNC`.
///
/// # Examples
///
/// A program that forgets to sync:
///
/// ```
/// let kept = |seed, syncs| {
///     let simulation = mini::sim::Sim::new(seed).run(async move {
///         let mut log = mini::fs::File::create("/log").await?;
///         let disk = mini::sim::current().disk();
///         disk.sync(); // an empty log
///         log.write_all(b"paid").await?;
///         if syncs {
///             log.sync_data().await?;
///         }
///         disk.crash();
///         mini::fs::read("/log").await
///     });
///     simulation.unwrap().unwrap() == b"paid"
/// };
/// assert!((0..20).any(|seed| !kept(seed, false))); // some seed loses it
/// assert!((0..20).all(|seed| kept(seed, true)));
/// ```
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

const ELSEWHERE: &str = "a simulated disk was used outside its simulation";

thread_local! {
    /// Of the simulation that runs on this thread.
    static DISKS: RefCell<Option<Disks>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Disks {
    seed: u64,
    of_hosts: BTreeMap<u32, Disk>,
}

impl Current {
    /// Returns the disk of the host that the calling task runs on.
    ///
    /// # Panics
    ///
    /// On a thread that does not run the simulation.
    ///
    /// # Examples
    ///
    /// See [`Disk`].
    #[track_caller]
    pub fn disk(&self) -> Disk {
        here().expect(ELSEWHERE)
    }

    /// Returns the disk of the host `name`: `test` is that of the test itself.
    ///
    /// A host that [crashes](Current::crash), or whose power is [cut](Current::power_off), loses the same data as by
    /// [`Disk::crash`]. A host whose program has ended loses nothing.
    ///
    /// # Panics
    ///
    /// If there is no such host. On a thread that does not run the simulation.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::fs::{self, File};
    /// use mini::sim::{Sim, current};
    ///
    /// # Sim::new(1).run(async {
    /// current().host("db", || async {
    ///     let mut log = File::options().append(true).create(true).open("/log").await?;
    ///     log.write_all(b"started\n").await?;
    ///     log.sync_all().await?;
    ///     File::open("/").await?.sync_all().await?; // for the name
    ///     std::future::pending::<std::io::Result<()>>().await
    /// });
    /// current().disk_of("db").capacity(1 << 20);
    /// mini::time::sleep(mini::time::Duration::from_secs(1)).await;
    /// current().crash("db");
    /// current().restart("db");
    /// mini::time::sleep(mini::time::Duration::from_secs(1)).await;
    /// assert!(!fs::try_exists("/log").await?); // on the disk of the test
    /// # Ok::<(), std::io::Error>(()) }).unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn disk_of(&self, name: &str) -> Disk {
        of(number(name)).expect(ELSEWHERE)
    }
}

impl Disk {
    /// Sets the probability that a read, write or sync fails with `EIO`, from 0.0 (the default) to 1.0. Each failure is
    /// a fault of the simulation.
    ///
    /// A write that fails has written nothing. After a failed sync, only a part of the unsynced writes is on the disk.
    /// The others never reach it, and a second sync succeeds without them, though programs still read them, as with
    /// Linux. A directory whose sync failed can be synced again.
    ///
    /// # Panics
    ///
    /// If `rate` is not a number from 0 to 1.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::sim::Sim::new(1).run(async {
    /// let disk = mini::sim::current().disk();
    /// mini::fs::write("/file", "content").await?;
    /// disk.errors(1.0);
    /// let error = mini::fs::read("/file").await.unwrap_err();
    /// assert_eq!(error.raw_os_error(), Some(libc::EIO));
    /// disk.errors(0.0);
    /// assert_eq!(mini::fs::read("/file").await?, b"content");
    /// # Ok::<(), std::io::Error>(()) }).unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn errors(&self, rate: f64) -> &Self {
        sites::check(rate);
        self.with(|state| state.error_rate = rate);
        self
    }

    /// Sets the total number of bytes that the files may have; unlimited by default. A write that does not fit writes
    /// as many bytes as fit; if none fit, it fails with `ENOSPC`. Gaps in files and names take no room.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::ErrorKind;
    ///
    /// # mini::sim::Sim::new(1).run(async {
    /// mini::sim::current().disk().capacity(3);
    /// let mut file = mini::fs::File::create("/file").await?;
    /// assert_eq!(file.write_all(b"content").await.unwrap_err().kind(), ErrorKind::StorageFull);
    /// assert_eq!(mini::fs::read("/file").await?, b"con");
    /// # Ok::<(), std::io::Error>(()) }).unwrap().unwrap();
    /// ```
    pub fn capacity(&self, bytes: u64) -> &Self {
        self.with(|state| state.capacity = Some(bytes));
        self
    }

    /// Syncs everything: a state from which a test begins.
    ///
    /// # Examples
    ///
    /// See [`Disk`].
    pub fn sync(&self) -> &Self {
        self.with(State::sync);
        self
    }

    /// Does to the disk what a power cut of its host would do: data that were not synced may be lost, and open files
    /// fail with `EIO` from now on. Each file and each directory that loses something is a fault of the simulation.
    ///
    /// # Examples
    ///
    /// See [`Disk`].
    pub fn crash(&self) {
        self.with(State::crash);
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut lock(&self.0))
    }

    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.with(|state| state.look_up(path, Last::Follow).and_then(|ino| state.metadata(ino)))
    }

    pub(crate) fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.with(|state| state.look_up(path, Last::Keep).and_then(|ino| state.metadata(ino)))
    }

    pub(crate) fn file_type(&self, kind: Kind) -> io::Result<FileType> {
        self.with(|state| state.file_type(kind))
    }

    pub(crate) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.with(|state| state.exists(path))
    }

    pub(crate) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.with(|state| state.canonicalize(path))
    }

    pub(crate) fn read_link(&self, path: &Path) -> io::Result<OsString> {
        self.with(|state| state.read_link(path))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(|state| state.rename(from, to))
    }

    pub(crate) fn hard_link(&self, path: &Path, new: &Path) -> io::Result<()> {
        self.with(|state| state.add_name(path, new))
    }

    pub(crate) fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.with(|state| state.make_link(target, path))
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.with(|state| state.remove_file(path))
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.with(|state| state.remove_dir(path))
    }

    pub(crate) fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.with(|state| state.remove_tree(path))
    }

    pub(crate) fn create_dir(&self, path: &Path, mode: u32, is_recursive: bool) -> io::Result<()> {
        self.with(|state| if is_recursive { state.make_dirs(path, mode) } else { state.make_dir(path, mode) })
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.with(|state| state.set_mode(path, mode))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, crashes) = self.with(|state| (state.host, state.crashes));
        f.debug_struct("Disk").field("host", &host).field("crashes", &crashes).finish_non_exhaustive()
    }
}

/// The disk of the host whose task runs; `None` outside of a simulation.
pub(crate) fn here() -> Option<Disk> {
    of(sim::host())
}

fn of(host: u32) -> Option<Disk> {
    DISKS.with_borrow_mut(|disks| {
        let Disks { seed, of_hosts } = disks.as_mut()?;
        let disk = of_hosts.entry(host).or_insert_with(|| Disk(Arc::new(Mutex::new(State::new(*seed, host)))));
        Some(disk.clone())
    })
}

/// A host crashes, or its power is cut.
pub(super) fn crash(host: u32) {
    let disk = DISKS.with_borrow(|disks| disks.as_ref()?.of_hosts.get(&host).cloned());
    if let Some(disk) = disk {
        disk.crash();
    }
}

/// A simulation begins on this thread: its hosts have empty disks.
pub(super) fn begin(seed: u64) {
    DISKS.set(Some(Disks { seed, of_hosts: BTreeMap::new() }));
}

/// The simulation on this thread ends.
pub(super) fn end() {
    drop(DISKS.take());
}
