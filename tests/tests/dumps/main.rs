//! Dumps, warnings and traces: what a program is told about its tasks.

mod dump;
mod hangs;
mod last_wait;
mod stack;
mod trace;
#[cfg(feature = "sim")]
mod warnings;
