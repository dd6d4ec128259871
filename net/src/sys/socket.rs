//! The raw, non-blocking socket calls: the one layer under the readiness logic.
//!
//! Called by `source` (data) and by the sockets (making and connecting). Each function is one system call that returns
//! at once, with `WouldBlock` if it could not be done. In a simulation, calls go through `simulated` first.

#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use libc::c_int;
use socket2::{MaybeUninitSlice, MsgHdr, SockAddr, SockRef, Socket};

use super::flavour::NO_SIGNAL;
pub(crate) use super::flavour::{accept, open, pair};

/// For `recv` and its kin: leave the data where it is.
pub(crate) const PEEK: c_int = libc::MSG_PEEK;

/// For `recv` on a socket that may be a blocking one, as it is shared: do not wait.
pub(crate) const NOW: c_int = libc::MSG_DONTWAIT;

/// What IOV_MAX is on every system here: recvmsg(2) and sendmsg(2) refuse more slices.
pub(crate) const MAX_SLICES: usize = 1024;

pub(crate) fn set_send_buffer_size(socket: &Socket, size: usize) -> io::Result<()> {
    socket.set_send_buffer_size(size)
}

pub(crate) fn set_recv_buffer_size(socket: &Socket, size: usize) -> io::Result<()> {
    socket.set_recv_buffer_size(size)
}

pub(crate) fn bind(fd: BorrowedFd<'_>, to: &SockAddr) -> io::Result<()> {
    SockRef::from(&fd).bind(to)
}

pub(crate) fn listen(fd: BorrowedFd<'_>, backlog: u32) -> io::Result<()> {
    SockRef::from(&fd).listen(i32::try_from(backlog).unwrap_or(i32::MAX))
}

pub(crate) fn local_addr(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    SockRef::from(&fd).local_addr()
}

pub(crate) fn peer_addr(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    SockRef::from(&fd).peer_addr()
}

pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<Option<io::Error>> {
    SockRef::from(&fd).take_error()
}

/// After a reset NetBSD returns `EINVAL`, where the others return `ENOTCONN`.
pub(crate) fn shutdown(fd: BorrowedFd<'_>, how: Shutdown) -> io::Result<()> {
    match SockRef::from(&fd).shutdown(how) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Err(io::Error::from_raw_os_error(libc::ENOTCONN)),
        result => result,
    }
}

/// For a socket of datagrams: from now on it sends to this address, and receives from no other.
pub(crate) fn connect_datagrams(fd: BorrowedFd<'_>, to: &SockAddr) -> io::Result<()> {
    SockRef::from(&fd).connect(to)
}

pub(crate) fn set_linger(fd: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
    SockRef::from(&fd).set_linger(limit)
}

/// Makes a socket one that others may use: of the standard library, or another process.
pub(crate) fn give_away(fd: OwnedFd) -> io::Result<OwnedFd> {
    SockRef::from(&fd).set_nonblocking(false)?;
    Ok(fd)
}

/// Starts to connect. Returns whether that is all; if not, [`connected`] returns the outcome. It may be with
/// `TCP_FASTOPEN_CONNECT` (tcp(7)): the first write connects.
pub(crate) fn connect(socket: &Socket, to: &SockAddr) -> io::Result<bool> {
    let mut is_again = false;
    loop {
        match socket.connect(to).map_err(|e| (e.raw_os_error(), e)) {
            Err((Some(libc::EINPROGRESS | libc::EALREADY), _)) => return Ok(false),
            // A signal leaves it open whether the connect goes on (connect(2), EINTR): asking again starts or finds it.
            Err((Some(libc::EINTR), _)) => is_again = true,
            Err((Some(libc::EISCONN), _)) if is_again => return Ok(true),
            result => return result.map(|()| true).map_err(|(_, e)| e),
        }
    }
}

/// `WouldBlock` while the connection is being made, then its outcome.
pub(crate) fn connected(fd: BorrowedFd<'_>) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    match socket.peer_addr() {
        Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => {
            // Either not yet connected or never going to be; only the latter leaves an error.
            let error = socket.take_error()?;
            Err(error.unwrap_or_else(|| io::ErrorKind::WouldBlock.into()))
        }
        // macOS returns this for a connection that was made and is gone again: reads will tell.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => socket.take_error()?.map_or(Ok(()), Err),
        result => result.map(drop),
    }
}

/// Initialises as many bytes of `buf` as it returns.
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [MaybeUninit<u8>], flags: c_int) -> io::Result<usize> {
    SockRef::from(&fd).recv_with_flags(buf, flags)
}

