//! What the tests of child processes share: programs to start, and what the system knows of them.

#![allow(unsafe_code)]

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::OnceLock;

use mini::process::Command;

/// The test `test` of this program, in a process of its own that prints what the test prints.
///
/// There signals have their default effects, whatever the process that has started the tests ignores: a shell has its
/// background jobs ignore SIGINT and SIGQUIT, nohup(1) SIGHUP.
///
/// # Panics
///
/// As [`full_name`].
pub fn own_test(test: &str) -> process::Command {
    let mut command = process::Command::new(this_program());
    command.args([full_name(test), "--exact", "--nocapture", "--test-threads=1"]);
    let reset = || {
        for signal in 1..32 {
            // SAFETY: the default action refers to nothing. The system refuses to change SIGKILL and SIGSTOP.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only calls signal(2), which is on the list of signal-safety(7).
    unsafe { command.pre_exec(reset) };
    command
}

/// The name of the test `test` of this program with the modules that it is in.
///
/// # Panics
///
/// If not exactly one test of this program has that name, or the system does not say where this program is.
pub fn full_name(test: &str) -> &'static str {
    static LIST: OnceLock<String> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let output = process::Command::new(this_program()).arg("--list").output().expect("a list of the tests");
        String::from_utf8(output.stdout).expect("names of functions")
    });
    let in_a_module = format!("::{test}");
    let mut names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut is_found = |name: &&str| *name == test || name.ends_with(&in_a_module);
    let found = names.find(&mut is_found).unwrap_or_else(|| panic!("there is no test called {test}"));
    assert_eq!(names.find(is_found), None, "there is another test called {test}: {found}");
    found
}

fn this_program() -> PathBuf {
    env::current_exe().expect("this program")
}

/// A shell that runs `script`.
pub fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Goes on for longer than any test.
pub fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("10000");
    command
}

/// Writes back what it reads, until that ends.
pub fn cat() -> Command {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Whether the system still knows the process, be it as a zombie.
pub fn is_known(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// The children of this process, zombies included.
///
/// # Panics
///
/// Without procfs.
pub fn children() -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("procfs").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // "id (name) state parent ...", where the name may have anything in it.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split(' ').collect();
        if fields[1] == std::process::id().to_string() {
            found.push(id);
        }
    }
    found
}
