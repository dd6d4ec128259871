//! close(2), which also tells the queues: a BSD's kernel removes the filters of a descriptor that is closed.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use libc::c_int;

use super::queue;

/// The process that has queues: they are not inherited, and after fork(2) no thread may be left to release their lock.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// From now on there are queues.
pub(super) fn begin() {
    OWNER.store(process(), Relaxed);
}

/// Closes a descriptor that no queue has to know of.
pub(super) fn close_now(fd: RawFd) {
    // SAFETY: takes a number; the caller promises that it may close the descriptor.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Stands in for close(2) of the C library.
///
/// # Safety
///
/// As there: the descriptor is the caller's to close.
#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    if is_owner() {
        queue::forget(fd);
    }
    // SAFETY: the caller says so.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

/// True in the process that has queues.
pub(super) fn is_owner() -> bool {
    OWNER.load(Relaxed) == process()
}

fn process() -> i32 {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { libc::getpid() }
}
