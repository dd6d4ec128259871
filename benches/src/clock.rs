//! The two clocks of a workload: the wall's, and the CPU time of this process.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a workload took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) wall: Duration,
    /// Of all threads of this process, in the program and in the kernel.
    pub(crate) cpu: Duration,
}

/// Runs from [`start`](Stopwatch::start) on.
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Duration,
    clock: ClockId,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self::start_on(ClockId::ProcessCPUTime)
    }

    /// As [`start`](Self::start), but its CPU time is that of the calling thread, which must stop it too.
    pub(crate) fn start_of_thread() -> Self {
        Self::start_on(ClockId::ThreadCPUTime)
    }

    fn start_on(clock: ClockId) -> Self {
        Self { cpu: cpu_time(clock), wall: Instant::now(), clock }
    }

    pub(crate) fn stop(&self) -> Took {
        let wall = self.wall.elapsed();
        Took { wall, cpu: cpu_time(self.clock).saturating_sub(self.cpu) }
    }
}

/// CPU time since the process or the thread began (clock_gettime(2)).
fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_shows_on_both_clocks() {
        let watch = Stopwatch::start();
        while cpu_time(watch.clock) == watch.cpu {}
        let took = watch.stop();
        assert!(took.cpu > Duration::ZERO && took.wall > Duration::ZERO);
    }
}
