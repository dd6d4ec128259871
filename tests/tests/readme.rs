//! The lines of code in README's table for those who come from tokio: each compiles.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The third cells of the table whose head says "a line of it".
fn lines(readme: &str) -> Vec<String> {
    let table = readme.lines().skip_while(|line| !line.ends_with("| a line of it |")).skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let (_, cell) = row.split_once("| `").and_then(|_| row.rsplit_once(" | `")).expect("a row with a line");
            cell.strip_suffix("` |").expect("code to the end of the row").replace("\\|", "|")
        })
        .collect()
}

/// A function for each line, in one program.
fn program(lines: &[String]) -> String {
    let mut text = "#![allow(unused, unreachable_code)]\nuse std::time::Duration;\n\n".to_owned();
    for (number, line) in lines.iter().enumerate() {
        writeln!(text, "async fn line_{number}() -> Result<(), Box<dyn std::error::Error>> {{").unwrap();
        writeln!(text, "    {line}\n    Ok(())\n}}\n").unwrap();
    }
    text + "fn main() {}\n"
}

#[test]
fn every_line_for_those_who_come_from_tokio_compiles() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lines = lines(&fs::read_to_string(here.join("../README.md")).unwrap());
    assert!(lines.len() > 30, "the table was not found: {lines:?}");
    let path = env::temp_dir().join(format!("coming-from-tokio-{}.rs", std::process::id()));
    fs::write(&path, program(&lines)).unwrap();
    trybuild::TestCases::new().pass(&path);
    // The program is compiled when the test cases are dropped, at the end of the statement above.
    fs::remove_file(path).unwrap();
}
