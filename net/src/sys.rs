//! The operating system in one shape: a poller, its events, raw socket calls.
//!
//! Called by `reactor` (the poller) and by `source` and the sockets (the calls). This file holds the crate's only `cfg`
//! ladder; each rung picks files that have the same functions, and the block at its end checks that they do.
//!
//! With `--cfg mini_kqueue_shim` Linux counts as a BSD as far as possible: the kqueue backend runs on a stand-in for
//! kqueue(2), which is in tests/kqueue, and the other files are those without system-specific calls.
//!
//! Rejected: a `Poller` trait. A build has one implementation, and a trait would add generics to every signature above.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::SocketAddr;
use std::time::Duration;

use socket2::Socket;

use crate::ready::{Interest, Ready};

pub(crate) mod ancillary;
pub(crate) mod fork;
pub(crate) mod limit;
#[cfg(not(feature = "sim"))]
mod not_simulated;
#[cfg(not(feature = "sim"))]
pub(crate) mod socket;

// In a simulation a socket of TCP or UDP is one of `sim`; every other is the system's.
#[cfg(feature = "sim")]
#[path = "sys/simulated.rs"]
pub(crate) mod socket;
#[cfg(feature = "sim")]
#[path = "sys/socket.rs"]
mod system;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
#[path = "sys/alarm_linux.rs"]
mod alarm;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
#[path = "sys/epoll.rs"]
mod backend;
#[cfg(any(
    mini_kqueue_shim,
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "netbsd",
    target_os = "openbsd"
))]
#[path = "sys/kqueue.rs"]
mod backend;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
mod claims;

// The functions that the kqueue backend calls: the C library's, or a stand-in on Linux.
#[cfg(mini_kqueue_shim)]
#[path = "../../tests/kqueue/src/lib.rs"]
mod bsd;
#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "netbsd",
    target_os = "openbsd"
))]
use libc as bsd;

#[cfg(target_vendor = "apple")]
#[path = "sys/apple.rs"]
mod flavour;
#[cfg(not(target_vendor = "apple"))]
#[path = "sys/accept4.rs"]
mod flavour;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "sys/extras_linux.rs"]
mod extras;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "sys/extras_none.rs"]
mod extras;

#[cfg(not(any(
    target_os = "openbsd",
    target_os = "ios",
    target_os = "tvos",
    target_os = "watchos",
    target_os = "visionos"
)))]
pub(crate) mod options;
#[cfg(any(
    target_os = "openbsd",
    target_os = "ios",
    target_os = "tvos",
    target_os = "watchos",
    target_os = "visionos"
))]
#[path = "sys/options_none.rs"]
pub(crate) mod options;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "sys/peer_linux.rs"]
mod peer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "sys/peer_bsd.rs"]
mod peer;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "sys/reopen_linux.rs"]
mod reopen;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "sys/reopen_none.rs"]
mod reopen;

#[cfg(all(feature = "futures-io", any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
#[path = "sys/splice_linux.rs"]
mod splice;
#[cfg(all(feature = "futures-io", any(mini_kqueue_shim, not(any(target_os = "linux", target_os = "android")))))]
#[path = "sys/splice_none.rs"]
mod splice;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
#[path = "sys/thread_linux.rs"]
mod thread;
#[cfg(any(mini_kqueue_shim, not(any(target_os = "linux", target_os = "android"))))]
#[path = "sys/thread_none.rs"]
mod thread;

#[cfg(target_os = "android")]
use std::os::android::net as linux_net;
#[cfg(target_os = "linux")]
use std::os::linux::net as linux_net;

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "netbsd",
    target_os = "openbsd"
)))]
compile_error!("mini-net needs epoll(7) or kqueue(2): Linux, Android, Apple systems or a BSD");

#[cfg(not(feature = "sim"))]
pub(crate) use backend::Poller;
pub(crate) use backend::{Events, SHORT_READS_TELL};
pub(crate) use extras::{abstract_address, abstract_name, bind_device, device, quickack, set_quickack};
#[cfg(not(feature = "sim"))]
pub(crate) use not_simulated::{Closer, located, look_up, refuse_real, refuse_simulated, registered};
pub(crate) use peer::peer;
pub(crate) use reopen::{reopen, reopen_terminal};
#[cfg(all(feature = "futures-io", feature = "sim"))]
pub(crate) use socket::can_splice;
#[cfg(feature = "sim")]
pub(crate) use socket::{Closer, Poller, located, look_up, refuse_real, refuse_simulated, registered};
#[cfg(all(feature = "futures-io", not(feature = "sim")))]
pub(crate) use splice::can_splice;
#[cfg(feature = "futures-io")]
pub(crate) use splice::{splice, widen};
pub(crate) use thread::{
    cpu_time, heavy_fence, is_runnable, light_fence, own_thread, pin, set_timer_slack, signal, system_call,
    system_call_name,
};

