//! `Bell`: makes a wait return.
//!
//! Called by the poller. It is an `EVFILT_USER` event, which needs no fd; where the system has none (NetBSD before 10,
//! OpenBSD before 7.8) it is a pair of sockets, one byte a ring.
//!
//! # Why no ring of a pair is lost
//!
//! If no thread read the bytes, the socket would become full, and a ring would no longer be an event. So the wait that
//! hears the bell reads all there is, before it returns. A ring that comes in between is read with the rest: the wait
//! that returns is the one it asked for.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{apply, bsd, change, is_interruption, refusal};
use crate::sys::Token;

pub(super) enum Bell {
    Event,
    Pair { rope: UnixStream, bell: UnixStream },
}

impl Bell {
    pub(super) fn hang(queue: &OwnedFd) -> io::Result<Bell> {
        let mut user = [change(0, bsd::EVFILT_USER, bsd::EV_ADD | bsd::EV_CLEAR, Token::BELL)];
        apply(queue, &mut user)?;
        match refusal(&user[0]) {
            None => Ok(Bell::Event),
            Some(_) => Bell::pair(queue),
        }
    }

    fn pair(queue: &OwnedFd) -> io::Result<Bell> {
        let (rope, bell) = UnixStream::pair()?;
        rope.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let mut read = [change(bell.as_raw_fd(), bsd::EVFILT_READ, bsd::EV_ADD | bsd::EV_CLEAR, Token::BELL)];
        apply(queue, &mut read)?;
        refusal(&read[0]).map_or(Ok(Bell::Pair { rope, bell }), Err)
    }

    pub(super) fn ring(&self, queue: &OwnedFd) {
        match self {
            Bell::Event => {
                let mut ring = change(0, bsd::EVFILT_USER, 0, Token::BELL);
                ring.fflags = bsd::NOTE_TRIGGER;
                // The bell was added with the queue, so triggering it cannot fail.
                let _ = apply(queue, &mut [ring]);
            }
            // A full socket is no failure: then the bell is ringing.
            Bell::Pair { rope, .. } => while matches!((&*rope).write(&[1]), Err(e) if is_interruption(&e)) {},
        }
    }

    /// Returns `true` if the bell keeps ringing after it has been heard.
    pub(super) fn must_be_stilled(&self) -> bool {
        matches!(self, Bell::Pair { .. })
    }

    pub(super) fn still(&self) {
        if let Bell::Pair { bell, .. } = self {
            let mut rings = [0; 512];
            // Until a short read, or until there is nothing.
            loop {
                match (&*bell).read(&mut rings) {
                    Ok(read) if read == rings.len() => {}
                    Err(e) if is_interruption(&e) => {}
                    _ => break,
                }
            }
        }
    }
}
