//! Which CPUs a row runs on. The program pins each measuring process itself, before it starts a thread.
//!
//! Where two threads sit decides what a wake costs, by a factor of 40 on a virtual machine: unpinned rows say nothing.

use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The placement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// All threads on the first CPU that this program may use.
    One,
    /// On the first two.
    Two,
}

impl Pin {
    fn width(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// The CPUs that this thread may use, in ascending order.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Binds this thread, and those it starts from now on, to the first of `cpus`.
pub(crate) fn pin(pin: Pin, cpus: &[usize]) -> io::Result<()> {
    if let Some(&other) = cpus.get(1).or(cpus.first()) {
        OTHER.get_or_init(|| other);
    }
    bind(cpus.get(..pin.width()).unwrap_or(cpus))
}

/// Binds this thread, and those it starts from now on, to all of `cpus`.
pub(crate) fn bind(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Binds this thread to a CPU that the program was given but the runtime was not; see [`OTHER`].
pub(crate) fn bind_to_other() {
    let cpu = *OTHER.get_or_init(|| allowed().last().copied().unwrap_or(0));
    bind(&[cpu]).expect("a CPU that this program may use");
}

/// Whether there is such a CPU that is not the runtime's own.
pub(crate) fn has_other() -> bool {
    OTHER.get().is_some_and(|other| !allowed().contains(other))
}

/// The CPU of the threads that sit apart from a runtime. [`pin`] sets it, as all CPUs are known there for the last
/// time.
static OTHER: OnceLock<usize> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_where_it_was_put() {
        let cpus = allowed();
        let pinned = std::thread::spawn(move || {
            pin(Pin::One, &cpus).unwrap();
            (cpus[0], allowed())
        });
        let (first, now) = pinned.join().unwrap();
        assert_eq!(now, [first]);
    }
}
