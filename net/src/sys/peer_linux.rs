//! The peer of a Unix connection: `SO_PEERCRED` in unix(7).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Peer;

pub(crate) fn peer(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut told = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (option, to) = (libc::SO_PEERCRED, (&raw mut told).cast());
    // SAFETY: `told` is as large as `len` says and outlives the call, which writes no more than that, and any numbers
    // are a valid ucred. Test: `a_connection_tells_who_is_at_its_other_end`.
    let done = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, to, &mut len) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // 0: a process that has no number here, as it lives in another namespace.
    Ok(Peer { uid: told.uid, gid: told.gid, pid: (told.pid != 0).then_some(told.pid) })
}
