//! A file's content in one operation: reading, writing, copying.

use std::io::{self, Read};
use std::path::Path;

use super::calls::{self as fs, File, now};
use super::operation::{About, Operation, Step};
use super::sys;

/// Reads the whole content of a file.
///
/// Cached files of up to 256 KiB are read without a hop. Files without a size, as in /proc, and files that grow or
/// shrink during the read are read until their end.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let content = mini::fs::read("Cargo.toml").await?;
/// assert!(content.starts_with(b"[package]"));
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of open(2) and read(2), and an error if there is not enough memory for the content. See also
/// [`fs`](super).
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn read<P: AsRef<Path>>(path: P) -> Operation<Vec<u8>, P> {
    content(About::new("mini::fs::read", path.as_ref()), Ok).keeping(path)
}

/// Reads the whole content of a file as text. Otherwise as [`read`].
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let text = mini::fs::read_to_string("Cargo.toml").await?;
/// assert_eq!(text.lines().next(), Some("[package]"));
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of [`read`], and `InvalidData` if the content is not UTF-8.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
#[track_caller]
pub fn read_to_string<P: AsRef<Path>>(path: P) -> Operation<String, P> {
    let to_text = |content| String::from_utf8(content).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e));
    content(About::new("mini::fs::read_to_string", path.as_ref()), to_text).keeping(path)
}

/// Writes a file: creates it if there is none, otherwise replaces its content by `contents`, of which this makes a
/// copy.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let path = std::env::temp_dir().join(format!("mini-doc-write-{}", std::process::id()));
/// mini::fs::write(&path, "all of it").await?;
/// assert_eq!(mini::fs::read(&path).await?, b"all of it");
/// # mini::fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of open(2) and write(2). The file may then have a part of the content.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn write<P: AsRef<Path>, C: AsRef<[u8]>>(path: P, contents: C) -> Operation<(), P> {
    let contents = contents.as_ref().to_vec();
    let about = About::new("mini::fs::write", path.as_ref());
    Operation::hop(about, move |about| fs::write(&about.path, contents)).keeping(path)
}

/// Copies the content and the permissions of a file to another, which is replaced if it exists.
///
/// Returns the number of bytes. The kernel copies them if it can; see [`std::fs::copy`].
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// # let to = std::env::temp_dir().join(format!("mini-doc-copy-{}", std::process::id()));
/// let bytes = mini::fs::copy("Cargo.toml", &to).await?;
/// assert_eq!(bytes, mini::fs::metadata("Cargo.toml").await?.len());
/// # mini::fs::remove_file(&to).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of open(2), read(2) and write(2), for either file, and `InvalidInput` if `from` is not an
/// ordinary file.
///
/// # Panics
///
/// Outside a mini runtime.
///
/// # Cancel safety
///
/// Goes on.
#[track_caller]
pub fn copy<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> Operation<u64, (P, Q)> {
    let target = to.as_ref().to_owned();
    let about = About::new("mini::fs::copy", from.as_ref());
    Operation::hop(about, move |about| fs::copy(&about.path, target)).keeping((from, to))
}

/// A file's content, given to `finish`.
fn content<T: Send + 'static>(about: About, finish: fn(Vec<u8>) -> io::Result<T>) -> Operation<T> {
    Operation::first(about, move |about| match start(&about.path) {
        Start::Whole(content) => Step::Done(finish(content)),
        Start::Part(file, content) => Step::hop(move |_| finish(rest(&file, content)?)),
        Start::Nothing => Step::hop(move |about| {
            let file = File::open(&about.path)?;
            let content = rest(&file, Vec::new())?;
            now::learn(&file);
            finish(content)
        }),
    })
}

/// How far a read has come without a wait.
enum Start {
    Whole(Vec<u8>),
    Part(File, Vec<u8>),
    Nothing,
}

fn start(path: &Path) -> Start {
    let Some((file, size)) = now::open(path) else { return Start::Nothing };
    let mut content = Vec::new();
    let fits = usize::try_from(size).is_ok_and(|size| size <= sys::CHUNK && content.try_reserve_exact(size).is_ok());
    let is_whole = fits && now::read_to_end(&file, &mut content);
    mini_context::spend_calls(3); // statx(2), the read that finds the end, and close(2)
    mini_context::spend_bytes(content.len());
    if is_whole {
        return Start::Whole(content);
    }
    Start::Part(file, content)
}

/// The content, with what follows from the file's position on. A lack of memory is an error.
fn rest(mut file: &File, mut content: Vec<u8>) -> io::Result<Vec<u8>> {
    file.read_to_end(&mut content)?;
    Ok(content)
}
