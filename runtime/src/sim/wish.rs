//! The environment variables that control the runs of a test.
//!
//! | variable | meaning |
//! |---|---|
//! | `MINI_SEED` | only this seed |
//! | `MINI_SEEDS` | so many seeds, from 1 on |
//! | `MINI_SIM_JOBS` | so many at once; as many as there are processors by default |
//! | `MINI_SIM_CHECK=1` | each seed twice: both runs must take the same steps |
//! | `MINI_SIM_SKIP=1-6,8,20-` | with `MINI_SEED`: without these faults, and not shrunk |
//! | `MINI_SIM_COVERAGE=1` | shows what the seeds have reached |

use std::env;
use std::ops::RangeInclusive;
use std::thread;

use super::skips::Skips;

pub(super) struct Wish {
    pub(super) seeds: RangeInclusive<u64>,
    /// There are fewer seeds than the test asks for.
    pub(super) is_partial: bool,
    pub(super) jobs: u64,
    pub(super) checks: bool,
    pub(super) skips: Option<Skips>,
    pub(super) shows_coverage: bool,
}

impl Wish {
    /// What the environment wants of a test that asks for `count` seeds.
    pub(super) fn from_environment(count: u64) -> Result<Self, String> {
        let (seeds, is_partial) = match (number("MINI_SEED")?, number("MINI_SEEDS")?) {
            (Some(seed), _) => (seed..=seed, true),
            (None, Some(0)) => return Err("MINI_SEEDS=0: expected at least 1".to_owned()),
            (None, seeds) => (1..=seeds.unwrap_or(count), seeds.is_some_and(|seeds| seeds < count)),
        };
        let skips = skips()?;
        if skips.is_some() && number("MINI_SEED")?.is_none() {
            return Err("MINI_SIM_SKIP needs MINI_SEED: the numbers of faults are those of one seed".to_owned());
        }
        let processors = || thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let jobs = number("MINI_SIM_JOBS")?.unwrap_or_else(processors).max(1);
        let is_on = |variable| Ok::<_, String>(number(variable)? == Some(1));
        let (checks, shows_coverage) = (is_on("MINI_SIM_CHECK")?, is_on("MINI_SIM_COVERAGE")?);
        Ok(Self { seeds, is_partial, jobs, checks, skips, shows_coverage })
    }
}

fn number(variable: &str) -> Result<Option<u64>, String> {
    let Some(value) = env::var_os(variable) else { return Ok(None) };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| format!("{variable}={}: expected a number", value.display()))
}

fn skips() -> Result<Option<Skips>, String> {
    let Some(value) = env::var_os("MINI_SIM_SKIP") else { return Ok(None) };
    let text = value.to_string_lossy();
    let skips = Skips::parse(&text)
        .map_err(|part| format!("MINI_SIM_SKIP={text}: {part:?} is not a range of faults; an example is 1-6,8,20-"));
    skips.map(Some)
}
