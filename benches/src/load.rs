//! How much a workload has to do: in a full run, in a smoke run, and what 20 µs of computing are on this machine.
//!
//! Made once by the program and handed to every process that measures, so that all peers compute the same steps.
//!
//! Rejected: computing until a clock says so. A task that is kept from its CPU would then do less work.

use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The size of all workloads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// A smoke run: as little as shows that everything works.
    pub(crate) quick: bool,
    /// Steps of [`compute`] that take 20 µs.
    steps: u64,
}

impl Load {
    /// Finds out how fast this machine computes; takes a few milliseconds.
    pub(crate) fn calibrate(quick: bool) -> Self {
        const STEPS: u64 = 200_000;
        let times = (0..7).map(|_| {
            let start = Instant::now();
            black_box(compute(STEPS));
            start.elapsed()
        });
        let best = times.min().expect("seven times").max(Duration::from_nanos(1));
        Self { quick, steps: (20e-6 / best.as_secs_f64() * STEPS as f64) as u64 }
    }

    /// A full load that does not depend on the machine: so many steps are 20 µs.
    pub(crate) fn with_steps(steps: u64) -> Self {
        Self { quick: false, steps }
    }

    /// `full`, or `quick` in a smoke run.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Computes for 1 µs.
    pub(crate) fn compute_1us(self) -> u64 {
        compute(self.steps / 20)
    }

    /// Computes for 20 µs.
    pub(crate) fn compute_20us(self) -> u64 {
        compute(self.steps)
    }

    /// Computes for 50 ms.
    pub(crate) fn compute_50ms(self) -> u64 {
        compute(self.steps * 2500)
    }

    /// Computes for `time`, 20 ns at least.
    pub(crate) fn compute_for(self, time: Duration) -> u64 {
        let steps = u128::from(self.steps) * time.as_nanos() / 20_000;
        compute(u64::try_from(steps).expect("a workload takes no years").max(self.steps / 1000))
    }

    /// As one argument of a command line; [`FromStr`] reads it.
    pub(crate) fn to_arg(self) -> String {
        format!("{}:{}", self.pick("full", "quick"), self.steps)
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (size, steps) = text.split_once(':')?;
            let quick = match size {
                "full" => false,
                "quick" => true,
                _ => return None,
            };
            Some(Self { quick, steps: steps.parse().ok()? })
        };
        parse().ok_or_else(|| format!("`{text}` is not a load"))
    }
}

/// Steps that need one another's results (Marsaglia, "Xorshift RNGs", 2003): no compiler shortens them.
#[inline(never)]
fn compute(steps: u64) -> u64 {
    let mut word = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
    }
    black_box(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_survives_the_command_line() {
        for quick in [true, false] {
            let load = Load { quick, steps: 12_345 };
            assert_eq!(load.to_arg().parse(), Ok(load));
        }
        assert!("slow:1".parse::<Load>().is_err() && "full:many".parse::<Load>().is_err());
    }

    #[test]
    fn every_step_changes_the_result() {
        assert_ne!(compute(1), compute(2));
    }
}
