//! The operations on names: each function is a system call, with its errors.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use mini_context::sim;

use super::changes::Entry;
use super::node::{Dir, Ino, Kind, What};
use super::state::{State, error};
use super::walk::{End, Last, Resolved, check};

/// What is not the owner's to use: there is a umask, and no users.
pub(super) const UMASK: u32 = 0o022;

/// A name that there is.
struct Named {
    dir: Ino,
    name: OsString,
    node: Ino,
    is_slashed: bool,
}

impl State {
    /// mkdir(2)
    pub(super) fn make_dir(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        let (dir, name) = self.free_name(path, true)?;
        let ino = self.add(What::Dir(Dir::within(dir)), mode & !UMASK & 0o1777);
        self.change(vec![Entry::new(dir, name, ino)]);
        Ok(())
    }

    /// A directory and those above it, as far as they are missing.
    pub(super) fn make_dirs(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        match self.make_dir(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
                None => return Err(error),
                Some(above) => self.make_dirs(above, mode)?,
            },
            made => return made.or_else(|error| self.is_dir(path).then_some(()).ok_or(error)),
        }
        self.make_dir(path, mode).or_else(|error| self.is_dir(path).then_some(()).ok_or(error))
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.look_up(path, Last::Follow).is_ok_and(|ino| self.node(ino).is_dir())
    }

    /// symlink(2)
    pub(super) fn make_link(&mut self, target: &Path, path: &Path) -> io::Result<()> {
        check(target)?;
        let (dir, name) = self.free_name(path, false)?;
        let ino = self.add(What::Link(target.into()), 0o777);
        self.change(vec![Entry::new(dir, name, ino)]);
        Ok(())
    }

    /// readlink(2)
    pub(super) fn read_link(&self, path: &Path) -> io::Result<OsString> {
        match &self.node(self.look_up(path, Last::Keep)?).what {
            What::Link(target) => Ok(target.clone()),
            _ => error(libc::EINVAL),
        }
    }

    /// link(2)
    pub(super) fn add_name(&mut self, path: &Path, new: &Path) -> io::Result<()> {
        check(new)?;
        let ino = self.look_up(path, Last::Keep)?;
        let (dir, name) = self.free_name(new, false)?;
        if self.node(ino).is_dir() {
            return error(libc::EPERM);
        }
        self.change(vec![Entry::new(dir, name, ino)]);
        Ok(())
    }

    /// unlink(2)
    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let Named { dir, name, node, is_slashed } = self.named(path, |_| libc::EISDIR)?;
        match (self.node(node).is_dir(), is_slashed) {
            (true, _) => error(libc::EISDIR),
            (false, true) => error(libc::ENOTDIR),
            (false, false) => {
                self.change(vec![Entry::gone(dir, name)]);
                Ok(())
            }
        }
    }

    /// rmdir(2)
    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let refusal = |end: &End| match end {
            End::Dot => libc::EINVAL,
            End::DotDot => libc::ENOTEMPTY,
            _ => libc::EBUSY,
        };
        let Named { dir, name, node, .. } = self.named(path, refusal)?;
        match self.node(node).as_dir() {
            None => error(libc::ENOTDIR),
            Some(removed) if !removed.seen.is_empty() => error(libc::ENOTEMPTY),
            Some(_) => {
                self.change(vec![Entry::gone(dir, name)]);
                Ok(())
            }
        }
    }

    /// A directory with all that is in it; of a link the link alone.
    pub(super) fn remove_tree(&mut self, path: &Path) -> io::Result<()> {
        match self.node(self.look_up(path, Last::Keep)?).kind() {
            Kind::Link => return self.remove_file(path),
            Kind::File => return error(libc::ENOTDIR),
            Kind::Dir => {}
        }
        let mut left = vec![self.look_up(path, Last::Keep)?];
        while let Some(&ino) = left.last() {
            let entry = self.dir(ino).seen.iter().next().map(|(name, &entry)| (name.clone(), entry));
            match entry {
                Some((_, entry)) if self.node(entry).as_dir().is_some_and(|dir| !dir.seen.is_empty()) => {
                    left.push(entry);
                }
                Some((name, _)) => self.change(vec![Entry::gone(ino, name)]),
                None => drop(left.pop()),
            }
        }
        match self.remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()), // the path leads through what is gone
            removed => removed,
        }
    }

    /// rename(2)
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        check(to)?;
        let (from, to) = (self.walk(from, Last::Name)?, self.walk(to, Last::Name)?);
        let (End::Name(old_dir, old_name), End::Name(new_dir, new_name)) = (from.end, to.end) else {
            return error(libc::EBUSY);
        };
        let Some(ino) = from.node else { return error(libc::ENOENT) };
        let is_dir = self.node(ino).is_dir();
        if !is_dir && (from.is_slashed || to.is_slashed) {
            return error(libc::ENOTDIR);
        }
        if self.is_within(new_dir, ino) {
            return error(libc::EINVAL);
        }
        if let Some(replaced) = to.node {
            if replaced == ino {
                return Ok(());
            }
            self.check_replaced(replaced, is_dir, old_dir)?;
        }
        self.change(vec![Entry::gone(old_dir, old_name), Entry::new(new_dir, new_name, ino)]);
        Ok(())
    }

    /// Whether the node that has the new name may lose it to a directory, or to something else.
    fn check_replaced(&self, replaced: Ino, by_dir: bool, old_dir: Ino) -> io::Result<()> {
        if self.is_within(old_dir, replaced) {
            return error(libc::ENOTEMPTY);
        }
        match self.node(replaced).as_dir() {
            None if by_dir => error(libc::ENOTDIR),
            Some(_) if !by_dir => error(libc::EISDIR),
            Some(dir) if !dir.seen.is_empty() => error(libc::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    /// Whether the directory `dir` is `above`, or somewhere in it.
    fn is_within(&self, mut dir: Ino, above: Ino) -> bool {
        while dir != above {
            let parent = self.dir(dir).parent;
            if parent == dir {
                return false;
            }
            dir = parent;
        }
        true
    }

    /// chmod(2)
    pub(super) fn set_mode(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        let ino = self.look_up(path, Last::Follow)?;
        self.node_mut(ino).mode = mode & 0o7777;
        Ok(())
    }

    /// stat(2), as far as it is asked whether there is something.
    pub(super) fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.look_up(path, Last::Follow) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Names in a directory, in an order that is drawn, as it says nothing.
    pub(super) fn entries(&mut self, dir: Ino) -> Vec<(OsString, Ino, Kind)> {
        let entries = self.dir(dir).seen.iter();
        let mut entries: Vec<_> = entries.map(|(name, &ino)| (name.clone(), ino, self.node(ino).kind())).collect();
        for at in (1..entries.len()).rev() {
            entries.swap(at, self.orders.below(at as u64 + 1) as usize);
        }
        entries
    }

    /// The name that a path ends with, and what has it; `refusal` is the error if it ends with none.
    fn named(&self, path: &Path, refusal: impl FnOnce(&End) -> i32) -> io::Result<Named> {
        match self.walk(path, Last::Name)? {
            Resolved { end: End::Name(dir, name), node: Some(node), is_slashed } => {
                Ok(Named { dir, name, node, is_slashed })
            }
            Resolved { end: End::Name(..), .. } => error(libc::ENOENT),
            Resolved { end, .. } => error(refusal(&end)),
        }
    }

    pub(super) fn note_change(&mut self, ino: Ino) {
        self.node_mut(ino).modified = sim::now();
    }
}
