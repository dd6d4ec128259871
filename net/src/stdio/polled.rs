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

#[derive(Debug)]
pub(super) struct Polled {
    file: File,
    is_socket: bool,
}

impl Polled {
    /// `None` if a thread is needed: for a file, a device other than a terminal, the other end of a pipe, or a stream
    /// that can't be reopened.
    pub(super) fn open(fd: BorrowedFd<'_>, interest: Interest) -> Option<Source<Polled>> {
        let shared = File::from(fd.try_clone_to_owned().ok()?);
        let kind = shared.metadata().ok()?.file_type();
        let polled = if kind.is_socket() {
            Polled { file: shared, is_socket: true }
        } else if kind.is_fifo() && is_open_for(&shared, interest) || kind.is_char_device() && fd.is_terminal() {
            Polled { file: sys::reopen(fd, interest).ok()?, is_socket: false }
        } else {
            return None;
        };
        Some(Source::new(polled, Rule::Whole))
    }

    pub(super) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        if self.is_socket {
            return socket::recv(self.as_fd(), socket::for_kernel(buf), socket::NOW);
        }
        (&self.file).read(buf)
    }

    pub(super) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        if self.is_socket {
            return socket::send_now(self.as_fd(), buf);
        }
        (&self.file).write(buf)
    }
}

/// Whether `pipe` is open for `interest`. To move no bytes succeeds at once if so. Opened anew, the wrong end would work,
/// with bytes that are for others.
fn is_open_for(mut pipe: &File, interest: Interest) -> bool {
    let moved = if interest.is_readable() { pipe.read(&mut []) } else { pipe.write(&[]) };
    moved.is_ok()
}

impl AsFd for Polled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
