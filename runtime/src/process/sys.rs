//! The operating system's part: a file descriptor that reports the end of a child, if the system has one, and pipes
//! that do not block.
//!
//! Called by `watch` and `pipe`. Both rungs have one shape, which the block at the end checks.

use std::io;
use std::os::fd::BorrowedFd;

mod nonblocking;

#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#[path = "sys/pidfd.rs"]
mod backend;
// Android has pidfds, but its system call filter may kill a process that uses them.
#[cfg(any(mini_kqueue_shim, not(target_os = "linux")))]
#[path = "sys/none.rs"]
mod backend;

pub(super) use backend::Pidfd;
pub(super) use nonblocking::set_nonblocking;

const _: () = {
    let _: fn(u32) -> io::Result<Pidfd> = Pidfd::open;
    let _: fn(&Pidfd) -> io::Result<()> = Pidfd::kill;
    let _: fn(&Pidfd) -> BorrowedFd<'_> = <Pidfd as std::os::fd::AsFd>::as_fd;
};