/// `true` if waits may use epoll_pwait2(2). Android's system call filter kills a process that tries it, and Miri ends.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
const FINE_WAITS: bool = cfg!(all(target_os = "linux", not(miri)));

/// The width of a kevent's `filter` and `flags`. Read by the kqueue backend alone.
#[cfg(target_os = "netbsd")]
mod width {
    pub(super) type Filter = u32;
    pub(super) type Flags = u32;
}
#[cfg(any(mini_kqueue_shim, not(any(target_os = "netbsd", target_os = "linux", target_os = "android"))))]
mod width {
    pub(super) type Filter = i16;
    pub(super) type Flags = u16;
}

/// Names one registration: a place in the reactor's table, and which of its successive tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Token {
    /// The notifier's token; the table never gives out this index.
    const NOTIFIER: Token = Token { index: u32::MAX, generation: u32::MAX };

    /// The alarm's token; the table never gives out this index either.
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
    const ALARM: Token = Token { index: u32::MAX, generation: u32::MAX - 1 };

    fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    fn from_u64(word: u64) -> Token {
        Token { index: word as u32, generation: (word >> 32) as u32 }
    }
}

/// Names the side that closes a registered fd. If the user does, the number may belong to another fd by the time of the
/// removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Custody {
    /// This crate, after it has removed the fd.
    Ours,
    /// The user, at any time.
    Users,
}

/// One thing the kernel said about a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) token: Token,
    pub(crate) ready: Ready,
}

/// The user, the group and, if it is known, the process of a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pid: Option<i32>,
}

/// The shape that every rung must have.
const _: () = {
    let _: fn() -> io::Result<Poller> = Poller::new;
    let _: fn(&Poller, BorrowedFd<'_>, Token, Custody) -> io::Result<Ready> = Poller::add;
    let _: fn(&Poller, RawFd, Token, Custody) = Poller::remove;
    let _: fn(&Poller, &mut Events, Option<Duration>) -> io::Result<()> = Poller::wait;
    let _: fn(&Poller) = Poller::notify;
    let _: fn(&Poller) -> BorrowedFd<'_> = Poller::as_fd;
    let _: fn(usize) -> Events = Events::with_capacity;
    let _: fn(&Events, usize) -> Option<Event> = Events::get;
    let _: fn(&Events) -> usize = Events::len;
    let _: fn(BorrowedFd<'_>) -> io::Result<(OwnedFd, socket2::SockAddr)> = flavour::accept;
    let _: fn(&[u8]) -> io::Result<SocketAddr> = abstract_address;
    let _: fn(&SocketAddr) -> Option<&[u8]> = abstract_name;
    let _: fn(&Socket) -> io::Result<Option<Vec<u8>>> = device;
    let _: fn(&Socket, Option<&[u8]>) -> io::Result<()> = bind_device;
    let _: [fn(&Socket) -> io::Result<u32>; 2] = [options::tclass, options::keepalive_retries];
    let _: [fn(&Socket) -> io::Result<Duration>; 2] = [options::keepalive_time, options::keepalive_interval];
    let _: fn(BorrowedFd<'_>) -> io::Result<Peer> = peer;
    let _: [fn(BorrowedFd<'_>, Interest) -> io::Result<File>; 2] = [reopen, reopen_terminal];
    let _: fn(u64) -> Option<u64> = set_timer_slack;
    let _: fn() -> i32 = own_thread;
    let _: fn(i32) -> Option<Duration> = cpu_time;
    let _: fn(i32) -> Option<bool> = is_runnable;
    let _: fn(usize) -> io::Result<bool> = pin;
};

#[cfg(feature = "futures-io")]
const _: () = {
    let _: fn(BorrowedFd<'_>, BorrowedFd<'_>, usize) -> io::Result<usize> = splice;
    let _: fn(BorrowedFd<'_>, usize) -> usize = widen;
    let _: fn() -> bool = can_splice;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_kernel() {
        for (index, generation) in [(0, 0), (7, 0), (0, 9), (u32::MAX - 1, u32::MAX)] {
            let token = Token { index, generation };
            assert_eq!(Token::from_u64(token.to_u64()), token);
            assert_ne!(token, Token::NOTIFIER);
        }
    }
}
