//! pidfd_open(2), on Linux since 5.3: a descriptor of one process, readable when the process has ended.
//!
//! Called by number, as older C libraries have no wrappers.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

#[derive(Debug)]
pub(in crate::process) struct Pidfd(OwnedFd);

impl Pidfd {
    /// For a child that has not been reaped: until then no other process has its id.
    pub(in crate::process) fn open(pid: u32) -> io::Result<Pidfd> {
        // SAFETY: takes two numbers and no pointer. Test: tests/tests/processes/process.rs
        // `a_child_ends_with_its_status`.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this fd (with CLOEXEC, as pidfd_open(2) promises), so nobody else owns it.
        // Test: tests/tests/processes/process.rs `a_thousand_children_leave_nothing_behind` finds it closed.
        Ok(Pidfd(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    /// Sends SIGKILL; succeeds also if the process has ended already.
    pub(in crate::process) fn kill(&self) -> io::Result<()> {
        let (fd, no_info) = (self.0.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: `fd` is open while `self` is; a null info is "as kill(2) would fill it in" (pidfd_send_signal(2)).
        // Test: tests/tests/processes/process.rs `a_killed_child_ends_by_the_signal`.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, no_info, 0) };
        match io::Error::last_os_error() {
            e if sent < 0 && e.raw_os_error() != Some(libc::ESRCH) => Err(e),
            _ => Ok(()),
        }
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
