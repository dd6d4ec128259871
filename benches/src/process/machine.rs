//! What a process asks of the system for itself: CPUs, descriptors, the CPU time it has used, the memory it holds.
//!
//! Called in the children (`server.rs`, `memory.rs`) and by the load client (`load.rs`).
//!
//! Rejected: getrusage(2). On many kernels it counts whole ticks; the process clock counts nanoseconds.
//! Rejected: `/proc/self/statm`. The kernel batches that counter per CPU, which is off by tens of bytes per connection.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Puts the calling thread, and those it will start, on `cpus`.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|error| io::Error::other(format!("CPUs {cpus:?} are not ours: {error}")))
}

/// Raises the limit of open descriptors as far as the system lets us; returns it.
pub(crate) fn raise_descriptors() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let now = limit.current;
    limit.current = limit.maximum;
    let raised = setrlimit(Resource::Nofile, limit).is_ok();
    if raised { limit.maximum.unwrap_or(u64::MAX) } else { now.unwrap_or(u64::MAX) }
}

/// CPU time of this process so far, user and system, all threads.
pub(crate) fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("CPU time is not negative")
}

/// Bytes of this process that are in memory.
pub(crate) fn resident() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    parse_resident(&text).ok_or_else(|| io::Error::other("smaps_rollup has no `Rss` line"))
}

fn parse_resident(smaps: &str) -> Option<u64> {
    let line = smaps.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_given_in_kib() {
        assert_eq!(parse_resident("55d0-7ffe [rollup]\nRss:       1680 kB\nPss:   12 kB\n"), Some(1680 * 1024));
        assert_eq!(parse_resident("Pss: 12 kB"), None);
        assert!(resident().unwrap() > 4096);
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu_time();
        let sum = (0..1_000_000u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        assert!(cpu_time() > before, "{sum}");
    }
}
