//! The operating system's part: a file descriptor that reports the end of a child, if the system has one, and pipes
//! that do not block.
//!
//! Called by `watch` and `pipe`.

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
