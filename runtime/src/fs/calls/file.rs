//! `File`: one of the system, or one of a simulated disk.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mini_context::sim::is_simulated;

use super::OpenOptions;
use crate::fs::sys;
use crate::sim::disk::OpenFile;

#[derive(Debug)]
pub(in crate::fs) enum File {
    Real(fs::File),
    Simulated(OpenFile),
}

/// In place of the number of a descriptor that a simulated file does not have.
const NO_NUMBER: RawFd = -1;

/// A file that the standard library has opened.
///
/// # Panics
///
/// In a simulation, where files are those of the disk in memory.
#[track_caller]
pub(in crate::fs) fn adopt(file: fs::File) -> File {
    assert!(
        !is_simulated(),
        "`mini::fs::File::from_std` is not possible in a simulation, whose files are simulated: open the file with \
         `mini::fs`, or use the `std::fs::File` itself"
    );
    File::Real(file)
}

/// The file for the standard library.
///
/// # Panics
///
/// If it is simulated.
#[track_caller]
pub(in crate::fs) fn give_up(file: File) -> fs::File {
    match file {
        File::Real(file) => file,
        File::Simulated(_) => refuse("into_std"),
    }
}

/// The number of the descriptor, to name the file.
pub(in crate::fs) fn number(file: &File) -> RawFd {
    file.real().map_or(NO_NUMBER, AsRawFd::as_raw_fd)
}

/// Whether reads and writes of a file have a position.
pub(in crate::fs) fn is_seekable(file: &File) -> io::Result<bool> {
    match file {
        File::Real(file) => sys::is_seekable(file),
        File::Simulated(file) => file.is_file(),
    }
}

#[cold]
#[track_caller]
fn refuse(call: &str) -> ! {
    panic!("`mini::fs::File::{call}` is not possible in a simulation: a simulated file has no descriptor")
}

impl File {
    pub(super) fn real(&self) -> Option<&fs::File> {
        if let Self::Real(file) = self { Some(file) } else { None }
    }

    pub(in crate::fs) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path)
    }

    pub(in crate::fs) fn metadata(&self) -> io::Result<Metadata> {
        match self {
            Self::Real(file) => file.metadata(),
            Self::Simulated(file) => file.metadata(),
        }
    }

    pub(super) fn permissions(&self) -> io::Result<Permissions> {
        match self {
            Self::Real(file) => file.metadata().map(|metadata| metadata.permissions()),
            Self::Simulated(file) => file.mode().map(Permissions::from_mode),
        }
    }

    pub(in crate::fs) fn set_len(&self, size: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(size),
            Self::Simulated(file) => file.set_length(size),
        }
    }

    pub(in crate::fs) fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_permissions(permissions),
            Self::Simulated(file) => file.set_mode(permissions.mode()),
        }
    }

    pub(in crate::fs) fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_all(),
            Self::Simulated(file) => file.sync(),
        }
    }

    pub(in crate::fs) fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
            Self::Simulated(file) => file.sync(),
        }
    }

    pub(in crate::fs) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Real(file) => file.try_clone().map(Self::Real),
            Self::Simulated(file) => file.duplicate().map(Self::Simulated),
        }
    }
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            File::Real(file) => (&*file).read(buf),
            File::Simulated(file) => file.read(buf),
        }
    }

    fn read_to_end(&mut self, content: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            File::Real(file) => (&*file).read_to_end(content),
            File::Simulated(file) => Simulated(file).read_to_end(content),
        }
    }
}

/// With the methods that `Read` gives to all.
struct Simulated<'a>(&'a OpenFile);

impl Read for Simulated<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            File::Real(file) => (&*file).write(bytes),
            File::Simulated(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            File::Real(file) => (&*file).seek(to),
            File::Simulated(file) => file.seek(to),
        }
    }
}

impl AsFd for File {
    #[track_caller]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Real(file) => file.as_fd(),
            Self::Simulated(_) => refuse("as_fd"),
        }
    }
}
