//! The standard streams in a simulation: what is written goes out as it is written, and nothing can be read.
//!
//! Called by `stdio`. The thread of the simulation writes all of a buffer by itself and blocks as long as that takes,
//! as `println!` does: a wait for the reader of a pipe, or for another thread, would be no part of the seed.

use std::fs::File;
use std::io;
use std::task::{Context, Poll};

use mini_context::sim;

use super::thread::{unless_closed, write_all};
use crate::source::CallSite;

/// An error in a simulation: what comes in is not the seed's.
pub(super) fn check_read(call_site: &CallSite) -> io::Result<()> {
    if !sim::is_simulated() {
        return Ok(());
    }
    let CallSite { site, location } = call_site;
    let call = format!("`{}::{}`, called at {location}", site.owner, site.method);
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("{call}: standard input is not simulated")))
}

/// Writes all of `buf` to what `file` returns, in a simulation; `None` outside.
pub(super) fn poll_write<L>(
    cx: &mut Context<'_>,
    leaf: *const L,
    file: fn() -> io::Result<File>,
    buf: &[u8],
) -> Option<Poll<io::Result<usize>>> {
    let write = || {
        unless_closed(file().and_then(|file| write_all(&file, buf)), ())?;
        mini_context::spend_call();
        Ok(buf.len())
    };
    sim::is_simulated().then(|| mini_context::check_budget(cx, leaf).map(|()| write()))
}
