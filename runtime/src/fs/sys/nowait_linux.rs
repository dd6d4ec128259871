//! Linux: opening and reading what is cached, and nothing else.
//!
//! Three calls say "not now" instead of waiting for a disk: openat2(2) with `RESOLVE_CACHED` (Linux 5.12), which walks
//! a path only through names that are in memory; statx(2) with `AT_STATX_DONT_SYNC`, which asks no server; preadv2(2)
//! with `RWF_NOWAIT` (Linux 4.14), which copies only pages that are in memory. What they don't cover is the open
//! itself:
//!
//! - A fifo waits for its other end, a device may do anything. So the path is opened with `O_PATH` first, which touches
//!   nothing, and only an ordinary file is then opened for reading. It is opened with `O_NONBLOCK`, in case another
//!   file has taken its place by then, and because of leases (fcntl(2)): the open then does not wait for the holder of
//!   a lease.
//! - A network file system or one in user space asks a server or a process. So files are opened on mounts only that
//!   have shown (`learn`, in a thread that may block) that they support `RWF_NOWAIT`: ext4, xfs, btrfs and other local
//!   ones do. A mount is known by an id that is never used again (`STATX_MNT_ID_UNIQUE`, Linux 6.8).
//!
//! A caller that asks for `O_NONBLOCK` waives the look at fifos and devices. The file system remains: the mount on
//! which a path begins can be asked about before, and `RESOLVE_NO_XDEV` keeps to it.
//!
//! Two waits are left. An open waits for a security program that is asked about each open (fanotify(7)). And before
//! Linux 6.8 a mount is known by its device number, which another file system may get when the first one has been
//! unmounted: then the first open there may wait, if that file system makes its files wait.
//!
//! A call that fails here is tried again in a hop, which returns the error, so none is returned from here. The calls
//! are made by number: so programs also start with a C library that is older than the calls.
//!
//! Rejected: `O_NONBLOCK` alone, without the look by `O_PATH`. To open and close a fifo breaks the pipe of a writer
//! that waits for a reader. Rejected: mincore(2) and a mapping. Another reader's page may be evicted between the look
//! and the copy, and then a worker waits for the disk in a page fault.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::{File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use libc::{c_int, c_long};
use mini_net::Unfilled;

use super::{CHUNK, Links};

/// Mounts whose files can be read without a wait; zero where there is none. The oldest goes first.
static MOUNTS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The position of the file itself, for preadv2(2).
const AT_POSITION: i64 = -1;

/// `STATX_MNT_ID_UNIQUE` of statx(2), which older versions of `libc` lack.
const MNT_ID_UNIQUE: u32 = 0x4000;

/// The part of a file's status that is needed here.
struct Status {
    mount: u64,
    is_file: bool,
    size: u64,
}

pub(in crate::fs) fn open(path: &Path) -> Option<(File, u64)> {
    let (file, size) = open_ordinary(&c_path(path)?)?;
    // `O_NONBLOCK` means nothing for an ordinary file, but a program that gets this one by `into_std` may look.
    // SAFETY: no pointer is passed, and the file is ours. Test: tests/tests/files/fs.rs
    // `an_opened_file_is_in_no_odd_mode`.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) };
    (done == 0).then_some((file, size))
}

pub(in crate::fs) fn open_with(path: &Path, flags: c_int) -> Option<File> {
    match flags {
        0 => open(path).map(|(file, _)| file),
        libc::O_NONBLOCK => {
            let text = c_path(path)?;
            open_beside(&text, path.is_absolute()).or_else(|| Some(open_ordinary(&text)?.0))
        }
        _ => None,
    }
}

