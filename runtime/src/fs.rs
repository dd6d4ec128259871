//! Files and directories, under tokio's names.
//!
//! The kernel has no readiness for files: a call waits for the disk, in a thread. So an operation here is one job on
//! the blocking pool, with all its calls in it: [`read`] is open, fstat, read and close in one hop to the pool and
//! back. An operation that need not wait takes no hop: on Linux (x86-64, aarch64 and other 64-bit systems with glibc)
//! the content and the metadata of files whose name and pages are cached come at once, without the risk of a wait.
//!
//! In a simulation (feature `sim`) all of it works on a disk in memory, and each operation takes virtual time.
//!
//! # Examples
//!
//! ```
//! # mini::block_on(async {
//! use mini::fs::{self, File};
//!
//! # let path = std::env::temp_dir().join(format!("mini-doc-fs-{}", std::process::id()));
//! let mut file = File::create(&path).await?;
//! file.write_all(b"one\n").await?; // the kernel has it now, whatever happens to `file`
//! drop(file);
//! assert_eq!(fs::read_to_string(&path).await?, "one\n");
//! fs::remove_file(&path).await?;
//! # Ok::<(), std::io::Error>(()) }).unwrap();
//! ```
//!
//! # Errors
//!
//! Errors are those of the system, as in the standard library: they do not name the path. After the runtime has shut
//! down, every operation that needs a hop returns an error.
//!
//! # Panics
//!
//! An operation that is awaited outside a mini runtime panics, with the line it was made at.
//!
//! # Cancel safety
//!
//! An operation begins when it is first polled, and then *continues*: a job that has been handed to the pool is carried
//! out even if its future is dropped, unless the runtime shuts down before a thread has begun the job. Then only the
//! file system shows whether a name was created or a file written. A dropped read loses nothing; [`File`] documents
//! who gets its bytes.

// The rest is for those who change this. `operation` is the hop that all share, `calls` what is called in it, `sys`
// what is done without one; `names`, `dirs` and `whole` are operations on paths; `options`, `file` and `read_dir` have
// something open.
//
// The hard part is to know beforehand that a call will not wait: see `sys/nowait_linux.rs`; and to keep bytes and
// position of a file right when futures are dropped: see `file/stream.rs`.
//
// Rejected: io_uring. One ring per runtime is a lock, one per worker a second thing to wait on; what misses the cache
// goes to threads of the kernel's own anyway, and many containers forbid it.

// In a simulation calls go to a disk in memory.
#[cfg_attr(feature = "sim", path = "fs/calls/simulated.rs")]
#[cfg_attr(not(feature = "sim"), path = "fs/calls/real.rs")]
mod calls;
mod dirs;
mod file;
mod job;
mod names;
mod operation;
mod options;
mod read_dir;
mod sys;
mod whole;

pub use dirs::{DirBuilder, create_dir, create_dir_all, remove_dir, remove_dir_all};
pub use file::{File, Flush, Read, ReadExact, ReadToEnd, Seek, Write, WriteAll};
pub use names::{
    canonicalize, hard_link, metadata, read_link, remove_file, rename, set_permissions, symlink, symlink_metadata,
    try_exists,
};
pub use operation::Operation;
pub use options::OpenOptions;
pub use read_dir::{DirEntry, NextEntry, ReadDir, read_dir};
#[doc(no_inline)]
pub use std::fs::{FileType, Metadata, Permissions};
pub use whole::{copy, read, read_to_string, write};
