//! What all tasks of a run share, the clock above all, and what each of them writes down.
//!
//! Times are nanoseconds from the start, as in the [`Draw`](super::draw::Draw). An event that has not run when the time
//! is over counts as late as it is then: a backlog shows in the latencies.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::rt::Rt;

/// The clock of a run and its end.
pub(super) struct Stage {
    start: Instant,
    end: u64,
    load: Load,
    is_over: AtomicBool,
}

impl Stage {
    /// A run that starts at `start`.
    pub(super) fn new(start: Instant, span: Duration, load: Load) -> Self {
        Self { start, end: span.as_nanos() as u64, load, is_over: AtomicBool::new(false) }
    }

    pub(super) fn now(&self) -> u64 {
        Instant::now().saturating_duration_since(self.start).as_nanos() as u64
    }

    /// When `time` is.
    pub(super) fn instant(&self, time: u64) -> Instant {
        self.start + Duration::from_nanos(time)
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Events before this time are not counted: threads start, caches are cold.
    fn warm(&self) -> u64 {
        self.end / 10
    }

    /// Waits until `time`; at once if it is past.
    pub(super) async fn wait<R: Rt>(&self, time: u64) {
        let left = self.instant(time).saturating_duration_since(Instant::now());
        if !left.is_zero() {
            R::sleep(left).await;
        }
    }

    pub(super) fn compute(&self, run: Duration) {
        self.load.compute_for(run);
    }

    /// Whether the end has come. The clock says so too: the thread outside may be late.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed) || self.now() >= self.end
    }

    /// Lets all tasks end.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Relaxed);
    }
}

/// What became of the events of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// From the time of an event to its run, in nanoseconds.
    pub(super) wakes: Vec<f64>,
    /// From the time of a computing job to its end.
    pub(super) completions: Vec<f64>,
    /// Runs that were done in time.
    pub(super) runs: u64,
}

impl Record {
    /// The run of an event of `time` begins now.
    pub(super) fn begin(&mut self, stage: &Stage, time: u64) {
        self.note_wake(stage, time, stage.now().min(stage.end).saturating_sub(time));
    }

    pub(super) fn note_wake(&mut self, stage: &Stage, time: u64, latency: u64) {
        if time >= stage.warm() {
            self.wakes.push(latency as f64);
        }
    }

    /// A computing job of `time` has ended.
    pub(super) fn complete(&mut self, stage: &Stage, time: u64) {
        if time >= stage.warm() {
            self.completions.push(stage.now().min(stage.end).saturating_sub(time) as f64);
        }
    }

    /// Computes, and counts that unless it was too late.
    pub(super) fn run(&mut self, stage: &Stage, run: Duration) {
        stage.compute(run);
        if !stage.is_over() {
            self.runs += 1;
        }
    }

    /// The runtime did not come to these events.
    pub(super) fn miss(&mut self, stage: &Stage, times: &[u64]) {
        times.iter().for_each(|&time| self.note_wake(stage, time, stage.end.saturating_sub(time)));
    }

    /// As [`miss`](Self::miss), of computing jobs.
    pub(super) fn miss_jobs(&mut self, stage: &Stage, times: &[u64]) {
        let counted = times.iter().filter(|&&time| time >= stage.warm());
        self.completions.extend(counted.map(|&time| stage.end.saturating_sub(time) as f64));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.wakes.extend(other.wakes);
        self.completions.extend(other.completions);
        self.runs += other.runs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_as_late_as_the_end() {
        let stage = Stage::new(Instant::now(), Duration::from_nanos(1000), Load::calibrate(true));
        let mut record = Record::default();
        record.miss(&stage, &[50, 100, 900]);
        record.miss_jobs(&stage, &[99, 400]);
        assert_eq!((record.wakes, record.completions), (vec![900.0, 100.0], vec![600.0]));
    }

    #[test]
    fn runs_after_the_end_do_not_count() {
        let stage = Stage::new(Instant::now(), Duration::from_secs(60), Load::calibrate(true));
        let mut record = Record::default();
        record.run(&stage, Duration::from_nanos(100));
        stage.finish();
        record.run(&stage, Duration::from_nanos(100));
        assert_eq!(record.runs, 1);
    }
}
