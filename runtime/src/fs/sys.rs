//! Reads and queries of a file system that need no wait.
//!
//! Called, by way of `calls::now`, by `whole`, `names`, `options` and `file` before they hop. This file has the `cfg`
//! ladder; each rung has the same functions, and the block at the end checks that.
//!
//! Rejected: a list of the file systems that are local. It would age; asking each once (`learn`) doesn't.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(mini_kqueue_shim)))]
#[path = "sys/nowait_linux.rs"]
mod backend;
#[cfg(any(mini_kqueue_shim, not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))))]
#[path = "sys/nowait_none.rs"]
mod backend;

pub(super) use backend::{learn, metadata, metadata_of, open, open_with, read, read_to_end};

/// The most that is copied without a hop: about 30 µs.
pub(super) const CHUNK: usize = 256 << 10;

/// The treatment of links: followed to their target, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Keep,
}

/// Whether reads and writes of `file` have a position: it is a regular file or a block device.
pub(super) fn is_seekable(file: &File) -> io::Result<bool> {
    let kind = file.metadata()?.file_type();
    Ok(kind.is_file() || kind.is_block_device())
}

/// The shape that every rung must have.
const _: () = {
    // The open file with its size, if it is an ordinary one and opening it takes no wait.
    let _: fn(&Path) -> Option<(File, u64)> = open;
    // The file opened to be read with these flags, if they are known to keep it from waiting.
    let _: fn(&Path, i32) -> Option<File> = open_with;
    let _: fn(&Path, Links) -> Option<io::Result<Metadata>> = metadata;
    let _: fn(&File) -> Option<io::Result<Metadata>> = metadata_of;
    // Reads at the file's position and moves it; `None` if that might wait, or fails.
    let _: fn(&File, &mut &'static mut [u8]) -> Option<usize> = read;
    // Fills a file's content in up to the capacity and tells whether that was all.
    let _: fn(&File, &mut Vec<u8>) -> bool = read_to_end;
    // To be called with each file that was opened for reading in a thread that may block.
    let _: fn(&File) = learn;
};
