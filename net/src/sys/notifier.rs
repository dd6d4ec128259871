//! `Notifier`: makes a wait return.
//!
//! Called by the poller. It is an `EVFILT_USER` event, which needs no fd; where the system has none (NetBSD before 10,
//! OpenBSD before 7.8) it is a pair of sockets, one byte a notification.
//!
//! # Why no notification of a pair is lost
//!
//! If no thread read the bytes, the socket would become full, and a notification would no longer be an event. So the
//! wait that gets the event reads all there is, before it returns. A notification that comes in between is read with
//! the rest: the wait that returns is the one it asked for.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{apply, bsd, change, is_interruption, refusal};
use crate::sys::Token;

pub(super) enum Notifier {
    Event,
    Pair { writer: UnixStream, reader: UnixStream },
}

impl Notifier {
    /// Adds a notifier to `queue`.
    pub(super) fn new(queue: &OwnedFd) -> io::Result<Notifier> {
        let mut user = [change(0, bsd::EVFILT_USER, bsd::EV_ADD | bsd::EV_CLEAR, Token::NOTIFIER)];
        apply(queue, &mut user)?;
        match refusal(&user[0]) {
            None => Ok(Notifier::Event),
            Some(_) => Notifier::pair(queue),
        }
    }

    fn pair(queue: &OwnedFd) -> io::Result<Notifier> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        let mut read = [change(reader.as_raw_fd(), bsd::EVFILT_READ, bsd::EV_ADD | bsd::EV_CLEAR, Token::NOTIFIER)];
        apply(queue, &mut read)?;
        refusal(&read[0]).map_or(Ok(Notifier::Pair { writer, reader }), Err)
    }

    pub(super) fn notify(&self, queue: &OwnedFd) {
        match self {
            Notifier::Event => {
                let mut trigger = change(0, bsd::EVFILT_USER, 0, Token::NOTIFIER);
                trigger.fflags = bsd::NOTE_TRIGGER;
                // The event was added with the queue, so triggering it cannot fail.
                let _ = apply(queue, &mut [trigger]);
            }
            // A full socket is no failure: then a notification is pending.
            Notifier::Pair { writer, .. } => while matches!((&*writer).write(&[1]), Err(e) if is_interruption(&e)) {},
        }
    }

    /// Returns `true` if the bytes of past notifications must be read after a wait has returned the event.
    pub(super) fn must_be_drained(&self) -> bool {
        matches!(self, Notifier::Pair { .. })
    }

    pub(super) fn drain(&self) {
        if let Notifier::Pair { reader, .. } = self {
            let mut bytes = [0; 512];
            // Until a short read, or until there is nothing.
            loop {
                match (&*reader).read(&mut bytes) {
                    Ok(read) if read == bytes.len() => {}
                    Err(e) if is_interruption(&e) => {}
                    _ => break,
                }
            }
        }
    }
}
