//! `O_NONBLOCK`, which the standard library can set on sockets only.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

/// Sets or clears `O_NONBLOCK` (fcntl(2)): for this end of a pipe, in every process that has it.
pub(in crate::process) fn set_nonblocking(fd: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    // SAFETY: F_GETFL takes no argument, and the borrow keeps the fd open.
    // Test: tests/tests/processes/child_pipes.rs `more_than_a_pipe_holds_goes_in_and_out`.
    let before = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    let after = if nonblocking { before | libc::O_NONBLOCK } else { before & !libc::O_NONBLOCK };
    if after != before {
        // SAFETY: F_SETFL takes a number, and the borrow keeps the fd open.
        // Test: tests/tests/processes/child_pipes.rs `the_output_of_one_child_is_the_input_of_another`.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, after) })?;
    }
    Ok(())
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
