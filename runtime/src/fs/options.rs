//! `OpenOptions`: how a file is opened.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::File;
use super::calls::{self, now};
use super::operation::{About, Operation, Step};

/// Options for opening a file: for reading, for writing, and whether it is created.
///
/// A file that is opened to be read only, on a local file system and with its name cached, is opened without a hop.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::fs::{self, OpenOptions};
///
/// # let path = std::env::temp_dir().join(format!("mini-doc-options-{}", std::process::id()));
/// let mut log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).await?;
/// log.write_all(b"started\n").await?;
/// # fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    options: calls::OpenOptions,
    reads: bool,
    flags: i32,
    /// Something other than reading was asked for.
    is_special: bool,
}

impl OpenOptions {
    /// Options that allow nothing; at least one way of access has to be added.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn new() -> OpenOptions {
        OpenOptions { options: calls::OpenOptions::new(), reads: false, flags: 0, is_special: false }
    }

    /// Sets whether the file can be read.
    ///
    /// # Examples
    ///
    /// See [`File`](super::File).
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.options.read(read);
        self.reads = read;
        self
    }

    /// Sets whether the file can be written to, from its beginning and over its content.
    ///
    /// # Examples
    ///
    /// See [`File`](super::File).
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.special(write).write(write);
        self
    }

    /// Sets whether each write goes to the end that the file has at that moment (`O_APPEND` in open(2)).
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.special(append).append(append);
        self
    }

    /// Sets whether the content is removed. Requires [`write`](OpenOptions::write).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::fs::{self, OpenOptions};
    ///
    /// # let path = std::env::temp_dir().join(format!("mini-doc-truncate-{}", std::process::id()));
    /// fs::write(&path, "what is there").await?;
    /// OpenOptions::new().write(true).truncate(true).open(&path).await?;
    /// assert_eq!(fs::metadata(&path).await?.len(), 0);
    /// # fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.special(truncate).truncate(truncate);
        self
    }

    /// Sets whether the file is created if it does not exist. Requires [`write`](OpenOptions::write) or
    /// [`append`](OpenOptions::append).
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.special(create).create(create);
        self
    }

    /// Sets whether the file must be created, and must not exist before (`O_EXCL` in open(2)). A link counts as
    /// existing.
    ///
    /// # Examples
    ///
    /// See [`File::create_new`](super::File::create_new).
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.special(create_new).create_new(create_new);
        self
    }

    /// Sets the permissions of a file that is created, less those in the process's umask; 0o666 by default.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.options.mode(mode);
        self
    }

    /// Sets further flags for open(2). The access mode (`O_ACCMODE`) in them is ignored. Replaces flags that were set
    /// before.
    ///
    /// With `O_NONBLOCK` the open of a fifo does not wait until its other end is open: use it for paths that others
    /// choose. With this flag an ordinary file is still opened without a hop; with any other flag it takes one.
    ///
    /// `O_DIRECT` is not supported: it requires aligned memory (open(2)), and data pass through memory that is not
    /// aligned.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use libc::O_NONBLOCK;
    ///
    /// let file = mini::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open("Cargo.toml").await?;
    /// assert!(file.metadata().await?.is_file()); // no fifo, no device
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.options.custom_flags(flags);
        self.flags = flags;
        self
    }

    /// Opens the file at `path`. It is closed when a program is executed (`O_CLOEXEC`).
    ///
    /// Opening a fifo waits for its other end, in a thread of the blocking pool;
    /// [`custom_flags`](OpenOptions::custom_flags) has the way around.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2), and `InvalidInput` for options that contradict each other.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on: a file may be created without being open anywhere.
    #[track_caller]
    pub fn open<P: AsRef<Path>>(&self, path: P) -> Operation<File, P> {
        self.open_as("mini::fs::OpenOptions::open", path.as_ref()).keeping(path)
    }

    #[track_caller]
    pub(super) fn open_as(&self, call: &'static str, path: &Path) -> Operation<File> {
        let OpenOptions { options, reads, flags, is_special } = self.clone();
        Operation::first(About::new(call, path), move |about| {
            if reads
                && !is_special
                && let Some(file) = now::open_with(&about.path, flags)
            {
                mini_context::spend_calls(2); // statx(2), and close(2) in the end
                return Step::Done(Ok(File::new(file, &about.path, true)));
            }
            Step::hop(move |about| {
                let file = options.open(&about.path)?;
                now::learn(&file);
                Ok(File::new(file, &about.path, false))
            })
        })
    }

    fn special(&mut self, is_wanted: bool) -> &mut calls::OpenOptions {
        self.is_special |= is_wanted;
        &mut self.options
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

/// Takes over the options as they are; mini can't see what they ask for, so opening takes a hop.
impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> OpenOptions {
        OpenOptions { options: calls::adopt_options(options), reads: false, flags: 0, is_special: true }
    }
}
