//! `Polled`: a standard stream that never blocks, though other processes share it and need it to block.
//!
//! Called by `stdio`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;

use crate::ready::Interest;
use crate::source::{Rule, Source};
use crate::sys::{self, socket};
use crate::unfilled::{Unfilled, read_into, recv_now_into};

#[derive(Debug)]
pub(super) struct Polled {
    file: File,
    is_socket: bool,
}

impl Polled {
    /// `None` if a thread is needed: for a file, a device other than a terminal, the other end of a pipe, or a stream
    /// that can't be reopened, or would be another one.
    pub(super) fn open(fd: BorrowedFd<'_>, interest: Interest) -> Option<Source<Polled>> {
        Polled::try_open(fd, interest).ok().flatten().map(|polled| Source::new(polled, Rule::Whole))
    }

    fn try_open(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<Option<Polled>> {
        let shared = File::from(fd.try_clone_to_owned()?);
        let kind = shared.metadata()?.file_type();
        Ok(if kind.is_socket() {
            Some(Polled { file: shared, is_socket: true })
        } else if kind.is_fifo() && is_open_for(&shared, interest) {
            Some(Polled { file: sys::reopen(fd, interest)?, is_socket: false })
        } else if kind.is_char_device() && fd.is_terminal() {
            Some(Polled { file: sys::reopen_terminal(fd, interest)?, is_socket: false })
        } else {
            None
        })
    }

    pub(super) fn read(&self, buf: &mut impl Unfilled) -> io::Result<usize> {
        if self.is_socket { recv_now_into(self, buf) } else { read_into(self, buf) }
    }

    pub(super) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        if self.is_socket {
            return socket::send_now(self.as_fd(), buf);
        }
        (&self.file).write(buf)
    }
}

/// Returns `true` if `pipe` is open for `interest`. To move no bytes succeeds at once if so. Opened anew, the wrong end
/// would work, with bytes that are for others.
fn is_open_for(mut pipe: &File, interest: Interest) -> bool {
    let moved = if interest.is_readable() { pipe.read(&mut []) } else { pipe.write(&[]) };
    moved.is_ok()
}

impl AsFd for Polled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
