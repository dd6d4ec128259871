//! A seed on all runtimes, one after the other, each in a process of its own; mini twice.
//!
//! [`Round::play`] is the parent's side, [`child`] what the process does: it draws the same workload again, runs it and
//! prints a line. A machine that others share stops a process for milliseconds now and then, which is the 99th
//! percentile of a whole run; the median of several runs is not.
//!
//! Rejected: processes that live through all seeds. A backlog, a heap or an opinion about the load would go from one
//! seed to the next.

use std::process::{self, Command};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::CHILD;
use super::draw::Draw;
use super::outcome::{FIGURES, Outcome};
use super::outside::Outside;
use super::stage::Stage;
use super::tasks::perform;
use crate::cpus::{self, Pin};
use crate::load::Load;
use crate::measured::Better;
use crate::peer::Peer;
use crate::rt::mini::Mini;
use crate::rt::smol::{SmolLocal, SmolShared};
use crate::rt::tokio::Tokio;
use crate::rt::{Flavour, Rt};

/// The runtimes of a round, in the order of the columns. mini is there twice, so that it can be compared with itself.
pub(super) const RUNNERS: [Peer; 4] = [Peer::Mini, Peer::Mini, Peer::Tokio, Peer::Smol];

/// The order in which they run: what disturbs one run of mini also disturbs the runtimes around it.
const ORDER: [usize; RUNNERS.len()] = [0, 2, 1, 3];

/// The flavours, with the CPUs that each has.
pub(super) const FLAVOURS: [(Flavour, &str, usize); 2] = [(Flavour::CurrentThread, "ct", 1), (Flavour::TWO, "mt", 2)];

/// Time for a runtime to start its tasks before the first event.
const LEAD: Duration = Duration::from_millis(30);

/// How long a process may need beyond its span. After that it hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// A seed on one flavour of all runtimes.
pub(super) struct Round {
    pub(super) seed: u64,
    pub(super) load: f64,
    /// As in [`FLAVOURS`].
    pub(super) flavour: &'static str,
    /// As in [`RUNNERS`].
    pub(super) outcomes: [Outcome; RUNNERS.len()],
}

impl Round {
    /// Runs each runtime `times` times, interleaved and each time beginning with another runtime; the outcomes are the
    /// medians.
    pub(super) fn play(seed: u64, flavour: usize, times: u64, span: Duration, load: Load) -> Result<Self, String> {
        let (_, name, cpus) = FLAVOURS[flavour];
        let mut outcomes = [const { Vec::new() }; RUNNERS.len()];
        for first in seed..seed.saturating_add(times) {
            for turn in 0..RUNNERS.len() {
                let runner = ORDER[(turn + first as usize) % RUNNERS.len()];
                let args =
                    [RUNNERS[runner].name(), name, &seed.to_string(), &span.as_nanos().to_string(), &load.to_arg()]
                        .map(str::to_owned);
                outcomes[runner].push(run_child(&args).map_err(|error| format!("{}: {error}", args.join(" ")))?);
            }
        }
        let outcomes = outcomes.map(|outcomes| Outcome::median(&outcomes));
        Ok(Self { seed, load: Draw::new(seed, cpus, span).load, flavour: name, outcomes })
    }

    /// mini's figure by that of the best of the others; `None` if the draw does not have it.
    pub(super) fn ratio(&self, figure: usize) -> Option<f64> {
        let [mini, _, others @ ..] = self.outcomes.each_ref().map(|outcome| outcome.figures[figure]);
        let best = others.into_iter().reduce(match FIGURES[figure].better {
            Better::Lower => f64::min,
            Better::Higher => f64::max,
        });
        Some(mini / best?).filter(|ratio| !ratio.is_nan())
    }

    /// mini's figure by its own in the other run.
    pub(super) fn noise(&self, figure: usize) -> Option<f64> {
        let [mini, again, ..] = self.outcomes.each_ref().map(|outcome| outcome.figures[figure]);
        Some(mini / again).filter(|ratio| !ratio.is_nan())
    }
}

