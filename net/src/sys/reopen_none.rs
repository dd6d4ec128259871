//! The version for systems where a file descriptor can't be opened once more: opening `/dev/fd/0` only duplicates it.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use crate::ready::Interest;

pub(crate) use reopen as reopen_terminal;

pub(crate) fn reopen(_: BorrowedFd<'_>, _: Interest) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
