//! The lists of models in RELIABILITY.md, compared with the sources.
//!
//! A model is a test in a file or directory `models`, or in a module of that name within a file.

use std::fs;
use std::path::Path;

/// The crates that have models.
const SOURCES: [&str; 6] =
    ["runtime/src", "runtime/kernel/src", "runtime/sync/src", "runtime/context/src", "net/src", "time/src"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The names in the first column of the tables.
fn listed() -> Vec<String> {
    let text = fs::read_to_string(root().join("tests/RELIABILITY.md")).unwrap();
    let (_, section) = text.split_once("\n## Models\n").expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

/// The names of the models in `path`, a file or directory.
fn models(path: &Path, names: &mut Vec<String>) {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().for_each(|entry| models(&entry.unwrap().path(), names));
    }
    let text = fs::read_to_string(path).unwrap();
    let is_of_models = path.strip_prefix(root()).unwrap().with_extension("").iter().any(|part| part == "models");
    let inner = || text.split_once("\nmod models {\n").map_or("", |(_, rest)| rest.split("\n}\n").next().unwrap());
    let tests = if is_of_models { &text } else { inner() };
    for test in tests.split("#[test]\n").skip(1) {
        let (_, test) = test.split_once("fn ").expect("a test is a function");
        names.push(test.split('(').next().unwrap().to_owned());
    }
}

#[test]
fn every_model_is_listed_and_there_are_no_others() {
    let (mut listed, mut found) = (listed(), Vec::new());
    SOURCES.iter().for_each(|sources| models(&root().join(sources), &mut found));
    assert!(found.len() > 100, "the sources were not understood: {found:?}");
    listed.sort();
    found.sort();
    let missing: Vec<_> = found.iter().filter(|name| !listed.contains(name)).collect();
    let gone: Vec<_> = listed.iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:#?}; listed, but gone: {gone:#?}");
    assert_eq!(listed, found, "one twice");
}