fn run_child(args: &[String]) -> Result<Outcome, String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(exe).arg(CHILD).args(args).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Outcome::parse(&text).ok_or_else(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs a seed as `args` say and returns the line to print.
pub(super) fn child(args: &[String]) -> Result<String, String> {
    let [peer, flavour, seed, span, load] = args else { return Err(format!("`{CHILD}` wants five arguments")) };
    let found = FLAVOURS.into_iter().find(|(_, name, _)| name == flavour);
    let (flavour, _, cpus) = found.ok_or_else(|| format!("no flavour is called `{flavour}`"))?;
    let number = |text: &String| text.parse().map_err(|_| format!("`{text}` is not a number"));
    let (seed, span, load) = (number(seed)?, Duration::from_nanos(number(span)?), load.parse()?);
    let pin = if cpus == 1 { Pin::One } else { Pin::Two };
    cpus::pin(pin, &cpus::allowed()).map_err(|error| format!("cannot be pinned: {error}"))?;
    end_at(Instant::now() + span + PATIENCE);
    let draw = Draw::new(seed, cpus, span);
    let outcome = match (Peer::parse(peer)?, cpus) {
        (Peer::Mini, _) => play::<Mini>(draw, flavour, span, load),
        (Peer::Tokio, _) => play::<Tokio>(draw, flavour, span, load),
        (Peer::Smol, 1) => play::<SmolLocal>(draw, flavour, span, load),
        (Peer::Smol, _) => play::<SmolShared>(draw, flavour, span, load),
        (other, _) => return Err(format!("{} takes no part", other.name())),
    };
    Ok(outcome.to_line())
}

/// Ends a process that hangs.
fn end_at(deadline: Instant) {
    thread::spawn(move || {
        thread::sleep(deadline.saturating_duration_since(Instant::now()));
        eprintln!("it has not ended in time");
        process::exit(1);
    });
}

fn play<R: Rt>(draw: Draw, flavour: Flavour, span: Duration, load: Load) -> Outcome {
    let rt = R::start(flavour).expect("the system lets it run");
    let outside = Outside::new(flavour == Flavour::CurrentThread && cpus::has_other());
    let stage = Arc::new(Stage::new(Instant::now() + LEAD, span, load));
    let (records, cpu) = rt.block_on({
        let draw = draw.clone();
        async move { R::spawn(perform::<R>(draw, stage, outside)).await }
    });
    Outcome::new(&draw, &records, cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lottery::draw::Kind;

    const SPAN: Duration = Duration::from_millis(20);

    #[test]
    fn every_runtime_plays_every_kind() {
        let load = Load::calibrate(true);
        let (mut kinds, mut work, mut jobs) = (Vec::new(), [0.0; 3], [0.0; 3]);
        for seed in 0..12 {
            for (flavour, _, cpus) in FLAVOURS {
                let draw = Draw::new(seed, cpus, SPAN);
                kinds.extend(draw.parts.iter().map(|part| part.kind));
                let outcomes = [
                    play::<Mini>(draw.clone(), flavour, SPAN, load),
                    play::<Tokio>(draw.clone(), flavour, SPAN, load),
                    match cpus {
                        1 => play::<SmolLocal>(draw, flavour, SPAN, load),
                        _ => play::<SmolShared>(draw, flavour, SPAN, load),
                    },
                ];
                for (runtime, outcome) in outcomes.iter().enumerate() {
                    assert_is_in_range(outcome);
                    work[runtime] += outcome.figures[3];
                    jobs[runtime] += if outcome.figures[4].is_nan() { 0.0 } else { outcome.figures[4] };
                }
            }
        }
        assert!(Kind::ALL.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
        assert!(work.iter().chain(&jobs).all(|done| *done > 0.0), "work {work:?}, that of jobs {jobs:?}");
    }

    /// Figures of jobs are NaN in a draw without jobs.
    fn assert_is_in_range(outcome: &Outcome) {
        let longest = SPAN.as_micros() as f64;
        let [p50, p99, completion, work, jobs, cost] = outcome.figures;
        assert!(0.0 < p50 && p50 <= p99 && p99 <= longest, "{outcome:?}");
        assert!(completion.is_nan() || (0.0 < completion && completion <= longest), "{outcome:?}");
        assert!((0.0..=100.1).contains(&work), "{outcome:?}");
        assert!(jobs.is_nan() || (0.0..=100.1).contains(&jobs), "{outcome:?}");
        // Infinite if no work was done in time, and not a number if that took no measurable time either.
        assert!(cost > 0.0 || cost.is_nan(), "{outcome:?}");
    }

    #[test]
    fn ratios_are_to_the_best_and_to_itself() {
        let outcome = |latency: f64, work: f64| Outcome {
            figures: [latency, latency, f64::NAN, work, f64::NAN, 1.0],
            kinds: [[0.0; 3]; 8],
        };
        let outcomes = [outcome(2.0, 50.0), outcome(4.0, 50.0), outcome(1.0, 20.0), outcome(8.0, 100.0)];
        let round = Round { seed: 0, load: 0.5, flavour: "ct", outcomes };
        assert_eq!((round.ratio(0), round.ratio(2), round.ratio(3)), (Some(2.0), None, Some(0.5)));
        assert_eq!((round.noise(0), round.noise(3)), (Some(0.5), Some(1.0)));
    }
}
