//! Whether the rows are complete: each public future in the crates' sources must be among those that were dropped.
//!
//! It reads the sources as text, as they are formatted: `impl ... Future for Name`, the calls inside of shared futures
//! (`impl ... Call for Name`), the names that `futures!` gives, and public functions that are `async` or return one of
//! these, but for those that are hidden from users.

use std::fs;
use std::path::{Path, PathBuf};

use crate::List;

/// The crates, with their names in paths.
const CRATES: [(&str, &str); 5] = [
    ("net", "mini_net"),
    ("time", "mini_time"),
    ("runtime/sync", "mini_sync"),
    ("runtime/kernel", "mini_kernel"),
    ("runtime", "mini"),
];

/// Not of mini's API: for `#[mini::main]`, inside of the futures of `fs` and `signal`, and behind a feature that is off
/// here, a `Sleep` by another name. What is polled in simulations only is dropped in their tests: `sim.rs`,
/// `seeds/chaos.rs`, `simulation/hosts.rs`.
const LEFT_OUT: [&str; 8] = [
    "hyper.rs",
    "job.rs",
    "main.rs",
    "signal/ear.rs",
    "signal/simulated.rs",
    "sim/cancel.rs",
    "sim/current.rs",
    "sim/machines.rs",
];

/// Panics if `list` has no row for some future, or for some function that returns one.
pub(crate) fn check(list: &List) {
    let sources: Vec<(String, String)> = CRATES.iter().flat_map(|(dir, name)| modules(dir, name)).collect();
    let mut missing = Vec::new();
    let mut futures = Vec::new();
    for (module, text) in &sources {
        for name in named(text) {
            if !list.types.iter().any(|ty| mentions(ty, &format!("{module}::{name}"))) {
                missing.push(format!("{module}::{name}"));
            }
            futures.push(format!("future::{name}")); // `Send` alone is a trait too
        }
        for (name, is_future) in text.lines().filter_map(implementor).filter(|(name, _)| is_public(text, name)) {
            let path = format!("{module}::{name}");
            if !list.types.iter().any(|ty| mentions(ty, &path)) {
                missing.push(path);
            }
            // The end of a channel for one message is its own future; other ends have the same name.
            if is_future && name != "Receiver" {
                futures.push(name.to_owned());
            }
        }
    }
    assert!(futures.len() > 30, "the sources were not understood: {futures:?}");
    for (module, text) in &sources {
        for (name, returned) in functions(text) {
            let makes = returned.contains("impl Future") || futures.iter().any(|future| mentions(returned, future));
            if makes && !list.calls.iter().any(|call| mentions(call, &format!("{name}("))) {
                missing.push(format!("{module}: fn {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "not among the rows: {missing:#?}");
}

/// The modules of the crate in `dir`, each with its text, without those of tests.
fn modules(dir: &str, crate_name: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(dir).join("src");
    let (mut found, mut left) = (Vec::new(), vec![root.clone()]);
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap();
        if path.is_dir() && name != "tests" {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() && name != "tests.rs" && !LEFT_OUT.iter().any(|left_out| path.ends_with(left_out)) {
            found.push((module(&root, &path, crate_name), public_part(&path)));
        }
    }
    found
}

/// `mini_net::unix::pipe` for `net/src/unix/pipe.rs`.
fn module(root: &Path, path: &Path, crate_name: &str) -> String {
    let inner: PathBuf = path.strip_prefix(root).unwrap().with_extension("");
    let parts = inner.iter().map(|part| part.to_str().unwrap()).filter(|&part| part != "lib");
    [crate_name].into_iter().chain(parts).collect::<Vec<_>>().join("::")
}

/// The text of a file up to the tests in it.
fn public_part(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// The type for which the block that begins in this line implements a future, or a call inside of one; and which of
/// both.
fn implementor(line: &str) -> Option<(&str, bool)> {
    let (head, name) = line.strip_prefix("impl")?.split_once(" for ")?;
    let trait_name = head.rsplit(' ').next()?;
    let is_future = trait_name == "Future";
    let is_call = trait_name == "Call" || trait_name.starts_with("Call<");
    (is_future || is_call).then_some((name.split(|c| !is_part_of_name(c)).next()?, is_future))
}

/// Whether users can see the type, or a macro makes it. Types within a crate are only parts of public futures.
fn is_public(text: &str, name: &str) -> bool {
    !mentions(text, &format!("pub(crate) struct {name}"))
}

/// The futures that the table of `futures!` in `text` makes, and those that stand beside it.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let (beside, table) = text.split_once("\nfutures! {\n").unwrap_or_default();
    assert!(!beside.contains("\npub struct "), "structs stand behind the table");
    let in_table = |line: &'_ str| line.starts_with("    ") && line.contains("> = ");
    table.lines().filter_map(move |line| {
        let name = if in_table(line) { line.trim_start() } else { line.strip_prefix("pub struct ")? };
        name.split(|c| !is_part_of_name(c)).next()
    })
}

/// The public functions in `text`: their names, and what they return. That is a future for those that are `async`.
fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_shown = |&(at, _): &(usize, &str)| !text[..at].trim_end().ends_with("#[doc(hidden)]");
    let starts = text.match_indices("pub fn ").filter(is_shown).map(|(at, start)| (&text[at + start.len()..], None));
    let asyncs =
        text.match_indices("pub async fn ").map(|(at, start)| (&text[at + start.len()..], Some("impl Future")));
    starts.chain(asyncs).map(|(rest, returned)| {
        let name = rest.split(|c| !is_part_of_name(c)).next().unwrap_or_default();
        let head = rest.split(['{', ';']).next().unwrap_or_default();
        let arrow = head.rsplit_once(") -> ").map_or("", |(_, returned)| returned);
        (name, returned.unwrap_or(arrow.split("\n").next().unwrap_or_default()))
    })
}

/// Whether `name` is in `text`, and not as a part of another name.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(is_part_of_name);
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + name.len()..].chars().next());
        !part(before) && (name.ends_with('(') || !part(after))
    })
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
