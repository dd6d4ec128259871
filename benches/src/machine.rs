//! What the run had: the machine, its load, the compiler, the peers' versions. Lines that cannot be found are missing.

use std::fs;
use std::process::Command;

use crate::cpus;

/// The versions that this program was built with.
const LOCK: &str = include_str!("../../Cargo.lock");

/// Facts about a run, in the order of the output.
pub(crate) struct Machine(Vec<(&'static str, String)>);

impl Machine {
    /// Looks around; call it before anything runs, since the load is one of the facts.
    pub(crate) fn examine() -> Self {
        let cpus = cpus::allowed();
        let facts = [
            ("cpu", field("/proc/cpuinfo", "model name")),
            ("kernel", fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|line| line.trim().to_owned())),
            ("memory", field("/proc/meminfo", "MemTotal")),
            ("compiler", output("rustc", &["--version"])),
            ("settings", Some("profile.bench of the workspace for all peers: one codegen unit, thin LTO".to_owned())),
            ("versions", Some(versions(LOCK))),
            ("pinned", Some(placement(&cpus))),
            ("load before", load()),
        ];
        Self(facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect())
    }

    /// Adds the load at the end of the run.
    pub(crate) fn finish(&mut self) {
        self.0.extend(load().map(|load| ("load after", load)));
    }

    pub(crate) fn facts(&self) -> &[(&'static str, String)] {
        &self.0
    }

    /// The head of the printed output.
    pub(crate) fn describe(&self) -> String {
        self.0.iter().map(|(name, fact)| format!("{:<13}{fact}\n", format!("{name}:"))).collect()
    }
}

fn placement(cpus: &[usize]) -> String {
    match cpus {
        [] | [_] => {
            format!("everything on CPU {}; there is no other, so `mt` rows say little", cpus.first().unwrap_or(&0))
        }
        [first, second, ..] => format!(
            "`ct` rows on CPU {first}, `mt` rows on CPUs {first} and {second};\n  in `wake by a thread` the runtime on \
             CPU {first} (`ct` and `mt`), the thread on CPU {first} (same) or {second} (other)"
        ),
    }
}

/// The value of the first line `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<String> {
    let line = fs::read_to_string("/proc/loadavg").ok()?;
    let words: Vec<_> = line.split_whitespace().take(3).collect();
    Some(format!("{} (1, 5, 15 minutes)", words.join(" ")))
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The peers' packages with their versions, from the text of a Cargo.lock.
fn versions(lock: &str) -> String {
    const PACKAGES: [&str; 6] = ["mini-rt", "tokio", "smol", "async-executor", "async-io", "monoio"];
    let version = |package: &&str| {
        let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
        Some(format!("{package} {}", entry.split_once('"')?.0))
    };
    PACKAGES.iter().filter_map(version).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"monoio-macros\"\nversion = \"0.1.0\"\n\n\
            [[package]]\nname = \"monoio\"\nversion = \"0.2.4\"\n";
        assert_eq!(versions(lock), "monoio 0.2.4");
        assert_eq!(versions(LOCK).matches(", ").count(), 5, "{}", versions(LOCK));
    }

    #[test]
    fn the_output_says_what_is_pinned_where() {
        assert!(placement(&[2, 5, 7]).starts_with("`ct` rows on CPU 2, `mt` rows on CPUs 2 and 5;"));
        assert!(placement(&[3]).starts_with("everything on CPU 3"));
    }
}
