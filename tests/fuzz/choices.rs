//! Where the decisions of a run come from: a seed, or the bytes of a fuzzer.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The decisions of one run.
#[derive(Debug)]
pub struct Choices(Source);

#[derive(Debug)]
enum Source {
    Seed {
        state: u64,
        steps: u32,
    },
    /// What is left of them, the next one last.
    Bytes(Vec<u8>),
}

impl Choices {
    /// Those that follow from `seed`, for a run of `steps` steps.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut choices = mini_fuzz::Choices::seeded(1, 2);
    /// assert!(choices.step() && choices.step() && !choices.step());
    /// assert!(choices.below(6) < 6);
    /// ```
    pub fn seeded(seed: u64, steps: u32) -> Self {
        Self(Source::Seed { state: seed, steps })
    }

    /// Those that `bytes` make; the run is over with the last of them.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut choices = mini_fuzz::Choices::from_bytes(&[7, 1, 2]);
    /// assert_eq!(choices.below(10), 7);
    /// assert_eq!(choices.below(1000), 0x201);
    /// assert!(!choices.step());
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Source::Bytes(bytes.iter().rev().copied().collect()))
    }

    /// Whether there is one more step to take.
    pub fn step(&mut self) -> bool {
        match &mut self.0 {
            Source::Seed { steps, .. } => steps.checked_sub(1).map(|left| *steps = left).is_some(),
            Source::Bytes(bytes) => !bytes.is_empty(),
        }
    }

    /// A number in `0..end`; the smallest ones when the bytes are used up.
    ///
    /// # Panics
    ///
    /// If `end` is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        match &mut self.0 {
            Source::Seed { state, .. } => next(state) % end,
            Source::Bytes(bytes) => {
                let wanted = (64 - (end - 1).leading_zeros()).div_ceil(8) as usize;
                let taken = bytes.split_off(bytes.len().saturating_sub(wanted));
                taken.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)) % end
            }
        }
    }

    /// Yes in one of `of` cases.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == of - 1
    }

    /// A place in a list of `len`, if that is not empty.
    pub fn place(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| self.below(len as u64) as usize)
    }
}

/// Sebastiano Vigna's SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Steps of one run.
const STEPS: u32 = 200;

/// Runs `model` on the seeds from 0 to `count`; or, with `MINI_FUZZ_SECONDS` in the environment, on others for that
/// long; or on `MINI_FUZZ_SEED` alone. Returns how many runs there were.
///
/// # Panics
///
/// If a run does; the seed is printed.
pub fn try_seeds(count: u64, model: fn(&mut Choices)) -> u64 {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    if let Some(seed) = number("MINI_FUZZ_SEED") {
        try_seed(seed, model);
        return 1;
    }
    let Some(seconds) = number("MINI_FUZZ_SECONDS") else {
        (0..count).for_each(|seed| try_seed(seed, model));
        return count;
    };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set");
    let (first, begin) = (since_epoch.as_nanos() as u64, Instant::now());
    let mut runs = 0;
    while begin.elapsed() < Duration::from_secs(seconds) {
        try_seed(first.wrapping_add(runs), model);
        runs += 1;
    }
    runs
}

fn try_seed(seed: u64, model: fn(&mut Choices)) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| model(&mut Choices::seeded(seed, STEPS)))) {
        eprintln!("MINI_FUZZ_SEED={seed} repeats this run");
        resume_unwind(payload);
    }
}
