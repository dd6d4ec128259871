//! `Strays`: descriptors of simulated sockets that another thread has closed.
//!
//! The network is its thread's. Another thread leaves the number here before it closes the descriptor, and so before
//! the system can give the number to anything else; the network looks here before every call.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Strays {
    has_some: AtomicBool,
    closed: Mutex<Vec<RawFd>>,
}

impl Strays {
    pub(crate) fn note(&self, fd: RawFd) {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).push(fd);
        // Release, for the Acquire in `has_some`; whoever gets the number from the system comes after both anyway.
        self.has_some.store(true, Release);
    }

    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.has_some.load(Acquire)
    }

    pub(super) fn take(&self) -> Vec<RawFd> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_some.store(false, Release);
        std::mem::take(&mut closed)
    }
}
