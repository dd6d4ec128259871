//! Without the feature `sim` the file system is the system's, and its calls are those of the standard library.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};

pub(in crate::fs) use std::fs::{
    DirBuilder, DirEntry, File, OpenOptions, ReadDir, canonicalize, copy, create_dir, create_dir_all, exists,
    hard_link, metadata, read_dir, read_link, remove_dir, remove_dir_all, remove_file, rename, set_permissions,
    symlink_metadata, write,
};
pub(in crate::fs) use std::os::unix::fs::symlink;

pub(in crate::fs) use crate::fs::sys::{self as now, is_seekable};

/// A file that the standard library has opened.
pub(in crate::fs) fn adopt(file: fs::File) -> File {
    file
}

/// The file for the standard library.
pub(in crate::fs) fn give_up(file: File) -> fs::File {
    file
}

pub(in crate::fs) fn adopt_options(options: fs::OpenOptions) -> OpenOptions {
    options
}

/// The number of the descriptor, to name the file.
pub(in crate::fs) fn number(file: &File) -> RawFd {
    file.as_raw_fd()
}
