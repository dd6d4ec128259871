//! The non-blocking calls on sockets, with the readiness that each leaves.
//!
//! Every call that a future repeats after a wait is here: futures know no descriptor, and a socket that is something
//! else than a descriptor would begin here. The calls on pipes are in `channel`; `sys` has those that make sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use socket2::{MaybeUninitSlice, SockAddr};

use super::{Left, Rule, Source};
use crate::sys::{SHORT_READS_TELL, ancillary, socket};

/// A vectored write of no more bytes than this (the head and the body of a short answer, say) is copied together: a
/// message header and a list of buffers cost the kernel more.
const GATHERED: usize = 512;

fn gather<'a>(bufs: &[IoSlice<'_>], into: &'a mut [u8; GATHERED]) -> &'a [u8] {
    let mut filled = 0;
    for buf in bufs {
        into[filled..filled + buf.len()].copy_from_slice(buf);
        filled += buf.len();
    }
    &into[..filled]
}

/// A read from a stream into an empty buffer: recv(2) would wait for data, where read(2) does not.
const NOTHING_ASKED: (usize, Left) = (0, Left::Perhaps);

impl Source {
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }

    /// Initialises as many bytes of `buf` as it returns.
    pub(crate) fn recv_into(&self, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Left)> {
        if buf.is_empty() && self.is_stream() {
            return Ok(NOTHING_ASKED);
        }
        let asked = buf.len();
        if self.rule == Rule::StreamWithAncillary {
            return self.recv_parts(&mut [MaybeUninitSlice::new(buf)], asked);
        }
        let received = socket::recv(self.io.as_fd(), buf, 0)?;
        Ok((received, self.left_to_read(received, asked)))
    }

    pub(crate) fn recv_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Left)> {
        let empty = socket::count_empty(bufs);
        let bufs = &mut bufs[empty..];
        let asked = socket::total(bufs.iter().map(|b| &**b));
        if asked == 0 && self.is_stream() {
            return Ok(NOTHING_ASKED);
        }
        self.recv_parts(socket::slices_for_kernel(bufs), asked)
    }

    fn recv_parts(&self, bufs: &mut [MaybeUninitSlice<'_>], asked: usize) -> io::Result<(usize, Left)> {
        let (received, _, cut) = socket::recv_message(self.io.as_fd(), bufs, &mut [], 0)?;
        let left = if cut { Left::Perhaps } else { self.left_to_read(received, asked) };
        Ok((received, left))
    }

    fn left_to_read(&self, received: usize, asked: usize) -> Left {
        let left = self.left(received, asked);
        if SHORT_READS_TELL { left } else { Left::Perhaps }
    }

    /// Looks without taking, so there is as much left as before.
    pub(crate) fn peek(&self, buf: &mut [u8]) -> io::Result<(usize, Left)> {
        let received = socket::recv(self.io.as_fd(), socket::for_kernel(buf), socket::PEEK)?;
        Ok((received, Left::Perhaps))
    }

    pub(crate) fn recv_from(&self, buf: &mut [u8], flags: libc::c_int) -> io::Result<(usize, SockAddr)> {
        let (received, from) = socket::recv_from(self.io.as_fd(), buf, flags)?;
        mini_context::spend_bytes(received);
        Ok((received, from))
    }

    pub(crate) fn send(&self, buf: &[u8]) -> io::Result<(usize, Left)> {
        let sent = socket::send(self.io.as_fd(), buf)?;
        Ok((sent, self.left(sent, buf.len())))
    }

    pub(crate) fn send_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<(usize, Left)> {
        let bufs = &bufs[socket::count_empty(bufs)..];
        let bufs = &bufs[..bufs.len().min(socket::MAX_SLICES)];
        let asked = socket::total(bufs.iter().map(|b| &**b));
        let sent = match bufs {
            [one] => socket::send(self.io.as_fd(), one)?,
            _ if asked <= GATHERED => socket::send(self.io.as_fd(), gather(bufs, &mut [0; GATHERED]))?,
            _ => socket::send_vectored(self.io.as_fd(), bufs)?,
        };
        Ok((sent, self.left(sent, asked)))
    }

    pub(crate) fn send_to(&self, buf: &[u8], to: &SockAddr) -> io::Result<(usize, Left)> {
        let sent = socket::send_to(self.io.as_fd(), buf, to)?;
        mini_context::spend_bytes(sent);
        Ok((sent, Left::Perhaps))
    }

    pub(crate) fn send_fds(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<(usize, Left)> {
        let sent = ancillary::send_fds(self.io.as_fd(), buf, fds)?;
        Ok((sent, self.left(sent, buf.len())))
    }

    /// The end of a message's descriptors ends the read, so a short read means nothing.
    pub(crate) fn recv_fds(&self, buf: &mut [u8], max: usize) -> io::Result<((usize, Vec<OwnedFd>), Left)> {
        if buf.is_empty() && self.is_stream() {
            return Ok(((0, Vec::new()), Left::Perhaps));
        }
        Ok((ancillary::recv_fds(self.io.as_fd(), buf, max)?, Left::Perhaps))
    }

    pub(crate) fn accept(&self) -> io::Result<((OwnedFd, SockAddr), Left)> {
        Ok((socket::accept(self.io.as_fd())?, Left::Perhaps))
    }

    /// Returns `Ok` if a connect that was begun has ended, or its error if it failed.
    pub(crate) fn connected(&self) -> io::Result<((), Left)> {
        Ok((socket::connected(self.io.as_fd())?, Left::Perhaps))
    }

    /// Ends the writing once: on FreeBSD and NetBSD a second shutdown(2) of a TCP socket ends the reading too, if the
    /// peer's system has acknowledged the first.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut has_ended = self.alone();
        if how == Shutdown::Write && *has_ended {
            return Ok(());
        }
        socket::shutdown(self.io.as_fd(), how)?;
        *has_ended |= how != Shutdown::Read;
        Ok(())
    }
}
