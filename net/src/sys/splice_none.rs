//! The version for systems without splice(2): bytes are copied through a buffer.

use std::io;
use std::os::fd::BorrowedFd;

pub(crate) fn splice(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: usize) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn widen(_: BorrowedFd<'_>, _: usize) -> usize {
    0
}

pub(crate) fn can_splice() -> bool {
    false
}
