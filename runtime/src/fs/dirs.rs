//! Making and removing directories.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::calls as fs;
use super::operation::{About, Operation};

/// Makes directories, with options.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use std::os::unix::fs::PermissionsExt;
/// use mini::fs::{self, DirBuilder};
///
/// # let base = std::env::temp_dir().join(format!("mini-doc-builder-{}", std::process::id()));
/// let path = base.join("private/keys");
/// DirBuilder::new().recursive(true).mode(0o700).create(&path).await?;
/// assert_eq!(fs::metadata(&path).await?.permissions().mode() & 0o777, 0o700);
/// # fs::remove_dir_all(&base).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct DirBuilder {
    is_recursive: bool,
    mode: Option<u32>,
}

impl DirBuilder {
    /// Creates a builder of one directory that all users may use, except those that the process's umask excludes.
    ///
    /// # Examples
    ///
    /// See [`DirBuilder`].
    pub fn new() -> DirBuilder {
        DirBuilder::default()
    }

    /// Sets whether to make missing parent directories as well, and to accept a directory that exists already.
    ///
    /// # Examples
    ///
    /// See [`DirBuilder`].
    pub fn recursive(&mut self, recursive: bool) -> &mut DirBuilder {
        self.is_recursive = recursive;
        self
    }

    /// Sets the permissions of new directories, less those in the umask; 0o777 by default.
    ///
    /// # Examples
    ///
    /// See [`DirBuilder`].
    pub fn mode(&mut self, mode: u32) -> &mut DirBuilder {
        self.mode = Some(mode);
        self
    }

    /// Makes the directory.
    ///
    /// # Examples
    ///
    /// See [`DirBuilder`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create_dir`], or [`create_dir_all`] if it is recursive.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn create<P: AsRef<Path>>(&self, path: P) -> Operation<(), P> {
        let about = About::new("mini::fs::DirBuilder::create", path.as_ref());
        let DirBuilder { is_recursive, mode } = *self;
        Operation::hop(about, move |about| {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(is_recursive);
            if let Some(mode) = mode {
                builder.mode(mode);
            }
            builder.create(&about.path)
        })
        .keeping(path)
    }
}

/// Makes a directory (mkdir(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-mkdir-{}", std::process::id()));
/// mini::fs::create_dir(&dir).await?;
/// assert!(mini::fs::metadata(&dir).await?.is_dir());
/// # mini::fs::remove_dir(&dir).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of mkdir(2): `AlreadyExists` if `path` exists, `NotFound` if its parent does not.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn create_dir<P: AsRef<Path>>(path: P) -> Operation<(), P> {
    let about = About::new("mini::fs::create_dir", path.as_ref());
    Operation::hop(about, |about| fs::create_dir(&about.path)).keeping(path)
}

/// Makes a directory and its missing parents. Directories that exist already, or that others make during the call, are
/// no error.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-mkdirs-{}", std::process::id()));
/// mini::fs::create_dir_all(dir.join("a/b")).await?;
/// mini::fs::create_dir_all(dir.join("a/b")).await?;
/// # mini::fs::remove_dir_all(&dir).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the error of mkdir(2) for the directory that could not be made. Directories made before it stay.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn create_dir_all<P: AsRef<Path>>(path: P) -> Operation<(), P> {
    let about = About::new("mini::fs::create_dir_all", path.as_ref());
    Operation::hop(about, |about| fs::create_dir_all(&about.path)).keeping(path)
}

/// Removes an empty directory (rmdir(2)).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-rmdir-{}", std::process::id()));
/// mini::fs::create_dir(&dir).await?;
/// mini::fs::remove_dir(&dir).await?;
/// assert!(!mini::fs::try_exists(&dir).await?);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of rmdir(2): `DirectoryNotEmpty` if something is in it.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn remove_dir<P: AsRef<Path>>(path: P) -> Operation<(), P> {
    let about = About::new("mini::fs::remove_dir", path.as_ref());
    Operation::hop(about, |about| fs::remove_dir(&about.path)).keeping(path)
}

/// Removes a directory with all that is in it. Links in it are removed, and not followed. **Take care.**
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let dir = std::env::temp_dir().join(format!("mini-doc-rmdirs-{}", std::process::id()));
/// mini::fs::create_dir_all(dir.join("a/b")).await?;
/// mini::fs::remove_dir_all(&dir).await?;
/// assert!(!mini::fs::try_exists(&dir).await?);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of opendir(3), unlink(2) and rmdir(2). Entries that were removed before the failure are gone.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn remove_dir_all<P: AsRef<Path>>(path: P) -> Operation<(), P> {
    let about = About::new("mini::fs::remove_dir_all", path.as_ref());
    Operation::hop(about, |about| fs::remove_dir_all(&about.path)).keeping(path)
}
