//! Names and lines of functions, from the debug information of programs and libraries, or their symbols.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::gimli::DW_LANG_Rust;
use addr2line::{Loader, demangle_auto};

use super::unwind::CodeAddress;

/// What calls a future's poll, by its path in the kernel, and by its name.
const POLLS: [(&str, &str); 2] =
    [("task/cell.rs", "mini_kernel::task::cell::"), ("scheduler/block_on.rs", "mini_kernel::scheduler::block_on::")];

/// Where the component rust-src is, whose lines a program may have instead of those of the standard library's build.
const RUST_SRC: &str = "/lib/rustlib/src/rust/";

/// The longest name that is told: types of futures are longer.
const LONGEST: usize = 120;

/// A function in which a thread was.
pub(super) struct Function {
    name: String,
    line: Option<(PathBuf, u32)>,
}

/// The debug information of the files in which something was looked up.
#[derive(Default)]
pub(super) struct Functions<'a>(HashMap<&'a Path, Option<Loader>>);

impl<'a> Functions<'a> {
    /// The function in which a place is, and before it those that were inlined into it.
    pub(super) fn at(&mut self, place: &CodeAddress<'a>) -> Vec<Function> {
        let file = &*place.image.file;
        let Some(loader) = self.0.entry(file).or_insert_with(|| Loader::new(file).ok()) else { return Vec::new() };
        let address = place.address as u64;
        let symbol =
            || loader.find_symbol(address).map(|name| demangle_auto(name.into(), Some(DW_LANG_Rust)).into_owned());
        let mut functions = Vec::new();
        if let Ok(mut frames) = loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
                let line = frame.location.and_then(|at| Some((PathBuf::from(at.file?), at.line?)));
                functions.push(Function { name: name.unwrap_or_default(), line });
            }
        }
        // With lines and no more than these a name has no path, but in the table of symbols.
        match (functions.last_mut(), symbol()) {
            (Some(outermost), Some(name)) => outermost.name = name,
            (None, Some(name)) => functions.push(Function { name, line: None }),
            _ => {}
        }
        functions.retain(|function| !function.name.is_empty());
        functions
    }
}

impl Function {
    /// It is what calls a future's poll.
    pub(super) fn is_poll(&self) -> bool {
        let is_in_file = |end| {
            let source = Path::new(mini_kernel::ROOT.strip_suffix("lib.rs").unwrap_or_default());
            self.line.as_ref().is_some_and(|(file, _)| file.ends_with(source.join(end)))
        };
        POLLS.iter().any(|&(file, begin)| is_in_file(file) || self.line.is_none() && self.is_in(begin))
    }

    /// It is a part of the standard library.
    pub(super) fn is_std(&self) -> bool {
        match &self.line {
            Some((file, _)) => file.starts_with("/rustc") || file.to_string_lossy().contains(RUST_SRC),
            None => ["std::", "core::", "alloc::", "__rust_try"].iter().any(|begin| self.is_in(begin)),
        }
    }

    /// It is of that part of the standard library by which a poll is called, if its caller's name is not known.
    pub(super) fn is_between(&self) -> bool {
        ["std::panic", "core::panic", "core::ops::function::", "__rust_try"].iter().any(|begin| self.is_in(begin))
    }

    /// Its module, or that of the trait which it implements, is in `path`.
    fn is_in(&self, path: &str) -> bool {
        let implemented = self.name.strip_prefix('<').and_then(|name| name.split_once(" as "));
        implemented.map_or(self.name.trim_start_matches('<'), |(_, of_trait)| of_trait).starts_with(path)
    }

    pub(super) fn text(&self, here: &Path) -> String {
        let mut name: String = self.name.chars().take(LONGEST).collect();
        if name.len() < self.name.len() {
            name.push('…');
        }
        match &self.line {
            Some((file, line)) if !self.is_std() => {
                format!("{name} at {}:{line}", file.strip_prefix(here).unwrap_or(file).display())
            }
            _ => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, file: Option<&str>) -> Function {
        Function { name: name.to_owned(), line: file.map(|file| (file.into(), 7)) }
    }

    #[test]
    fn the_standard_librarys_functions_are_told_apart_by_their_files_or_names() {
        let std = "/rustc/0123/library/core/src/option.rs";
        for (name, file, is_std) in [
            ("map", Some(std), true),
            ("<alloc::vec::Vec<u8> as app::Checksum>::sum", Some("/home/a/src/main.rs"), false),
            ("<alloc::vec::Vec<u8> as app::Checksum>::sum", None, false),
            ("<app::Iter as core::iter::Iterator>::fold", None, true),
            ("<std::time::Instant>::now", None, true),
            ("standard::now", None, false),
        ] {
            assert_eq!(function(name, file).is_std(), is_std, "{name}");
        }
    }

    #[test]
    fn long_names_are_cut_and_files_told_from_here() {
        let long = function(&"a".repeat(300), Some("/home/a/src/main.rs")).text(Path::new("/home/a"));
        assert_eq!(long, format!("{}… at src/main.rs:7", "a".repeat(120)));
    }
}
