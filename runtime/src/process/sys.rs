//! The operating system's part: a file descriptor that reports the end of a child, if the system has one.
//!
//! Called by `watch`.

#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#[path = "sys/pidfd.rs"]
mod backend;
// Android has pidfds, but its system call filter may kill a process that uses them.
#[cfg(any(mini_kqueue_shim, not(target_os = "linux")))]
#[path = "sys/none.rs"]
mod backend;

pub(super) use backend::Pidfd;
