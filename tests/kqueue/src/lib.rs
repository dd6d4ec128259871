//! kqueue(2) for Linux, made of epoll(7), so that mini's kqueue backend can be tested where there is no BSD. Tests
//! only.
//!
//! Called by `net/src/sys/kqueue.rs` in place of the C library where mini is built with `--cfg mini_kqueue_shim`; then
//! this file is a module of `mini-net`. By itself it is a crate for its own tests, which say what it promises.
//!
//! What is here follows the manual page of FreeBSD: `EVFILT_READ`, `EVFILT_WRITE` and `EVFILT_USER` with `EV_ADD`,
//! `EV_DELETE`, `EV_ENABLE`, `EV_CLEAR` and `EV_RECEIPT`; other filters and flags are refused with `EINVAL`. A queue is
//! an epoll instance in which two more are nested, one for each direction (`queue`): so data that arrives is no event
//! of the other filter. Closing a descriptor removes its filters, whatever duplicates it has; for that, `close`
//! replaces close(2).
//!
//! Where it differs from a BSD: what epoll(7) refuses (an ordinary file) is refused, with `EPERM`; the errno in
//! `fflags` is always the same, as Linux tells it only once; dup2(2) and close_range(2) remove nothing; the end of a
//! connection may bring an event of each filter. In the kind mode `data` is 0, and `EV_ENABLE` tells nothing.
//!
//! With `MINI_KQUEUE_NO_USER` in the environment there is no `EVFILT_USER`, as on older systems. With
//! `MINI_KQUEUE_MEAN` it is as unkind as the kernels that are named in `mean`.
//!
//! Rejected: one epoll instance for both filters. An edge of one direction reports the other one too, and so would make
//! up for an event that the code under test has lost. Also rejected: to be a dependency of `mini-net`, which then could
//! be published with this crate only.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, unreachable_pub)]

use std::slice;
use std::time::Duration;

use libc::{c_int, c_void, timespec};

mod close;
mod mean;
mod queue;
#[cfg(test)]
mod tests;

/// What to watch, or what has happened: `struct kevent` of FreeBSD.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct kevent {
    /// The descriptor, or any number for `EVFILT_USER`.
    pub ident: usize,
    /// What kind of event.
    pub filter: i16,
    /// What to do, or what is said.
    pub flags: u16,
    /// More of that, by filter.
    pub fflags: u32,
    /// With `EV_ERROR`, the error's number, or 0.
    pub data: i64,
    /// The caller's own.
    pub udata: *mut c_void,
}

/// There is something to read, or a connection to accept.
pub const EVFILT_READ: i16 = -1;
/// There is room to write.
pub const EVFILT_WRITE: i16 = -2;
/// The program has triggered it.
pub const EVFILT_USER: i16 = -11;

/// Adds the event, or changes it.
pub const EV_ADD: u16 = 0x1;
/// Removes the event.
pub const EV_DELETE: u16 = 0x2;
/// Reports the event again, if it was disabled; changes only the caller's own data.
pub const EV_ENABLE: u16 = 0x4;
/// Reports changes alone.
pub const EV_CLEAR: u16 = 0x20;
/// Asks for an answer to this change, with `EV_ERROR` and perhaps no error.
pub const EV_RECEIPT: u16 = 0x40;
/// This is an answer to a change; `data` tells which.
pub const EV_ERROR: u16 = 0x4000;
/// The other end is gone; `fflags` may tell why.
pub const EV_EOF: u16 = 0x8000;

/// In `fflags`: triggers an event of `EVFILT_USER`.
pub const NOTE_TRIGGER: u32 = 0x0100_0000;

/// Makes a queue.
///
/// # Safety
///
/// Always safe; marked as the C library's is.
pub unsafe fn kqueue() -> c_int {
    answer(queue::open())
}

/// Applies the changes, and if none of them has an answer, waits for events.
///
/// # Safety
///
/// `changes` has `changed` entries, there is room for `room` at `events`, and `timeout` is null or a `timespec`.
pub unsafe fn kevent(
    queue: c_int,
    changes: *const kevent,
    changed: c_int,
    events: *mut kevent,
    room: c_int,
    timeout: *const timespec,
) -> c_int {
    let changes = match changed {
        0 => Vec::new(),
        // SAFETY: the caller says so. Copied, as `events` may be the same memory.
        _ => unsafe { slice::from_raw_parts(changes, changed as usize) }.to_vec(),
    };
    // SAFETY: the caller says so.
    let limit = unsafe { timeout.as_ref() }.map(|limit| Duration::new(limit.tv_sec as u64, limit.tv_nsec as u32));
    let told = queue::apply(queue, &changes, room as usize).and_then(|answers| match answers.is_empty() && room > 0 {
        true => queue::wait(queue, room as usize, limit),
        false => Ok(answers),
    });
    answer(told.map(|told| {
        for (at, &event) in told.iter().enumerate() {
            // SAFETY: there is room for `room`, and never more are told.
            let to = unsafe { events.add(at) };
            // SAFETY: as above.
            unsafe { to.write(event) };
        }
        told.len() as c_int
    }))
}

/// As the C library answers: -1 and `errno`.
fn answer(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|error| {
        // SAFETY: this thread's own number.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = error };
        -1
    })
}
