//! What `raw` waits with: epoll(7), or kqueue(2) where that is what the system has. Level-triggered.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;

/// Which sockets are waited for; each has a number.
pub(crate) struct Watch(OwnedFd);

/// Whether a socket is waited for to be read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// At most so many are told at once.
const AT_ONCE: usize = 256;

impl Watch {
    /// The numbers of those that are ready, after a wait for at most `limit`. None after a signal.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> io::Result<Vec<u64>> {
        let limit = limit.map(|limit| Timespec::try_from(limit).map_err(io::Error::other)).transpose()?;
        match self.ready(limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            result => Ok(result?),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use rustix::buffer::spare_capacity;
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

    use super::*;

    impl Watch {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
        }

        /// Waits for a socket from now on, until it is closed.
        pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
            Ok(epoll::add(&self.0, socket, EventData::new_u64(number), EventFlags::IN)?)
        }

        /// Waits for this side of it, and not for the other one.
        pub(crate) fn change(&self, socket: impl AsFd, number: u64, side: Side) -> io::Result<()> {
            let flags = if side == Side::Read { EventFlags::IN } else { EventFlags::OUT };
            Ok(epoll::modify(&self.0, socket, EventData::new_u64(number), flags)?)
        }

        pub(super) fn ready(&self, limit: Option<&Timespec>) -> rustix::io::Result<Vec<u64>> {
            let mut events = Vec::with_capacity(AT_ONCE);
            epoll::wait(&self.0, spare_capacity(&mut events), limit)?;
            Ok(events.iter().map(|event| event.data.u64()).collect())
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::os::fd::AsRawFd;

    use rustix::buffer::spare_capacity;
    use rustix::event::kqueue::{self, Event, EventFilter, EventFlags};

    use super::*;

    impl Watch {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(kqueue::kqueue()?))
        }

        pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
            self.tell(&[of(&socket, number, Side::Read, EventFlags::ADD)])
        }

        pub(crate) fn change(&self, socket: impl AsFd, number: u64, side: Side) -> io::Result<()> {
            let other = if side == Side::Read { Side::Write } else { Side::Read };
            let changes = [(other, EventFlags::DELETE), (side, EventFlags::ADD)];
            self.tell(&changes.map(|(side, flags)| of(&socket, number, side, flags)))
        }

        #[allow(unsafe_code)]
        fn tell(&self, changes: &[Event]) -> io::Result<()> {
            let mut none: [Event; 0] = [];
            // SAFETY: the sockets are open, and a socket that is closed leaves the queue by itself (kqueue(2)).
            // Test: examples/tests/redis.rs.
            unsafe { kqueue::kevent(&self.0, changes, &mut none, Some(Duration::ZERO)) }?;
            Ok(())
        }

        #[allow(unsafe_code)]
        pub(super) fn ready(&self, limit: Option<&Timespec>) -> rustix::io::Result<Vec<u64>> {
            let mut events: Vec<Event> = Vec::with_capacity(AT_ONCE);
            // SAFETY: nothing is changed. Test: examples/tests/redis.rs.
            unsafe { kqueue::kevent_timespec(&self.0, &[], spare_capacity(&mut events), limit) }?;
            Ok(events.iter().map(|event| event.udata() as u64).collect())
        }
    }

    fn of(socket: impl AsFd, number: u64, side: Side, flags: EventFlags) -> Event {
        let fd = socket.as_fd().as_raw_fd();
        let filter = if side == Side::Read { EventFilter::Read(fd) } else { EventFilter::Write(fd) };
        Event::new(filter, flags, number as usize as *mut _)
    }
}
