//! Child processes in a simulation: none is started.

use std::io;
use std::panic::Location;

use mini_context::sim;

/// An error in a simulation: what a child does is not the seed's. `method` is the one of `Command` that was called.
#[track_caller]
pub(super) fn check_start(method: &str) -> io::Result<()> {
    if !sim::is_simulated() {
        return Ok(());
    }
    let text = format!("`Command::{method}`, called at {}: child processes are not simulated", Location::caller());
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}
