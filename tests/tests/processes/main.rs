//! Processes: children, their pipes, the standard streams, and fork(2).

mod child_pipes;
mod fork;
mod process;
mod stdio;
