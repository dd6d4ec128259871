//! File descriptors that travel with a message: `SCM_RIGHTS` in unix(7) and cmsg(3).
//!
//! Called by `source`. The message carries a list of entries in the kernel's layout, each a head (`cmsghdr`), a gap,
//! its data and another gap. It is written and read here as bytes, checked against their length, without a pointer into
//! them.
//!
//! The hard part is to lose no descriptor: each number that the kernel has put into a list is an open file of this
//! process. So a list is read to its end and all of it owned before anything is judged.
//!
//! Rejected: the pointer macros of cmsg(3): a dozen unsafe steps, which trust each length that they find.

#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_uint, cmsghdr};

use super::flavour::{CLOSE_ON_EXEC, close_on_exec};
use super::socket;

/// The most that Linux sends with one message (`SCM_MAX_FD` in unix(7)); others take no more.
pub(crate) const MAX_FDS: usize = 253;

/// Enough for that many, with a head of 16 bytes, and for data that socket options add (credentials, say), which comes
/// first.
const ROOM: usize = 1056 + 512;

/// A descriptor of the sender's process, which comes with each message where SO_PASSPIDFD is set (Linux 6.5).
const SCM_PIDFD: Option<i32> = if cfg!(any(target_os = "linux", target_os = "android")) { Some(4) } else { None };

/// The size of one descriptor.
const EACH: usize = size_of::<RawFd>();

/// Sends `buf` with `fds`, of which there are at most `MAX_FDS`.
pub(crate) fn send_fds(fd: BorrowedFd<'_>, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if fds.is_empty() {
        // The BSDs refuse an empty list.
        return socket::send(fd, buf);
    }
    socket::send_message(fd, buf, encode(fds, &mut [0; ROOM]))
}

/// Receives into `buf`, with at most `max` descriptors. If there are more, or some could not be opened here, all are
/// closed.
pub(crate) fn recv_fds(fd: BorrowedFd<'_>, buf: &mut [u8], max: usize) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut room = [0; ROOM];
    let mut bufs = [IoSliceMut::new(buf)];
    let (received, filled, cut) =
        socket::recv_message(fd, socket::slices_for_kernel(&mut bufs), &mut room, CLOSE_ON_EXEC)?;
    let all = decode(&room[..filled.min(ROOM)]).into_iter().map(|(kind, fd)| (kind, own(fd)));
    let fds: Vec<OwnedFd> = all.filter_map(|(kind, fd)| (kind == libc::SCM_RIGHTS).then_some(fd)).collect();
    if cut || fds.len() > max {
        let text =
            "file descriptors of a message were lost: more came than expected, or the process has too many open files";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    for fd in &fds {
        close_on_exec(fd)?;
    }
    Ok((received, fds))
}

/// The list of one entry that holds `fds`, in `room`, which is zero.
fn encode<'a>(fds: &[BorrowedFd<'_>], room: &'a mut [u8; ROOM]) -> &'a [u8] {
    let size = fds.len() * EACH;
    put_head(room, length(size));
    for (to, fd) in room[length(0)..].chunks_exact_mut(EACH).zip(fds) {
        to.copy_from_slice(&fd.as_raw_fd().to_ne_bytes());
    }
    &room[..space(size)]
}

/// The descriptors in a list that the kernel has written, each with the kind of its entry.
fn decode(mut list: &[u8]) -> Vec<(i32, RawFd)> {
    let mut fds = Vec::new();
    while let Some(head) = head_of(list) {
        let told: usize = head.cmsg_len as _;
        let Some(data) = list.get(length(0)..told.min(list.len())) else {
            break;
        };
        let kind = head.cmsg_type;
        if head.cmsg_level == libc::SOL_SOCKET && (kind == libc::SCM_RIGHTS || Some(kind) == SCM_PIDFD) {
            let each = data.chunks_exact(EACH).filter_map(|bytes| bytes.try_into().ok()).map(RawFd::from_ne_bytes);
            // A negative one is an error: of a pidfd that could not be opened.
            fds.extend(each.filter(|&fd| fd >= 0).map(|fd| (kind, fd)));
        }
        list = list.get(space(data.len())..).unwrap_or_default();
    }
    fds
}

fn head_of(list: &[u8]) -> Option<cmsghdr> {
    let bytes = list.get(..size_of::<cmsghdr>())?;
    // SAFETY: `bytes` has as many bytes as are read, and any of them are a valid cmsghdr, which is made of integers.
    // Test: `a_list_is_read_as_it_was_written`.
    Some(unsafe { bytes.as_ptr().cast::<cmsghdr>().read_unaligned() })
}

/// Puts a head for descriptors at the front of `room`, which is zero: a head may have gaps.
fn put_head(room: &mut [u8; ROOM], len: usize) {
    let mut head = head_of(room).expect("larger than a head");
    head.cmsg_len = len as _;
    head.cmsg_level = libc::SOL_SOCKET;
    head.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: `room` is larger than a head, as was just seen, and borrowed exclusively. Test:
    // `a_list_is_read_as_it_was_written`.
    unsafe { room.as_mut_ptr().cast::<cmsghdr>().write_unaligned(head) };
}

fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just opened this descriptor for the message that `recv_fds` took (`decode` gets nothing
    // else), so nobody else owns it. Test: `descriptors_travel_with_the_message`.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The length of an entry with `data` bytes, without the gap at its end.
fn length(data: usize) -> usize {
    // SAFETY: computes with numbers alone. Test: `descriptors_travel_with_the_message`.
    unsafe { libc::CMSG_LEN(data as c_uint) as usize }
}

/// The length of an entry with `data` bytes, with the gap.
fn space(data: usize) -> usize {
    // SAFETY: as above.
    unsafe { libc::CMSG_SPACE(data as c_uint) as usize }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        for count in [1, 2, 3, MAX_FDS] {
            let mut fds = vec![stdin.as_fd(); count];
            fds[count - 1] = stdout.as_fd();
            let mut room = [0; ROOM];
            let list = encode(&fds, &mut room);
            assert_eq!(list.len(), space(count * EACH));
            let wanted: Vec<_> = fds.iter().map(|fd| (libc::SCM_RIGHTS, fd.as_raw_fd())).collect();
            assert_eq!(decode(list), wanted);
            assert_eq!(decode(&[list, list].concat()), [&wanted[..], &wanted].concat());
        }
    }

    /// Impossible lengths are cut to what there is, and never followed.
    #[test]
    fn a_broken_list_is_read_no_further_than_it_goes() {
        let fds = [std::io::stdin(), std::io::stdin(), std::io::stdin()];
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut room = [0; ROOM];
        let whole = encode(&fds, &mut room).to_vec();
        for len in 0..whole.len() {
            assert_eq!(decode(&whole[..len]).len(), len.saturating_sub(length(0)).min(3 * EACH) / EACH);
        }
        for len in [0, 1, length(0) - 1, length(0), usize::MAX] {
            put_head(&mut room, len);
            let read = decode(&room[..whole.len()]);
            assert!(read.len() <= (whole.len() - length(0)) / EACH);
        }
    }
}
