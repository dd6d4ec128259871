//! Files: from the target of a request to an open file below the root, and nowhere else.
//!
//! What comes from the client is decoded first and split then, so that `%2e%2e` and `%2f` are what they stand for.
//! Symbolic links are followed wherever they lead: the owner of the root has put them there.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mini::fs::{File, OpenOptions};

use super::response::{BAD_REQUEST, FORBIDDEN, INTERNAL_ERROR, NOT_FOUND, Status};

/// Opens the file that `target` names, and tells its length and its type.
///
/// A fifo or a device is not waited for (`O_NONBLOCK`), and refused.
pub(crate) async fn open(root: &Path, target: &str) -> Result<(File, u64, &'static str), Status> {
    let path = root.join(below(target)?);
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).await;
    let file = opened.map_err(|error| status(&error))?;
    let metadata = file.metadata().await.map_err(|error| status(&error))?;
    if !metadata.is_file() {
        return Err(NOT_FOUND);
    }
    Ok((file, metadata.len(), kind(&path)))
}

/// The path below the root. A directory, which ends with a slash, stands for its `index.html`.
pub(crate) fn below(target: &str) -> Result<PathBuf, Status> {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let path = match path.strip_prefix("http://").or_else(|| path.strip_prefix("https://")) {
        Some(rest) => &rest[rest.find('/').ok_or(NOT_FOUND)?..], // the absolute form (RFC 9112, section 3.2.2)
        None => path,
    };
    if !path.starts_with('/') {
        return Err(BAD_REQUEST);
    }
    let decoded = decode(path.as_bytes()).filter(|path| !path.contains(&0)).ok_or(BAD_REQUEST)?;
    let mut below = PathBuf::new();
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => return Err(FORBIDDEN),
            name => below.push(OsStr::from_bytes(name)),
        }
    }
    if decoded.ends_with(b"/") {
        below.push("index.html");
    }
    Ok(below)
}

/// Percent-decoding (RFC 3986, section 2.1); `None` if something else follows a percent sign than two hexadecimal
/// digits.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        decoded.push(match byte {
            b'%' => digit(*rest.next()?)? << 4 | digit(*rest.next()?)?,
            _ => byte,
        });
    }
    Some(decoded)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|value| value as u8)
}

fn status(error: &io::Error) -> Status {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => NOT_FOUND,
        ErrorKind::PermissionDenied => FORBIDDEN,
        _ => {
            eprintln!("http: {error}");
            INTERNAL_ERROR
        }
    }
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(OsStr::to_str).unwrap_or_default() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" | "rs" => "text/plain; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}
