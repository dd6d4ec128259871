//! What the tests of child processes share: programs to start, and what the system knows of them.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use mini::process::Command;

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
