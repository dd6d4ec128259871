//! `Node`: a file, a directory or a link, apart from its names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::time::Duration;

use super::stored::Stored;

/// The number of a node; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ino(pub(super) u64);

/// The directory `/`.
pub(super) const ROOT: Ino = Ino(1);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) what: What,
    /// Its permissions.
    pub(super) mode: u32,
    /// When it was changed last, in virtual time.
    pub(super) modified: Duration,
    /// Who refers to it: names that are seen, names on the disk, changes of names that wait for a sync, open files.
    pub(super) references: u32,
    /// Those of them that are open files, and names that are seen.
    pub(super) opens: u32,
    pub(super) names: u32,
    /// What was told of it last.
    pub(super) told: Option<Told>,
}

#[derive(Debug)]
pub(super) enum What {
    File(Stored),
    Dir(Dir),
    Link(OsString),
}

#[derive(Debug)]
pub(super) struct Dir {
    /// As programs see it.
    pub(super) seen: BTreeMap<OsString, Ino>,
    pub(super) on_disk: BTreeMap<OsString, Ino>,
    /// What `..` is.
    pub(super) parent: Ino,
}

/// Metadata, and of what.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) modified: Duration,
    pub(super) names: u32,
    pub(super) metadata: Metadata,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
}

impl Node {
    pub(super) fn new(what: What, mode: u32, now: Duration) -> Self {
        Self { what, mode: mode & 0o7777, modified: now, references: 0, opens: 0, names: 0, told: None }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.what {
            What::File(_) => Kind::File,
            What::Dir(_) => Kind::Dir,
            What::Link(_) => Kind::Link,
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind() == Kind::Dir
    }

    pub(super) fn as_dir(&self) -> Option<&Dir> {
        if let What::Dir(dir) = &self.what { Some(dir) } else { None }
    }

    pub(super) fn as_dir_mut(&mut self) -> Option<&mut Dir> {
        if let What::Dir(dir) = &mut self.what { Some(dir) } else { None }
    }

    pub(super) fn as_file(&self) -> Option<&Stored> {
        if let What::File(file) = &self.what { Some(file) } else { None }
    }

    pub(super) fn as_file_mut(&mut self) -> Option<&mut Stored> {
        if let What::File(file) = &mut self.what { Some(file) } else { None }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.what {
            What::File(file) => file.seen().length(),
            What::Dir(_) => 0,
            What::Link(target) => target.len() as u64,
        }
    }
}

impl Dir {
    pub(super) fn within(parent: Ino) -> Self {
        Self { seen: BTreeMap::new(), on_disk: BTreeMap::new(), parent }
    }
}
