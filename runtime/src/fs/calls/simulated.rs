//! Calls with the feature `sim`: to the disk of the simulated host whose task makes the call (`sim/disk.rs`), and
//! outside a simulation to the standard library.
//!
//! Names and behaviour are those of the standard library, which `calls/real.rs` uses directly. Calls that need no wait
//! (`now`) do not exist in a simulation: an operation is a blocking job, which takes virtual time.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::sim::disk::{self, Disk};

mod dir;
mod file;
pub(in crate::fs) mod now;
mod options;

pub(in crate::fs) use dir::{DirBuilder, DirEntry, ReadDir};
pub(in crate::fs) use file::{File, adopt, give_up, is_seekable, number};
pub(in crate::fs) use options::{OpenOptions, adopt_options};

/// Calls a function of the disk in a simulation, and otherwise one of the standard library.
fn call<'a, T>(
    path: &'a impl AsRef<Path>,
    simulated: impl FnOnce(&Disk, &'a Path) -> io::Result<T>,
    real: impl FnOnce(&'a Path) -> io::Result<T>,
) -> io::Result<T> {
    match disk::here() {
        Some(disk) => simulated(&disk, path.as_ref()),
        None => real(path.as_ref()),
    }
}

/// The same with two paths.
fn call_with_two<'a>(
    from: &'a impl AsRef<Path>,
    to: &'a impl AsRef<Path>,
    simulated: impl FnOnce(&Disk, &'a Path, &'a Path) -> io::Result<()>,
    real: impl FnOnce(&'a Path, &'a Path) -> io::Result<()>,
) -> io::Result<()> {
    match disk::here() {
        Some(disk) => simulated(&disk, from.as_ref(), to.as_ref()),
        None => real(from.as_ref(), to.as_ref()),
    }
}

pub(in crate::fs) fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    call(&path, Disk::metadata, fs::metadata)
}

pub(in crate::fs) fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    call(&path, Disk::symlink_metadata, fs::symlink_metadata)
}

pub(in crate::fs) fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    call(&path, Disk::exists, fs::exists)
}

pub(in crate::fs) fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(&path, Disk::canonicalize, fs::canonicalize)
}

pub(in crate::fs) fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(&path, |disk, path| disk.read_link(path).map(PathBuf::from), fs::read_link)
}

pub(in crate::fs) fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    let mode = permissions.mode();
    call(&path, |disk, path| disk.set_mode(path, mode), |path| fs::set_permissions(path, permissions))
}

pub(in crate::fs) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    call(&path, Disk::remove_file, fs::remove_file)
}

pub(in crate::fs) fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().create(path)
}

pub(in crate::fs) fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

pub(in crate::fs) fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    call(&path, Disk::remove_dir, fs::remove_dir)
}

pub(in crate::fs) fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    call(&path, Disk::remove_dir_all, fs::remove_dir_all)
}

pub(in crate::fs) fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    call(&path, ReadDir::of_disk, |path| fs::read_dir(path).map(ReadDir::Real))
}

pub(in crate::fs) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    call_with_two(&from, &to, Disk::rename, fs::rename)
}

pub(in crate::fs) fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    call_with_two(&original, &link, Disk::hard_link, fs::hard_link)
}

pub(in crate::fs) fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    call_with_two(&original, &link, Disk::symlink, std::os::unix::fs::symlink)
}

pub(in crate::fs) fn write(path: impl AsRef<Path>, contents: Vec<u8>) -> io::Result<()> {
    let simulated = |_: &Disk, path: &Path| {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        (&file).write_all(&contents)
    };
    call(&path, simulated, |path| fs::write(path, &contents))
}

pub(in crate::fs) fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    match disk::here() {
        Some(_) => copy_here(from.as_ref(), to.as_ref()),
        None => fs::copy(from, to),
    }
}

fn copy_here(from: &Path, to: &Path) -> io::Result<u64> {
    let from = File::open(from)?;
    if !is_seekable(&from)? {
        let text = "the source path is neither a regular file nor a symlink to a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let permissions = from.permissions()?;
    let mut options = OpenOptions::new();
    let to = options.write(true).create(true).truncate(true).open(to)?;
    to.set_permissions(permissions)?;
    let mut content = Vec::new();
    (&from).read_to_end(&mut content)?;
    (&to).write_all(&content)?;
    Ok(content.len() as u64)
}