/// Opens a file on the file system that the path begins on: how quick that is is known before, and `O_NONBLOCK` is
/// enough for a fifo. One call instead of three.
fn open_beside(path: &CString, is_absolute: bool) -> Option<File> {
    let begin = if is_absolute { c"/" } else { c"." }; // both are held by the process, so there is nothing to look up
    if !is_known(status_at(libc::AT_FDCWD, begin)?.mount) {
        return None;
    }
    let flags = libc::O_RDONLY | libc::O_NONBLOCK;
    open_resolved(path, flags, libc::RESOLVE_CACHED | libc::RESOLVE_NO_XDEV).map(File::from)
}

/// Opens an ordinary file on a quick file system, with `O_NONBLOCK`.
fn open_ordinary(path: &CString) -> Option<(File, u64)> {
    let status = look(path, Links::Follow).and_then(|place| status(&place))?;
    if !status.is_file || !is_known(status.mount) {
        return None;
    }
    let file = File::from(open_cached(path, libc::O_RDONLY | libc::O_NONBLOCK)?);
    Some((file, status.size))
}

pub(in crate::fs) fn metadata(path: &Path, links: Links) -> Option<io::Result<Metadata>> {
    metadata_of(&look(&c_path(path)?, links)?)
}

pub(in crate::fs) fn metadata_of(file: &File) -> Option<io::Result<Metadata>> {
    is_known(status(file)?.mount).then(|| file.metadata())
}

/// Set once openat2(2) has succeeded, so on Linux 5.12 or later: on 5.9 and 5.10 a read that must not wait may report
/// an end where there is none (preadv2(2), BUGS).
static ENDS_ARE_TRUE: AtomicBool = AtomicBool::new(false);

pub(in crate::fs) fn read(file: &File, buf: &mut impl Unfilled) -> Option<usize> {
    // SAFETY: the kernel alone writes there. Test: tests/tests/files/fs_file.rs `a_read_takes_what_is_asked_for`.
    let room = unsafe { buf.room() };
    let (start, length) = (room.as_mut_ptr().cast::<u8>(), room.len().min(CHUNK));
    // SAFETY: `room` is `length` bytes or longer, and borrowed exclusively. Test: as above.
    let read = unsafe { read_now(file, start, length, AT_POSITION) }?;
    // SAFETY: the kernel has just initialised that many bytes of the same room. Test: as above.
    unsafe { buf.fill(read) };
    (read > 0 || ENDS_ARE_TRUE.load(Relaxed)).then_some(read)
}

pub(in crate::fs) fn read_to_end(file: &File, content: &mut Vec<u8>) -> bool {
    while content.len() < content.capacity() {
        let room = content.spare_capacity_mut();
        let (start, length) = (room.as_mut_ptr().cast::<u8>(), room.len());
        // SAFETY: the spare capacity is `length` bytes of the vector's own, and nothing reads them meanwhile.
        // Test: tests/tests/files/fs.rs `files_of_all_sizes_are_read_whole`.
        match unsafe { read_now(file, start, length, AT_POSITION) } {
            None => return false,
            Some(0) => return true,
            // SAFETY: the kernel has initialised that many bytes behind the length. Test: as above.
            Some(read) => unsafe { content.set_len(content.len() + read) },
        }
    }
    // Full: there may be more, as a file can grow.
    let mut more = [0; 32];
    let read = read(file, &mut &mut more[..]);
    content.extend_from_slice(&more[..read.unwrap_or(0)]);
    read == Some(0)
}

pub(in crate::fs) fn learn(file: &File) {
    let Some(status) = status(file) else { return };
    if !status.is_file || is_known(status.mount) {
        return;
    }
    let mut byte = 0;
    // SAFETY: `byte` is one byte, and borrowed exclusively. Test: as for `read_to_end`.
    let read = unsafe { read_now(file, &raw mut byte, 1, 0) };
    if read.is_some() || io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
        MOUNTS[NEXT.fetch_add(1, Relaxed) % MOUNTS.len()].store(status.mount, Relaxed);
    }
}

fn is_known(mount: u64) -> bool {
    MOUNTS.iter().any(|known| known.load(Relaxed) == mount)
}

