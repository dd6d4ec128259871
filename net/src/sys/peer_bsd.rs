//! The peer of a Unix connection: getpeereid(3), which does not name the process.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Peer;

pub(crate) fn peer(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: both numbers outlive the call, which writes them. Test: `a_connection_tells_who_is_at_its_other_end`.
    let done = unsafe { libc::getpeereid(fd.as_raw_fd(), &mut uid, &mut gid) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid, gid, pid: None })
}
