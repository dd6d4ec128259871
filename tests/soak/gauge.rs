//! What the process holds of the system: memory, descriptors, threads, children.
//!
//! Read from procfs. Threads and memory go a moment after their owner has ended, so `Gauge::settled` waits for that.

use std::fmt::{self, Write};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gauge {
    /// Resident memory, in kB.
    pub(crate) memory: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl Gauge {
    /// Now.
    pub(crate) fn read() -> Gauge {
        let status = fs::read_to_string("/proc/self/status").expect("procfs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field of status");
            line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().expect("a number")
        };
        let descriptors = fs::read_dir("/proc/self/fd").expect("procfs").count();
        Gauge { memory: field("VmRSS"), descriptors, threads: field("Threads") as usize }
    }

    /// Now, or as soon as there are no more descriptors and threads than `before`; it waits ten seconds for that.
    pub(crate) fn settled(before: &Gauge) -> Gauge {
        let begin = Instant::now();
        loop {
            let now = Gauge::read();
            if now.holds_no_more_than(before) || begin.elapsed() > Duration::from_secs(10) {
                return now;
            }
            thread::sleep(Duration::from_millis(5)); // nobody tells when the system has taken a thread away
        }
    }

    /// Whether there are no more descriptors and threads.
    pub(crate) fn holds_no_more_than(&self, before: &Gauge) -> bool {
        self.descriptors <= before.descriptors && self.threads <= before.threads
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Gauge) -> Gauge {
        Gauge {
            memory: self.memory.max(other.memory),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }
}

/// The threads, with what each of them does, for the report of a hang.
pub(crate) fn threads() -> String {
    let mut all = String::new();
    for thread in fs::read_dir("/proc/self/task").expect("procfs").flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, call) = (read("comm"), read("syscall"));
        let _ = writeln!(all, "{} in system call {}", name.trim(), call.trim());
    }
    all
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gauge { memory, descriptors, threads } = self;
        write!(f, "{memory:>8} kB {descriptors:>6} descriptors {threads:>4} threads")
    }
}
