//! The I/O traits of other crates for TCP and Unix streams, their halves, and pipes.
//!
//! A file per crate, each behind a feature: `futures`, `hyper`, `tokio`. All of them are the loop of `source` and a
//! `poll_` function around it; nothing is buffered or copied on the way. The impls for standard streams are in `stdio`.
//!
//! Rejected: one wrapper type that speaks all of them (a type more to name, and to unwrap for everything else). hyper's
//! and tokio's traits on top of futures-io's: they lend memory that is not initialised, which would have to be zeroed
//! first.

use std::io;
use std::net::Shutdown;

use crate::source::Source;

#[cfg(any(feature = "hyper", feature = "tokio-io"))]
#[macro_use]
mod polled;

#[cfg(feature = "futures-io")]
mod futures;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "tokio-io")]
mod tokio;

/// It is no error if the peer is gone already.
fn close(source: &Source) -> io::Result<()> {
    match source.shutdown(Shutdown::Write) {
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}
