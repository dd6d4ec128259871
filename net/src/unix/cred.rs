//! `UCred`: the process at the other end of a Unix connection.

use std::fmt;

use crate::sys::Peer;

/// The user, the group and the process of a peer; returned by [`peer_cred`](crate::UnixStream::peer_cred).
///
/// # Examples
///
/// See [`peer_cred`](crate::UnixStream::peer_cred).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UCred(pub(super) Peer);

impl UCred {
    /// Returns the id of the effective user.
    ///
    /// # Examples
    ///
    /// See [`peer_cred`](crate::UnixStream::peer_cred).
    pub fn uid(&self) -> u32 {
        self.0.uid
    }

    /// Returns the id of the effective group.
    ///
    /// # Examples
    ///
    /// See [`peer_cred`](crate::UnixStream::peer_cred).
    pub fn gid(&self) -> u32 {
        self.0.gid
    }

    /// Returns the id of the process, or `None` if it has no number here or the system does not report it (Linux and
    /// Android do).
    ///
    /// # Examples
    ///
    /// See [`peer_cred`](crate::UnixStream::peer_cred).
    pub fn pid(&self) -> Option<i32> {
        self.0.pid
    }
}

impl fmt::Debug for UCred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peer { uid, gid, pid } = &self.0;
        f.debug_struct("UCred").field("uid", uid).field("gid", gid).field("pid", pid).finish()
    }
}
