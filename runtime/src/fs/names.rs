//! Names in the file system, and what is known of the files behind them.
//!
//! Metadata of what is cached on a local file system come without a hop; everything else here takes one.

use std::fs::{Metadata, Permissions};
use std::path::{Path, PathBuf};

use super::calls::{self as fs, now};
use super::operation::{About, Operation, Step};
use super::sys::Links;

/// Returns the metadata of the file or directory at `path`: its size, its times, its permissions. Links are followed
/// (stat(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let metadata = mini::fs::metadata("Cargo.toml").await?;
/// assert!(metadata.is_file() && metadata.len() > 0);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of stat(2): `NotFound` even for a link to nothing.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn metadata<P: AsRef<Path>>(path: P) -> Operation<Metadata, P> {
    let about = About::new("mini::fs::metadata", path.as_ref());
    Operation::first(about, |about| match now::metadata(&about.path, Links::Follow) {
        Some(result) => Step::Done(result),
        None => Step::hop(|about| fs::metadata(&about.path)),
    })
    .keeping(path)
}

/// Returns the metadata of a link itself, not of the file that it points to (lstat(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-lstat-{}", std::process::id()));
/// # let link = dir;
/// mini::fs::symlink("nowhere", &link).await?;
/// assert!(mini::fs::symlink_metadata(&link).await?.is_symlink());
/// # mini::fs::remove_file(&link).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of lstat(2).
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn symlink_metadata<P: AsRef<Path>>(path: P) -> Operation<Metadata, P> {
    let about = About::new("mini::fs::symlink_metadata", path.as_ref());
    Operation::first(about, |about| match now::metadata(&about.path, Links::Keep) {
        Some(result) => Step::Done(result),
        None => Step::hop(|about| fs::symlink_metadata(&about.path)),
    })
    .keeping(path)
}

/// Returns `true` if `path` exists. A link to nothing does not exist.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// assert!(mini::fs::try_exists("Cargo.toml").await?);
/// assert!(!mini::fs::try_exists("no such file").await?);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// If a directory on the way may not be searched: then it is not known.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn try_exists<P: AsRef<Path>>(path: P) -> Operation<bool, P> {
    let about = About::new("mini::fs::try_exists", path.as_ref());
    Operation::first(about, |about| match now::metadata(&about.path, Links::Follow) {
        Some(Ok(_)) => Step::Done(Ok(true)),
        _ => Step::hop(|about| fs::exists(&about.path)),
    })
    .keeping(path)
}

/// Returns the path without links, dots and doubled slashes, from the root on (realpath(3)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let path = mini::fs::canonicalize("./Cargo.toml").await?;
/// assert!(path.is_absolute() && path.ends_with("Cargo.toml"));
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of realpath(3): all of the path must exist.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn canonicalize<P: AsRef<Path>>(path: P) -> Operation<PathBuf, P> {
    let about = About::new("mini::fs::canonicalize", path.as_ref());
    Operation::hop(about, |about| fs::canonicalize(&about.path)).keeping(path)
}

/// Returns the target of the link at `path` (readlink(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-readlink-{}", std::process::id()));
/// # let link = dir;
/// mini::fs::symlink("nowhere", &link).await?;
/// assert_eq!(mini::fs::read_link(&link).await?.to_str(), Some("nowhere"));
/// # mini::fs::remove_file(&link).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of readlink(2), and `InvalidInput` if it is not a link.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn read_link<P: AsRef<Path>>(path: P) -> Operation<PathBuf, P> {
    let about = About::new("mini::fs::read_link", path.as_ref());
    Operation::hop(about, |about| fs::read_link(&about.path)).keeping(path)
}

/// Gives a file another name. Another file that has this name loses it (rename(2)).
///
/// The change is atomic for every observer, so the safe way to replace a file is to write a new one and rename it.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-rename-{}", std::process::id()));
/// # let (new, old) = (dir.with_extension("new"), dir);
/// mini::fs::write(&new, "content").await?;
/// mini::fs::rename(&new, &old).await?;
/// assert!(!mini::fs::try_exists(&new).await?);
/// # mini::fs::remove_file(&old).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of rename(2), and `CrossesDevices` if the two are on different file systems.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn rename<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> Operation<(), (P, Q)> {
    let new = to.as_ref().to_owned();
    let about = About::new("mini::fs::rename", from.as_ref());
    Operation::hop(about, move |about| fs::rename(&about.path, new)).keeping((from, to))
}

/// Gives a file a second name, `link`, on the same file system (link(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-hardlink-{}", std::process::id()));
/// # let (file, link) = (dir.with_extension("file"), dir);
/// mini::fs::write(&file, "content").await?;
/// mini::fs::hard_link(&file, &link).await?;
/// mini::fs::remove_file(&file).await?;
/// assert_eq!(mini::fs::read(&link).await?, b"content");
/// # mini::fs::remove_file(&link).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of link(2), and `AlreadyExists` if `link` exists.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn hard_link<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> Operation<(), (P, Q)> {
    let new = link.as_ref().to_owned();
    let about = About::new("mini::fs::hard_link", original.as_ref());
    Operation::hop(about, move |about| fs::hard_link(&about.path, new)).keeping((original, link))
}

/// Makes a symbolic link at `link` that points to `original`, which need not be there (symlink(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-symlink-{}", std::process::id()));
/// # let link = dir;
/// mini::fs::symlink("nowhere", &link).await?;
/// assert!(!mini::fs::try_exists(&link).await?);
/// # mini::fs::remove_file(&link).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of symlink(2), and `AlreadyExists` if `link` exists.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn symlink<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> Operation<(), (P, Q)> {
    let new = link.as_ref().to_owned();
    let about = About::new("mini::fs::symlink", original.as_ref());
    Operation::hop(about, move |about| fs::symlink(&about.path, new)).keeping((original, link))
}

/// Removes a name of a file (unlink(2)).
///
/// The file itself is removed when its last name is gone and it is no longer open anywhere.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-unlink-{}", std::process::id()));
/// # let path = dir;
/// mini::fs::write(&path, "").await?;
/// mini::fs::remove_file(&path).await?;
/// assert!(!mini::fs::try_exists(&path).await?);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of unlink(2). For a directory use [`remove_dir`](super::remove_dir).
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn remove_file<P: AsRef<Path>>(path: P) -> Operation<(), P> {
    let about = About::new("mini::fs::remove_file", path.as_ref());
    Operation::hop(about, |about| fs::remove_file(&about.path)).keeping(path)
}

/// Sets the permissions of a file or directory (chmod(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-chmod-{}", std::process::id()));
/// # let path = dir;
/// mini::fs::write(&path, "").await?;
/// let mut permissions = mini::fs::metadata(&path).await?.permissions();
/// permissions.set_readonly(true);
/// mini::fs::set_permissions(&path, permissions).await?;
/// assert!(mini::fs::metadata(&path).await?.permissions().readonly());
/// # mini::fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of chmod(2).
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn set_permissions<P: AsRef<Path>>(path: P, permissions: Permissions) -> Operation<(), P> {
    let about = About::new("mini::fs::set_permissions", path.as_ref());
    Operation::hop(about, move |about| fs::set_permissions(&about.path, permissions)).keeping(path)
}
