//! Directories of the system, or of a simulated disk.

use std::ffi::OsString;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, DirEntryExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sim::disk::{self, Disk, Ino, Kind, OpenFile, Wanted};

/// The options for making a directory.
#[derive(Debug)]
pub(in crate::fs) struct DirBuilder {
    is_recursive: bool,
    mode: u32,
}

impl DirBuilder {
    pub(in crate::fs) fn new() -> Self {
        Self { is_recursive: false, mode: 0o777 }
    }

    pub(in crate::fs) fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.is_recursive = recursive;
        self
    }

    pub(in crate::fs) fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let Self { is_recursive, mode } = *self;
        match disk::here() {
            Some(disk) => disk.create_dir(path.as_ref(), mode, is_recursive),
            None => fs::DirBuilder::new().recursive(is_recursive).mode(mode).create(path),
        }
    }
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }
}

/// The entries of a directory.
pub(in crate::fs) enum ReadDir {
    Real(fs::ReadDir),
    Simulated(Entries),
}

pub(in crate::fs) struct Entries {
    path: Arc<Path>,
    dir: Arc<OpenFile>,
    disk: Disk,
    left: std::vec::IntoIter<(OsString, Ino, Kind)>,
}

#[derive(Debug)]
pub(in crate::fs) enum DirEntry {
    Real(fs::DirEntry),
    Simulated { path: Arc<Path>, dir: Arc<OpenFile>, name: OsString, ino: Ino, file_type: FileType },
}

impl ReadDir {
    pub(super) fn of_disk(disk: &Disk, path: &Path) -> io::Result<Self> {
        let wanted = Wanted { reads: true, flags: libc::O_DIRECTORY, ..Wanted::default() };
        let dir = Arc::new(disk.open(path, &wanted)?);
        let left = dir.entries()?.into_iter();
        Ok(Self::Simulated(Entries { path: path.into(), dir, disk: disk.clone(), left }))
    }
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Real(entries) => Some(entries.next()?.map(DirEntry::Real)),
            Self::Simulated(Entries { path, dir, disk, left }) => {
                let (name, ino, kind) = left.next()?;
                let entry =
                    |file_type| DirEntry::Simulated { path: path.clone(), dir: dir.clone(), name, ino, file_type };
                Some(disk.file_type(kind).map(entry))
            }
        }
    }
}

impl DirEntry {
    pub(in crate::fs) fn path(&self) -> PathBuf {
        match self {
            Self::Real(entry) => entry.path(),
            Self::Simulated { path, name, .. } => path.join(name),
        }
    }

    pub(in crate::fs) fn file_name(&self) -> OsString {
        match self {
            Self::Real(entry) => entry.file_name(),
            Self::Simulated { name, .. } => name.clone(),
        }
    }

    pub(in crate::fs) fn file_type(&self) -> io::Result<FileType> {
        match self {
            Self::Real(entry) => entry.file_type(),
            Self::Simulated { file_type, .. } => Ok(*file_type),
        }
    }

    pub(in crate::fs) fn metadata(&self) -> io::Result<Metadata> {
        match self {
            Self::Real(entry) => entry.metadata(),
            Self::Simulated { dir, name, .. } => dir.metadata_at(name),
        }
    }
}

impl DirEntryExt for DirEntry {
    fn ino(&self) -> u64 {
        match self {
            Self::Real(entry) => entry.ino(),
            Self::Simulated { dir, ino, .. } => dir.number_of(*ino),
        }
    }
}