/// What `path` names, held without being opened: nothing happens to a fifo or a device.
fn look(path: &CString, links: Links) -> Option<File> {
    let keep = if links == Links::Keep { libc::O_NOFOLLOW } else { 0 };
    open_cached(path, libc::O_PATH | keep).map(File::from)
}

fn open_cached(path: &CString, flags: c_int) -> Option<OwnedFd> {
    open_resolved(path, flags, libc::RESOLVE_CACHED)
}

fn open_resolved(path: &CString, flags: c_int, resolve: u64) -> Option<OwnedFd> {
    // The kernel's `struct open_how`: flags, mode and how to resolve the path, 64 bits each (openat2(2)).
    let how: [u64; 3] = [(flags | libc::O_CLOEXEC) as u64, 0, resolve];
    let (path, size) = (path.as_ptr(), size_of_val(&how));
    // SAFETY: `path` ends with a zero byte, `how` has the layout and the size that are announced, and both outlive the
    // call, which writes to neither. Test: tests/tests/files/fs.rs `files_of_all_sizes_are_read_whole`.
    let fd = unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path, how.as_ptr(), size) };
    let fd = c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    ENDS_ARE_TRUE.store(true, Relaxed);
    // SAFETY: the call has just opened it, so nobody else owns it.
    // Test: tests/tests/files/fs.rs `no_descriptor_is_leaked`.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel knows of a file without asking a server for it.
fn status(file: &File) -> Option<Status> {
    status_at(file.as_raw_fd(), c"")
}

/// The same of `path`, which is looked up from `fd` on; of `fd` itself if it is empty.
fn status_at(fd: c_int, path: &CStr) -> Option<Status> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let wanted = libc::STATX_TYPE | libc::STATX_SIZE | MNT_ID_UNIQUE;
    let (path, into) = (path.as_ptr(), status.as_mut_ptr());
    // SAFETY: the path ends with a zero byte, and `into` has room for what is written.
    // Test: tests/tests/files/fs.rs `files_of_all_sizes_are_read_whole`.
    let done = unsafe { libc::syscall(libc::SYS_statx, fd, path, flags, wanted, into) };
    if done != 0 {
        return None;
    }
    // SAFETY: all zeros before the call are a valid value already, that of integers. Test: as above.
    let status = unsafe { status.assume_init() };
    let mount = match status.stx_mask & MNT_ID_UNIQUE {
        0 => u64::from(status.stx_dev_major) << 32 | u64::from(status.stx_dev_minor),
        _ => status.stx_mnt_id,
    };
    Some(Status {
        // The highest bit tells a mount from an empty place.
        mount: 1 << 63 | mount,
        is_file: u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFREG,
        size: status.stx_size,
    })
}

/// Reads what needs no wait; `None` if that is nothing, or something went wrong.
///
/// # Safety
///
/// `length` bytes can be written to `start`, and nobody else uses them during the call.
unsafe fn read_now(file: &File, start: *mut u8, length: usize, offset: i64) -> Option<usize> {
    let buf = libc::iovec { iov_base: start.cast(), iov_len: length };
    let (fd, offset) = (file.as_raw_fd(), offset as c_long);
    // The kernel takes the offset in two halves, and on 64-bit systems all of it is in the first.
    // SAFETY: one buffer, which the caller vouches for; `buf` itself outlives the call.
    // Test: tests/tests/files/fs.rs `files_of_all_sizes_are_read_whole`.
    let read =
        unsafe { libc::syscall(libc::SYS_preadv2, fd, &raw const buf, 1usize, offset, 0usize, libc::RWF_NOWAIT) };
    usize::try_from(read).ok()
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_mount_are_known_together_and_no_others() {
        let mount = |path: &str| status(&File::open(path).unwrap()).unwrap().mount;
        assert_eq!(mount("/proc/version"), mount("/proc/uptime"));
        assert_ne!(mount("/proc/version"), mount("Cargo.toml"));
    }
}
