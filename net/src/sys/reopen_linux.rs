//! A file descriptor opened once more, so that it can be non-blocking here and blocking elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::ready::Interest;

/// Opens the pipe or terminal behind `fd` anew, for reading or for writing, non-blocking. See proc_pid_fd(5).
///
/// Nothing changes for processes that share `fd`: `O_NONBLOCK` belongs to the open file, and this is another one.
pub(crate) fn reopen(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(interest.is_readable()).write(interest.is_writable()).custom_flags(flags).open(path)
}
