//! What the tests of child processes share: programs to start, and what the system knows of them.

#![allow(unsafe_code)]

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Stdio};

use mini::process::Command;

/// The test `test` of this program, in a process of its own that prints what the test prints.
///
/// There signals have their default effects, whatever the process that has started the tests ignores: a shell has its
/// background jobs ignore SIGINT and SIGQUIT, nohup(1) SIGHUP.
///
/// # Panics
///
/// If the system does not say where this program is.
pub fn own_test(test: &str) -> process::Command {
    let mut command = process::Command::new(env::current_exe().expect("this program"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
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
