//! `OpenOptions`: those of the standard library, and what they say, as they cannot be asked for it.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::File;
use crate::sim::disk::{self, Wanted};

#[derive(Clone)]
pub(in crate::fs) struct OpenOptions {
    real: fs::OpenOptions,
    /// `None` if nobody knows what `real` says.
    wanted: Option<Wanted>,
}

pub(in crate::fs) fn adopt_options(options: fs::OpenOptions) -> OpenOptions {
    OpenOptions { real: options, wanted: None }
}

impl OpenOptions {
    pub(in crate::fs) fn new() -> Self {
        Self { real: fs::OpenOptions::new(), wanted: Some(Wanted::default()) }
    }

    pub(in crate::fs) fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let Some(disk) = disk::here() else { return self.real.open(path).map(File::Real) };
        let Some(wanted) = &self.wanted else {
            let text = "options of the standard library cannot be read in a simulation: use mini::fs::OpenOptions::new";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        };
        disk.open(path.as_ref(), wanted).map(File::Simulated)
    }

    fn set(&mut self, set: impl FnOnce(&mut Wanted)) -> &mut Self {
        self.wanted.as_mut().map(set);
        self
    }

    pub(in crate::fs) fn read(&mut self, read: bool) -> &mut Self {
        self.real.read(read);
        self.set(|wanted| wanted.reads = read)
    }

    pub(in crate::fs) fn write(&mut self, write: bool) -> &mut Self {
        self.real.write(write);
        self.set(|wanted| wanted.writes = write)
    }

    pub(in crate::fs) fn append(&mut self, append: bool) -> &mut Self {
        self.real.append(append);
        self.set(|wanted| wanted.appends = append)
    }

    pub(in crate::fs) fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.real.truncate(truncate);
        self.set(|wanted| wanted.truncates = truncate)
    }

    pub(in crate::fs) fn create(&mut self, create: bool) -> &mut Self {
        self.real.create(create);
        self.set(|wanted| wanted.creates = create)
    }

    pub(in crate::fs) fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.real.create_new(create_new);
        self.set(|wanted| wanted.creates_new = create_new)
    }
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, mode: u32) -> &mut Self {
        self.real.mode(mode);
        self.set(|wanted| wanted.mode = mode)
    }

    fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.real.custom_flags(flags);
        self.set(|wanted| wanted.flags = flags)
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.real.fmt(f)
    }
}
