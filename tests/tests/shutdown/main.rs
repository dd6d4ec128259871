//! Shutdown: how runtimes and programs end, and what they leave.

mod grace;
mod program;
mod report;
mod shutdown;
mod trees;
