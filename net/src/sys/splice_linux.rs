//! splice(2): bytes that go from a socket to a pipe, and from there to another socket, without being copied.
//!
//! Called by `copy/pipe.rs` alone.
//!
//! Rejected: `SPLICE_F_MORE`. It holds the last part of a message back until more comes, which may be never.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::c_int;

/// Moves at most `len` bytes; one of the two is a pipe. `WouldBlock` if nothing can be moved now.
pub(crate) fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
    let (from, to, flags) = (from.as_raw_fd(), to.as_raw_fd(), libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK);
    // SAFETY: both fds are open, as the borrows prove; the two null pointers are "no offset", as pipes and sockets have
    // none. Test: tests/tests/io/copy.rs `sockets_carry_much_both_ways`.
    let moved = unsafe { libc::splice(from, ptr::null_mut(), to, ptr::null_mut(), len, flags) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Asks for room for `bytes` in a pipe; returns how much there is.
pub(crate) fn widen(pipe: BorrowedFd<'_>, bytes: usize) -> usize {
    let pipe = pipe.as_raw_fd();
    // SAFETY: takes no pointer; the borrow proves that the fd is open. Test: `a_pipe_tells_its_room`.
    let mut room = unsafe { libc::fcntl(pipe, libc::F_SETPIPE_SZ, bytes as c_int) };
    if room < 0 {
        // SAFETY: as above.
        room = unsafe { libc::fcntl(pipe, libc::F_GETPIPE_SZ) };
    }
    usize::try_from(room).unwrap_or(0)
}

/// Returns `true` if splice(2) may be used here: it has no `MSG_NOSIGNAL`, so the process must ignore `SIGPIPE`, as
/// programs that start in Rust's `main` do.
pub(crate) fn can_splice() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer is "change nothing"; the other one has room for the answer. Test:
    // `a_rust_program_may_splice`.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: without an error the kernel has filled it in. Test: as above.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_tells_its_room() {
        let (_reader, writer) = std::io::pipe().unwrap();
        assert_eq!(super::widen(writer.as_fd(), 32 << 10), 32 << 10);
        assert_eq!(super::widen(writer.as_fd(), 1 << 31), 32 << 10, "what was refused changes nothing");
    }

    #[test]
    fn a_rust_program_may_splice() {
        assert!(super::can_splice());
    }
}
