//! Calls that need no wait. A simulation has none of them, as each call takes virtual time.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use mini_context::sim::is_simulated;
use mini_net::Unfilled;

use super::File;
use crate::fs::sys::{self, Links};

pub(in crate::fs) fn open(path: &Path) -> Option<(File, u64)> {
    if is_simulated() { None } else { sys::open(path).map(|(file, size)| (File::Real(file), size)) }
}

pub(in crate::fs) fn open_with(path: &Path, flags: i32) -> Option<File> {
    if is_simulated() { None } else { sys::open_with(path, flags).map(File::Real) }
}

pub(in crate::fs) fn metadata(path: &Path, links: Links) -> Option<io::Result<Metadata>> {
    if is_simulated() { None } else { sys::metadata(path, links) }
}

pub(in crate::fs) fn metadata_of(file: &File) -> Option<io::Result<Metadata>> {
    sys::metadata_of(file.real()?)
}

pub(in crate::fs) fn read(file: &File, buf: &mut impl Unfilled) -> Option<usize> {
    sys::read(file.real()?, buf)
}

pub(in crate::fs) fn read_to_end(file: &File, content: &mut Vec<u8>) -> bool {
    file.real().is_some_and(|file| sys::read_to_end(file, content))
}

pub(in crate::fs) fn learn(file: &File) {
    if let Some(file) = file.real() {
        sys::learn(file);
    }
}
