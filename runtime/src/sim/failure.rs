//! The failure of a simulation, and its report.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mini_context::sim::{Fault, Faults};
use mini_kernel::task::error::message;

use super::last::Last;
use super::unseen::{Errors, Unseen};
use super::world::Halt;
use crate::insight::Dump;

/// The most faults that a report lists.
const LISTED: usize = 20;

/// The reason why a simulation failed. Its `Display` also shows what every task waited for, and which tasks ran last.
///
/// # Examples
///
/// ```
/// use mini::sync::Notify;
///
/// let notify = Notify::new();
/// let failure = mini::sim::Sim::new(3).run(notify.notified()).unwrap_err();
/// let text = failure.to_string();
/// assert!(text.starts_with("seed 3: deadlock: nothing is left that could wake a task"), "{text}");
/// assert!(text.contains("the main task waits for Notify at "), "{text}");
/// ```
pub struct Failure(Box<Details>); // boxed, as results that hardly ever are one carry it

pub(super) struct Details {
    pub(super) seed: u64,
    pub(super) cause: Cause,
    pub(super) faults: Arc<Faults>,
    pub(super) dump: Option<Dump>,
    pub(super) last: Last,
    pub(super) errors: Errors,
}

pub(super) enum Cause {
    /// With its place, if that is known.
    Panic(Box<dyn Any + Send>, Option<String>),
    /// Of tasks that nobody joined, in the order in which they panicked.
    Unseen(Vec<Unseen>),
    Halt(Halt),
    /// The test has returned an error.
    Returned(String),
}

/// The characteristics that two runs share if they fail in the same way: the kind and the place of the failure, and the
/// words of its text. Numbers, and the number of times a word occurs, depend on earlier events. Only the first line of
/// a panic counts, as an `assert_eq!` has its values on the other lines. Only the first of several panics counts, as it
/// may have led to the others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kin {
    kind: &'static str,
    place: Option<String>,
    words: BTreeSet<String>,
}

impl Failure {
    pub(super) fn new(details: Details) -> Self {
        Self(Box::new(details))
    }

    /// Returns the seed: the same program fails under it again.
    ///
    /// # Examples
    ///
    /// ```
    /// let failure = mini::sim::Sim::new(3).run(std::future::pending::<()>()).unwrap_err();
    /// assert_eq!(failure.seed(), 3);
    /// ```
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Returns the state of every task at the failure, if the simulation got that far.
    ///
    /// # Examples
    ///
    /// ```
    /// let failure = mini::sim::Sim::new(3).run(std::future::pending::<()>()).unwrap_err();
    /// assert!(failure.dump().unwrap().tasks().is_empty()); // there is only the main task
    /// ```
    pub fn dump(&self) -> Option<&Dump> {
        self.0.dump.as_ref()
    }

    /// Returns the faults that were injected, in their order: with [`Sim::skip`](super::Sim::skip) a run leaves some
    /// out.
    ///
    /// # Examples
    ///
    /// See [`Sim::skip`](super::Sim::skip).
    pub fn faults(&self) -> &[Fault] {
        self.0.faults.injected()
    }

    pub(super) fn kin(&self) -> Kin {
        let (kind, place, text) = match &self.0.cause {
            Cause::Panic(payload, place) => ("panic", place.clone(), message(payload.as_ref()).lines().next()),
            Cause::Unseen(panics) => {
                let first = panics.first();
                ("unseen", first.and_then(|first| first.place.clone()), first.map(|first| &first.text[..]))
            }
            Cause::Halt(Halt(text)) => ("halt", None, text.lines().next()),
            Cause::Returned(text) => ("returned", None, text.lines().next()),
        };
        Kin { kind, place, words: words(text.unwrap_or_default()) }
    }

    /// The failure, with that line about its faults.
    pub(super) fn told(&self, of_faults: &str) -> String {
        let Details { seed, cause, dump, last, errors, .. } = &*self.0;
        let mut text = match cause {
            Cause::Panic(payload, place) => {
                let place = place.as_ref().map_or(String::new(), |place| format!("  at {place}\n"));
                format!("seed {seed}: panicked: {}\n{place}", message(payload.as_ref()))
            }
            Cause::Unseen(panics) => {
                let texts: Vec<&str> = panics.iter().map(|panic| &panic.text[..]).collect();
                format!("seed {seed}: {}\n", texts.join("; "))
            }
            Cause::Halt(Halt(text)) => format!("seed {seed}: {text}\n"),
            Cause::Returned(text) => format!("seed {seed}: the test returned an error: {text}\n"),
        };
        text += of_faults;
        text += &errors.told();
        if let Some(dump) = dump {
            text += &dump.to_string();
        }
        text + &last.told()
    }

    /// The line about its faults, if there were some.
    pub(super) fn of_faults(&self) -> String {
        match self.0.faults.count() {
            0 => String::new(),
            count => format!("  {} of {count} faults were injected{}\n", self.faults().len(), list(self.faults())),
        }
    }
}

impl Kin {
    /// Whether a run whose place is not known may have failed in the same way.
    pub(super) fn is_like(&self, unplaced: &Self) -> bool {
        self.kind == unplaced.kind && self.words == unplaced.words
    }
}

/// `faults` behind a colon, if there are some.
pub(super) fn list(faults: &[Fault]) -> String {
    let mut text = String::new();
    for (nth, fault) in faults.iter().take(LISTED).enumerate() {
        text += if nth == 0 { ": " } else { ", " };
        text += &fault.to_string();
    }
    if faults.len() > LISTED {
        text += &format!(", and {} more", faults.len() - LISTED);
    }
    text
}

/// The words of a text. What has a digit in it is none: a number, an address, a task's id.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    words
        .filter(|word| !word.is_empty() && !word.contains(|char: char| char.is_ascii_digit()))
        .map(String::from)
        .collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&self.of_faults()))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn panics(text: &str, place: &str) -> Kin {
        let cause = Cause::Panic(Box::new(text.to_owned()), Some(place.to_owned()));
        let (faults, last) = (Arc::default(), Last::default());
        Failure::new(Details { seed: 1, cause, faults, dump: None, last, errors: Errors::default() }).kin()
    }

    #[test]
    fn failures_are_the_same_whatever_their_numbers_are() {
        let kin = panics("lost 3 of [1, 2] at 0x7ffe\n left: 1", "a.rs:7");
        assert_eq!(kin, panics("lost 1 of [1, 2, 5] at 0x8ffe\n left: 2", "a.rs:7"));
        assert_ne!(kin, panics("lost 1 of [1, 2, 5] at 0x8ffe", "a.rs:8"));
        assert_ne!(kin, panics("found 3 of [1, 2]", "a.rs:7"));
    }

    #[test]
    fn a_long_list_of_faults_is_cut() {
        let fault = |number| Fault { number, at: Duration::from_millis(number), text: "loses a packet".to_owned() };
        let faults: Vec<Fault> = (1..=25).map(fault).collect();
        assert_eq!(list(&faults[..1]), ": #1 loses a packet at 0.001000 s");
        assert!(list(&faults).ends_with(", #20 loses a packet at 0.020000 s, and 5 more"));
        assert_eq!(list(&[]), "");
    }
}
