//! A file descriptor opened once more, so that it can be non-blocking here and blocking elsewhere.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::ready::Interest;

/// Opens the pipe behind `fd` anew, for reading or for writing, non-blocking. See proc_pid_fd(5).
///
/// Nothing changes for processes that share `fd`: `O_NONBLOCK` belongs to the open file, and this is another one.
pub(crate) fn reopen(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(interest.is_readable()).write(interest.is_writable()).custom_flags(flags).open(path)
}

/// As `reopen`, of a terminal. An error if that gives another terminal: the name by which `fd` was opened may be that
/// of a new one for each open (`/dev/ptmx`, pty(7)), or of the caller's (`/dev/tty`, tty(4)).
pub(crate) fn reopen_terminal(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<File> {
    let file = reopen(fd, interest)?;
    if device(fd)? == device(file.as_fd())? { Ok(file) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// The number of the terminal itself, whatever name it was opened by; both ends of a pseudoterminal have the same.
fn device(terminal: BorrowedFd<'_>) -> io::Result<u32> {
    let (what, mut device) = (libc::_IOR::<u32>(b'T'.into(), 0x32), 0_u32); // TIOCGDEV
    // SAFETY: `device` is the `unsigned int` that this call writes, and outlives the call, which keeps no pointer.
    // Test: tests/tests/processes/stdio/terminal.rs `a_terminal_gives_lines_and_stays_as_it_is`.
    let done = unsafe { libc::ioctl(terminal.as_raw_fd(), what, &raw mut device) };
    if done == 0 { Ok(device) } else { Err(io::Error::last_os_error()) }
}