/// As `recv`, of a pipe or a device, by read(2).
pub(crate) fn read(fd: BorrowedFd<'_>, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    /// macOS refuses 2 GiB and more.
    const MOST: usize = 1 << 30;
    let (start, len) = (buf.as_mut_ptr().cast(), buf.len().min(MOST));
    // SAFETY: `buf` is `len` bytes or longer, and borrowed exclusively; any bytes may be written there.
    // Test: examples/ecosystem/tests/tokio_io.rs `pipes_and_children_carry_bytes`.
    let read = unsafe { libc::read(fd.as_raw_fd(), start, len) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn recv_from(fd: BorrowedFd<'_>, buf: &mut [u8], flags: c_int) -> io::Result<(usize, SockAddr)> {
    SockRef::from(&fd).recv_from_with_flags(for_kernel(buf), flags)
}

/// Reads into several buffers, and ancillary data into `control`. Returns how much of each, and whether ancillary data
/// came for which there was no room. That many bytes are initialised then.
pub(crate) fn recv_message(
    fd: BorrowedFd<'_>,
    bufs: &mut [MaybeUninitSlice<'_>],
    control: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, usize, bool)> {
    // SAFETY: all zeros is a valid msghdr, that of no address, no buffers and no control data;
    // `vectored_calls_move_all_slices` runs it.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = bufs.as_mut_ptr().cast();
    header.msg_iovlen = bufs.len().min(MAX_SLICES) as _;
    if !control.is_empty() {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = control.len() as _;
    }
    // SAFETY: `msg_iov` is `bufs`, whose elements have the layout of iovec (MaybeUninitSlice's guarantee), of which at
    // least `msg_iovlen` exist, and `msg_control` is null or `control`, of that length; the exclusive borrows keep both
    // alive over the call, and any bytes may be written there. `vectored_calls_move_all_slices` runs it, and
    // `descriptors_travel_with_the_message`.
    let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut header, flags) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((received as usize, header.msg_controllen as _, header.msg_flags & libc::MSG_CTRUNC != 0))
}

pub(crate) fn send(fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
    SockRef::from(&fd).send_with_flags(buf, NO_SIGNAL)
}

/// As `send`, on a socket that may be a blocking one.
pub(crate) fn send_now(fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
    SockRef::from(&fd).send_with_flags(buf, NO_SIGNAL | NOW)
}

/// Sends from several buffers, `MAX_SLICES` at most.
pub(crate) fn send_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    SockRef::from(&fd).send_vectored_with_flags(bufs, NO_SIGNAL)
}

/// Sends `buf` with ancillary data, as it is in memory.
pub(crate) fn send_message(fd: BorrowedFd<'_>, buf: &[u8], control: &[u8]) -> io::Result<usize> {
    let bufs = [IoSlice::new(buf)];
    let message = MsgHdr::new().with_buffers(&bufs).with_control(control);
    SockRef::from(&fd).sendmsg(&message, NO_SIGNAL)
}

pub(crate) fn send_to(fd: BorrowedFd<'_>, buf: &[u8], to: &SockAddr) -> io::Result<usize> {
    SockRef::from(&fd).send_to_with_flags(buf, to, NO_SIGNAL)
}

/// How many empty buffers come first. If they were as many as a call takes, it would move nothing, as at the end.
pub(crate) fn count_empty<B: Deref<Target = [u8]>>(bufs: &[B]) -> usize {
    bufs.iter().position(|buf| !buf.is_empty()).unwrap_or(0)
}

/// The sum of the lengths that the calls above use.
pub(crate) fn total<'a>(lengths: impl Iterator<Item = &'a [u8]>) -> usize {
    lengths.take(MAX_SLICES).map(<[u8]>::len).sum()
}

/// Initialised bytes as bytes that need not be, for the functions above.
pub(crate) fn for_kernel(buf: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    let (start, len) = (buf.as_mut_ptr().cast::<MaybeUninit<u8>>(), buf.len());
    // SAFETY: same memory, length and borrow, and MaybeUninit<u8> has the layout of u8. The callers pass it to the
    // kernel alone, which writes nothing but initialised bytes; `every_stream_call_moves_the_bytes` runs it.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

/// As `for_kernel`, of several buffers.
pub(crate) fn slices_for_kernel<'a, 'b>(bufs: &'a mut [IoSliceMut<'b>]) -> &'a mut [MaybeUninitSlice<'b>] {
    let (start, len) = (bufs.as_mut_ptr().cast::<MaybeUninitSlice<'b>>(), bufs.len());
    // SAFETY: same memory, length and borrow, and both types have the layout of iovec (their guarantee). What is
    // written to the buffers comes from the kernel, and so is initialised; `vectored_calls_move_all_slices` runs it.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}
