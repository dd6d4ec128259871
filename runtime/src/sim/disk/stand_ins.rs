//! `StandIns`: nodes of the real file system that are asked for metadata in place of simulated ones.
//!
//! `std::fs::Metadata` can be had from the system only, and is a part of mini's interface. So for a simulated node
//! whose metadata are asked for, something of the same kind, size, permissions and times is made in a directory for
//! temporary files, without content: a file of a terabyte is one gap. It stays until the node is gone, so a program
//! that knows files by their inode numbers (`MetadataExt::ino`) knows these; and all go with the simulation.
//!
//! Rejected: metadata of our own under the feature `sim`. A program that names `std::fs::Metadata` would not compile
//! with the feature any more. Rejected: a file that has no name, such as one of memfd_create(2): it is no directory and
//! no link, and each takes a descriptor.
//!
//! An error of the real file system is none of the simulated disk's, so it says what could not be made, and where.

use std::fs::{self, File, FileTimes, FileType, Metadata, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;
use std::{env, io, iter};

use super::super::interpose::CALENDAR;
use super::node::{Ino, Kind, Node, Told, What};
use super::state::State;

/// The stand-ins of one disk. They are removed together with the disk.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    home: Option<PathBuf>,
    /// Of a file, a directory and a link.
    types: Option<[FileType; 3]>,
}

impl State {
    /// Metadata of a node.
    pub(super) fn metadata(&mut self, ino: Ino) -> io::Result<Metadata> {
        let node = self.nodes.get_mut(&ino).expect("whoever has its number refers to it");
        let (size, Node { mode, modified, names, .. }) = (node.size(), &*node);
        if let Some(told) = &node.told
            && (told.size, told.mode, told.modified, told.names) == (size, *mode, *modified, *names)
        {
            return Ok(told.metadata.clone());
        }
        let path = self.stand_ins.home()?.join(ino.0.to_string());
        let metadata = make(&path, node).map_err(|error| refusal(&path, &format!("of {size} bytes"), &error))?;
        let told = Told { size, mode: *mode, modified: *modified, names: *names, metadata: metadata.clone() };
        node.told = Some(told);
        Ok(metadata)
    }

    /// The type of all nodes of a kind.
    pub(super) fn file_type(&mut self, kind: Kind) -> io::Result<FileType> {
        let [file, dir, link] = self.stand_ins.types()?;
        Ok(match kind {
            Kind::File => file,
            Kind::Dir => dir,
            Kind::Link => link,
        })
    }
}

impl StandIns {
    /// The directory that they are in.
    fn home(&mut self) -> io::Result<&Path> {
        if self.home.is_none() {
            let folders = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
            self.home = Some(make_home(iter::once(env::temp_dir()).chain(folders))?);
        }
        Ok(self.home.as_deref().expect("just set"))
    }

    fn types(&mut self) -> io::Result<[FileType; 3]> {
        if let Some(types) = self.types {
            return Ok(types);
        }
        let home = self.home()?;
        let types = make_types(home).map_err(|error| refusal(home, "for the types of its files", &error))?;
        self.types = Some(types);
        Ok(types)
    }

    /// The node is gone.
    pub(super) fn remove(&mut self, ino: Ino) {
        if let Some(home) = &self.home {
            let path = home.join(ino.0.to_string());
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(path)); // there need not be one
        }
    }
}

/// A directory in the first of `folders` in which one can be made.
fn make_home(folders: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut refusals = Vec::new();
    for folder in folders {
        loop {
            let home = folder.join(format!("mini-sim-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
            match fs::create_dir(&home) {
                Ok(()) => return Ok(home),
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    refusals.push(format!("{}: {error}", folder.display()));
                    break;
                }
            }
        }
    }
    let text = "metadata of simulated files needs a real directory for temporary files, and none is usable";
    Err(io::Error::other(format!("{text}: {}", refusals.join("; "))))
}

/// What is said if the real file system does not do as the simulated one.
fn refusal(path: &Path, what: &str, error: &io::Error) -> io::Error {
    let text = "metadata of simulated files comes from real files, and the system refused one";
    io::Error::other(format!("{text} {what}, {}: {error}", path.display()))
}

fn make_types(home: &Path) -> io::Result<[FileType; 3]> {
    let (file, link) = (home.join("file"), home.join("link"));
    File::create(&file)?;
    match symlink("file", &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let kind = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.file_type());
    Ok([kind(&file)?, kind(home)?, kind(&link)?])
}

/// Makes something of the kind of `node` at `path`, if there is nothing, and lets it look like the node.
fn make(path: &Path, node: &Node) -> io::Result<Metadata> {
    let made = match &node.what {
        What::File(_) => File::create_new(path).map(drop),
        What::Dir(_) => fs::create_dir(path),
        What::Link(target) => symlink(target, path),
    };
    made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    if node.kind() != Kind::Link {
        dress(path, node)?;
    }
    fs::symlink_metadata(path)
}

/// Gives what is at `path` the size, the permissions and the times of `node`.
fn dress(path: &Path, node: &Node) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    let file = OpenOptions::new().read(true).write(!node.is_dir()).open(path)?;
    if !node.is_dir() {
        file.set_len(node.size())?;
    }
    let modified = SystemTime::UNIX_EPOCH + CALENDAR + node.modified;
    file.set_times(FileTimes::new().set_accessed(modified).set_modified(modified))?;
    file.set_permissions(Permissions::from_mode(node.mode))
}

impl Drop for StandIns {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            let _ = fs::remove_dir_all(home);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_that_there_is_takes_them() {
        let missing = PathBuf::from("/nonexistent");
        let home = make_home([missing.clone(), env::temp_dir()].into_iter()).unwrap();
        assert!(home.starts_with(env::temp_dir()) && home.is_dir());
        fs::remove_dir(home).unwrap();
        let error = make_home(iter::once(missing)).unwrap_err();
        assert!(error.kind() == io::ErrorKind::Other && error.to_string().contains("/nonexistent: "), "{error}");
    }
}
