//! From a path to a node, as Linux walks (path_resolution(7)).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::node::{Ino, ROOT, What};
use super::state::{State, error};

/// The most bytes of a name, and of a path with its last zero.
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

/// The most links on a way.
const LINKS_MAX: usize = 40;

/// The treatment of a link as the last part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// The link is followed.
    Follow,
    /// It is followed only if there is a slash behind it.
    Keep,
    /// It is not followed: the name itself is meant, to be made, moved or removed.
    Name,
    /// For a file that may be created: the link is followed, or not. There may be no slash behind the last part, nor
    /// behind what the link points to.
    Create { follows: bool },
}

/// The result of walking a path.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) end: End,
    /// What is there.
    pub(super) node: Option<Ino>,
    /// There is a slash behind the last part, so only a directory can be meant.
    pub(super) is_slashed: bool,
}

/// The last part of a path.
#[derive(Debug)]
pub(super) enum End {
    /// A name in a directory.
    Name(Ino, OsString),
    Root,
    Dot,
    DotDot,
}

impl Last {
    fn follows(self, is_slashed: bool) -> bool {
        match self {
            Self::Follow => true,
            Self::Keep => is_slashed,
            Self::Name => false,
            Self::Create { follows } => follows,
        }
    }
}

impl State {
    /// # Errors
    ///
    /// Returns the errors of path_resolution(7): a directory on the way is missing or is none.
    pub(super) fn walk(&self, path: &Path, last: Last) -> io::Result<Resolved> {
        let path = check(path)?;
        let (mut left, mut links) = (Vec::new(), 0);
        push_parts(&mut left, path);
        let (mut at, mut end, mut is_slashed) = (ROOT, End::Root, path.ends_with(b"/"));
        while let Some(part) = left.pop() {
            if part == b"." || part == b".." {
                (at, end) = if part == b"." { (at, End::Dot) } else { (self.dir(at).parent, End::DotDot) };
                continue;
            }
            if part.len() > NAME_MAX {
                return error(libc::ENAMETOOLONG);
            }
            let (name, is_last) = (OsStr::from_bytes(part), left.is_empty());
            if is_last && is_slashed && matches!(last, Last::Create { .. }) {
                return error(libc::EISDIR);
            }
            let node = self.dir(at).seen.get(name).copied();
            let follows = !is_last || last.follows(is_slashed);
            match node.map(|ino| (ino, &self.node(ino).what)) {
                Some((_, What::Link(target))) if follows => {
                    links += 1;
                    if links > LINKS_MAX {
                        return error(libc::ELOOP);
                    }
                    let target = target.as_bytes();
                    is_slashed |= is_last && target.ends_with(b"/");
                    if target.starts_with(b"/") {
                        (at, end) = (ROOT, End::Root);
                    }
                    push_parts(&mut left, target);
                }
                _ if is_last => return Ok(Resolved { end: End::Name(at, name.to_owned()), node, is_slashed }),
                Some((ino, What::Dir(_))) => at = ino,
                Some(_) => return error(libc::ENOTDIR),
                None => return error(libc::ENOENT),
            }
        }
        Ok(Resolved { end, node: Some(at), is_slashed })
    }

    /// The node that a path leads to.
    pub(super) fn look_up(&self, path: &Path, last: Last) -> io::Result<Ino> {
        let Resolved { node, is_slashed, .. } = self.walk(path, last)?;
        match node {
            None => error(libc::ENOENT),
            Some(ino) if is_slashed && !self.node(ino).is_dir() => error(libc::ENOTDIR),
            Some(ino) => Ok(ino),
        }
    }

    /// A directory and a name in it that is free.
    pub(super) fn free_name(&self, path: &Path, is_for_dir: bool) -> io::Result<(Ino, OsString)> {
        match self.walk(path, Last::Name)? {
            Resolved { node: Some(_), .. } => error(libc::EEXIST),
            Resolved { is_slashed: true, .. } if !is_for_dir => error(libc::ENOENT),
            Resolved { end: End::Name(dir, name), .. } => Ok((dir, name)),
            Resolved { end: End::Root | End::Dot | End::DotDot, .. } => error(libc::EEXIST),
        }
    }

    /// The path of what a path leads to, without links.
    pub(super) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        let (mut at, mut names) = (self.look_up(path, Last::Follow)?, Vec::new());
        if let Resolved { end: End::Name(dir, name), .. } = self.walk(path, Last::Follow)? {
            names.push(name);
            at = dir;
        }
        while at != ROOT {
            let parent = self.dir(at).parent;
            let name = self.dir(parent).seen.iter().find(|&(_, &entry)| entry == at);
            names.push(name.expect("a directory is in its parent").0.clone());
            at = parent;
        }
        Ok(Path::new("/").join(names.into_iter().rev().collect::<PathBuf>()))
    }
}

/// The parts of `path`, to be popped from the first to the last.
fn push_parts<'a>(left: &mut Vec<&'a [u8]>, path: &'a [u8]) {
    left.extend(path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).rev());
}

/// The bytes of a path, if it can be one.
pub(super) fn check(path: &Path) -> io::Result<&[u8]> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "file name contained an unexpected NUL byte"));
    }
    match bytes.len() {
        0 => error(libc::ENOENT),
        PATH_MAX.. => error(libc::ENAMETOOLONG),
        _ => Ok(bytes),
    }
}
