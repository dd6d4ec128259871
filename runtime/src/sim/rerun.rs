//! The repeated runs of a failed seed: they find the faults that it needs, the place of its panic, and make the
//! picture.
//!
//! [`Kin`] decides whether two runs fail in the same way.

use std::sync::Arc;

use mini_context::sim::Faults;

use super::failure::{Failure, Kin, list};
use super::run::Trace;
use super::seeds::Trouble;
use super::shrink::{Budget, Shrunk, shrink};
use super::skips::Skips;
use super::wish::Wish;
use super::{interpose, picture, toolchain};

/// A seed that has failed.
pub(super) struct Rerun<'a, R> {
    pub(super) wish: &'a Wish,
    /// The name of its picture.
    pub(super) picture: String,
    /// Runs it without some of its faults.
    pub(super) run: R,
}

/// What a seed that has failed does when it is run again.
pub(super) enum Again {
    /// The same, without these faults.
    Fails(Option<Skips>),
    /// Something else.
    Differs,
}

/// A run that failed.
struct Failed {
    failure: Failure,
    trace: Trace,
}

impl<R: Fn(&Skips) -> Result<(Option<Failure>, Trace), Trouble>> Rerun<'_, R> {
    /// The report, but for the line that says how to repeat it.
    pub(super) fn tell(&self, first: Failure) -> (String, Again) {
        let skips = self.wish.skips.clone();
        eprintln!("seed {} has failed and runs again; its output precedes the report", first.seed());
        let Some(whole) = self.fail(&skips.clone().unwrap_or_default(), |kin| kin.is_like(&first.kin())) else {
            let causes = interpose::causes();
            let note = format!("seed {} was run again and did not fail in this way: {causes}\n", first.seed());
            return (note + &first.told(&first.of_faults()) + &build(), Again::Differs);
        };
        let kin = whole.failure.kin();
        let faults = Arc::clone(&whole.trace.faults);
        if skips.is_some() || faults.injected().is_empty() {
            return (self.report(&whole, &whole.failure.of_faults()), Again::Fails(skips));
        }
        let numbers = numbers(&faults);
        let shrunk = shrink(numbers, Budget::DEFAULT, |kept| {
            let failed = self.fail(&Skips::all_but(kept), |other| *other == kin)?;
            Some(self::numbers(&failed.trace.faults))
        });
        let skips = Skips::all_but(&shrunk.kept);
        match self.fail(&skips, |other| *other == kin) {
            Some(least) if shrunk.kept.len() < faults.injected().len() => {
                (self.report(&least, &needed(&least, &faults, &shrunk)), Again::Fails(Some(skips)))
            }
            Some(_) => (self.report(&whole, &needed(&whole, &faults, &shrunk)), Again::Fails(None)),
            None => {
                let note = "  not shrunk: it does not always fail with the same faults; MINI_SIM_CHECK=1 shows why\n";
                (self.report(&whole, &(whole.failure.of_faults() + note)), Again::Fails(None))
            }
        }
    }

    /// Runs it without `skips`. `None` if it does not fail as it should.
    fn fail(&self, skips: &Skips, is_kin: impl FnOnce(&Kin) -> bool) -> Option<Failed> {
        match (self.run)(skips) {
            Ok((Some(failure), trace)) if is_kin(&failure.kin()) => Some(Failed { failure, trace }),
            _ => None,
        }
    }

    fn report(&self, failed: &Failed, of_faults: &str) -> String {
        let picture = match picture::write(&self.picture, &failed.trace) {
            Ok(path) => format!("  trace: {}, in virtual time, for https://ui.perfetto.dev\n", path.display()),
            Err(error) => format!("  trace: cannot be written: {error}\n"),
        };
        failed.failure.told(of_faults) + &picture + &build()
    }
}

fn numbers(faults: &Faults) -> Vec<u64> {
    faults.injected().iter().map(|fault| fault.number).collect()
}

/// The line about the faults that are left.
fn needed(left: &Failed, all: &Faults, shrunk: &Shrunk) -> String {
    let (left, count) = (left.trace.faults.injected(), all.injected().len());
    let verb = if left.len() == 1 { "is" } else { "are" };
    let end = if shrunk.is_capped {
        format!("; fewer may be enough: shrinking stopped after {} runs", shrunk.runs)
    } else {
        String::new()
    };
    format!("  shrunk: {} of {count} faults {verb} needed{}{end}\n", left.len(), list(left))
}

fn build() -> String {
    format!("  build: {}; in another build the seed may give another run\n", toolchain::shown())
}
