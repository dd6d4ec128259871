//! I/O: descriptors, pipes, copies, buffered readers, waits that are given up, and errors.

mod async_fd;
#[cfg(feature = "sim")]
mod copy;
#[cfg(feature = "sim")]
mod errors;
#[cfg(feature = "sim")]
mod io_traits;
#[cfg(feature = "sim")]
mod lines;
#[cfg(feature = "sim")]
mod pipe;
#[cfg(feature = "sim")]
mod waits;
