//! The mean mode: habits of kernels that FreeBSD's manual page does not mention.
//!
//! With `MINI_KQUEUE_MEAN` in the environment the stand-in and shutdown(2) behave like the kernels in brackets:
//!
//! - A second `shutdown` of a TCP socket for writing ends the reading too (FreeBSD and NetBSD, once the peer's system
//!   has acknowledged the first; here at once).
//! - After a reset `shutdown` fails with `EINVAL` (NetBSD).
//! - After a `shutdown` for writing, events of `EVFILT_WRITE` have `EV_EOF` (all).
//! - When the reader of a pipe goes, the write end gets an event of `EVFILT_READ` with `EV_EOF` and none of
//!   `EVFILT_WRITE`. Adding `EVFILT_WRITE` fails with `EBADF` from then on (NetBSD).
//! - A UDP socket gets one event of `EVFILT_WRITE`, because a receiver makes no room for a sender (all).
//! - `EV_ENABLE` reports the state again (all).
//! - An event keeps the flags of its filter, and `data` holds a number (all).

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use libc::c_int;

use super::{EV_ADD, EV_RECEIPT, close, kevent, queue};

/// The sockets that this process has shut down for writing.
static ENDED: Mutex<Option<BTreeSet<RawFd>>> = Mutex::new(None);

/// The value of `data`: no error's number, and no count of anything here.
const JUNK: i64 = 0x5eed_5eed;

/// TCP states in which the end is sent and the peer's has not come.
const WAIT_FOR_PEER: [u8; 2] = [4, 5];

pub(super) fn is_on() -> bool {
    static IS_ON: LazyLock<bool> = LazyLock::new(|| std::env::var_os("MINI_KQUEUE_MEAN").is_some());
    *IS_ON
}

/// The event as a kernel writes it.
pub(super) fn written(event: kevent) -> kevent {
    if !is_on() {
        return event;
    }
    kevent { flags: event.flags | EV_ADD | EV_RECEIPT, data: JUNK, ..event }
}

/// Whether the socket was shut down for writing.
pub(super) fn has_ended(fd: RawFd) -> bool {
    is_on() && ended().as_ref().is_some_and(|all| all.contains(&fd))
}

/// The number is another file's next.
pub(super) fn forget(fd: RawFd) {
    if let Some(all) = ended().as_mut() {
        all.remove(&fd);
    }
}

/// Whether sending never fills the socket.
pub(super) fn is_udp(fd: RawFd) -> bool {
    let is_inet = [libc::AF_INET, libc::AF_INET6].map(Some).contains(&option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN));
    is_inet && option(fd, libc::SOL_SOCKET, libc::SO_TYPE) == Some(libc::SOCK_DGRAM)
}

/// Stands in for shutdown(2) of the C library.
///
/// # Safety
///
/// Always safe; marked as the C library's is.
#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    // SAFETY: takes numbers.
    let call = |how: c_int| unsafe { libc::syscall(libc::SYS_shutdown, fd, how) as c_int };
    if !is_on() {
        return call(how);
    }
    let is_again = how == libc::SHUT_WR && tcp_state(fd).is_some_and(|state| WAIT_FOR_PEER.contains(&state));
    let done = queue::check(call(if is_again { libc::SHUT_RDWR } else { how }));
    if done.is_ok() && how != libc::SHUT_RD && close::is_owner() {
        ended().get_or_insert_default().insert(fd);
    }
    let is_reset = |error| error == libc::ENOTCONN && tcp_state(fd).is_some();
    super::answer(done.map_err(|error| if is_reset(error) { libc::EINVAL } else { error }))
}

/// `None` if it is no TCP socket.
fn tcp_state(fd: RawFd) -> Option<u8> {
    let mut state = 0u8;
    let mut len = 1;
    // SAFETY: one byte, the first of what TCP_INFO tells, and its length; both outlive the call.
    let got = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut state).cast(), &mut len) };
    (got == 0).then_some(state)
}

fn option(fd: RawFd, level: c_int, name: c_int) -> Option<c_int> {
    let (mut value, mut len) = (0, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: a number and its length, which outlive the call.
    let got = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut len) };
    (got == 0).then_some(value)
}

fn ended() -> MutexGuard<'static, Option<BTreeSet<RawFd>>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}
