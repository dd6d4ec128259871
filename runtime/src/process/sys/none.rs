//! For systems without pidfds: there never is one.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub(in crate::process) struct Pidfd(Infallible);

impl Pidfd {
    pub(in crate::process) fn open(_pid: u32) -> io::Result<Pidfd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in crate::process) fn kill(&self) -> io::Result<()> {
        match self.0 {}
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}
