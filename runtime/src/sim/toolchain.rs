//! The build that a seed is valid for: the compiler and the versions of the dependencies.
//!
//! A build script could ask the compiler, and every user would compile it. The compiler leaves its version in each
//! executable for ELF systems (the section `.comment`), so it is looked up there, when a seed has failed. Elsewhere, or
//! in an executable that was stripped, it is not known.

use std::env;
use std::fs;
use std::path::Path;

use super::sites;

/// What stands before the version.
const MARK: &[u8] = b"rustc version ";

/// The build, as it is shown.
pub(super) fn shown() -> String {
    let compiler = env::current_exe().and_then(fs::read).ok().and_then(|bytes| compiler(&bytes));
    let compiler = compiler.unwrap_or_else(|| "an unknown rustc".to_owned());
    let lock = env::current_dir().ok().and_then(|folder| lock_file(&folder));
    let lock = lock.map_or("no Cargo.lock".to_owned(), |bytes| format!("Cargo.lock {:016x}", sites::fnv(bytes)));
    format!("{compiler}, {lock}")
}

/// The compiler that an executable says has made it.
fn compiler(executable: &[u8]) -> Option<String> {
    let versions = executable.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    let mut texts = versions.map(|(at, _)| {
        let text = executable[at + MARK.len()..].iter().take_while(|byte| matches!(byte, b' '..=b'~')).take(80);
        text.map(|&byte| char::from(byte)).collect::<String>()
    });
    // This file's own mark is followed by something else.
    texts.find(|text| text.starts_with(|first: char| first.is_ascii_digit())).map(|text| format!("rustc {text}"))
}

/// The lock file of the folder, or of the next one above that has one.
fn lock_file(folder: &Path) -> Option<Vec<u8>> {
    folder.ancestors().find_map(|folder| fs::read(folder.join("Cargo.lock")).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_behind_its_mark() {
        let executable = b"\0rustc version \0, rustc version 1.95.0 (59807616e 2026-04-14)\0GCC: 12\0";
        assert_eq!(compiler(executable).as_deref(), Some("rustc 1.95.0 (59807616e 2026-04-14)"));
        assert_eq!(compiler(b"rustc version unknown"), None);
        assert_eq!(compiler(b""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_build_is_known() {
        let shown = shown();
        assert!(shown.starts_with("rustc 1.") && shown.contains(", Cargo.lock "), "{shown}");
    }
}
