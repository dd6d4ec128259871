//! The head of the output: what the run had of the machine. Read from `/proc`; elsewhere the lines are missing.

use std::fmt::Write;
use std::fs;

/// Lines that say which CPUs this process may use, the load, and how to pin.
pub(crate) fn describe() -> String {
    let mut head = String::new();
    if let Some(model) = field("/proc/cpuinfo", "model name") {
        let _ = writeln!(head, "cpu:    {model}");
    }
    if let Some(cpus) = field("/proc/self/status", "Cpus_allowed_list") {
        let _ = writeln!(head, "pinned: may use CPUs {cpus}");
    }
    if let Some(load) = fs::read_to_string("/proc/loadavg").ok().and_then(|line| first_words(&line, 3)) {
        let _ = writeln!(head, "load:   {load} (1, 5, 15 minutes; ratios below 1.1 mean little when it is high)");
    }
    head.push_str("hint:   taskset -c 0 cargo bench .. --rows ct; taskset -c 0,1 cargo bench .. --rows mt\n");
    head.push_str("rows:   ct = current_thread, mt = multi_thread with 2 workers\n\n");
    head
}

/// The value of the first line `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_words(line: &str, count: usize) -> Option<String> {
    let words: Vec<_> = line.split_whitespace().take(count).collect();
    (!words.is_empty()).then(|| words.join(" "))
}
