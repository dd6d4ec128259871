//! The functions of `simulated` other than the calls, for builds without simulations.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::panic::Location;

use super::Custody;

/// The address of a host, if it is not the system that knows it.
pub(crate) fn look_up(_: &str) -> Option<io::Result<IpAddr>> {
    None
}

/// Nothing is refused.
pub(crate) fn refuse_simulated(_: BorrowedFd<'_>, _: (&str, &str), _: &str) -> io::Result<()> {
    Ok(())
}

/// Nor is a socket of the system.
pub(crate) fn refuse_real(_: BorrowedFd<'_>, _: (&str, &str)) -> io::Result<()> {
    Ok(())
}

/// No error is one of a simulation.
#[inline]
pub(crate) fn located(error: io::Error, _: (&str, &str), _: &Location<'_>) -> io::Error {
    error
}

/// How many of the sockets in a reactor are none of the system's.
pub(crate) const fn registered() -> usize {
    0
}

/// Tells a simulation that a descriptor is closed.
#[derive(Debug)]
pub(crate) struct Closer;

impl Closer {
    pub(crate) fn new(_: BorrowedFd<'_>, _: Custody) -> Self {
        Self
    }

    /// It is not closed, but goes elsewhere.
    pub(crate) fn keep(self) {}
}
