//! The lines that the seeds of a test have reached: a seed that fails is information, and so is a state that no seed
//! reaches.
//!
//! A line is known once it has run. A macro in code that no seed runs is not: to list it, the linker would have to
//! collect it, with unsafe attributes in the user's code, and would collect those of all tests in the executable,
//! though each test reaches others. So a test says itself what it must reach, see
//! [`Current::must_reach`](super::Current::must_reach).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

thread_local! {
    /// Of the simulation on this thread.
    static REACHED: RefCell<Option<Reached>> = const { RefCell::new(None) };
}

/// Asserts a condition like [`assert!`], and counts the seeds that reach this line.
///
/// Outside of a simulation it is an `assert!`. `MINI_SIM_COVERAGE=1` shows the counts.
///
/// # Examples
///
/// ```
/// async fn transfers() {
///     let (sent, received) = (3, 3);
///     mini::sim::assert_always!(sent == received, "no money is lost: {sent} sent, {received} received");
/// }
///
/// mini::sim::Sim::new(1).run(transfers()).unwrap();
/// ```
///
/// # Panics
///
/// If the condition does not hold.
#[doc(hidden)]
#[macro_export]
macro_rules! __sim_assert_always {
    ($condition:expr $(,)?) => {{
        $crate::sim::note_always(::core::stringify!($condition));
        ::core::assert!($condition);
    }};
    ($condition:expr, $text:literal $($arguments:tt)*) => {{
        $crate::sim::note_always($text);
        ::core::assert!($condition, $text $($arguments)*);
    }};
}

/// Requires that the condition holds in at least one seed of a test: otherwise the test misses what it should test.
///
/// A [`#[mini::test(sim)]`](crate::test) fails if all of its seeds pass, one of them reached this line, and the
/// condition held in none. If no seed reached this line, the line is unknown, unless the test requires it by
/// [`must_reach`](crate::sim::Current::must_reach) with its text. A run with fewer seeds than the test asks for
/// (`MINI_SEED`, `MINI_SEEDS`) only shows what it has reached.
///
/// This applies to each test separately. In code that several tests share, a test fails if it reaches this line and the
/// condition never holds in it, even if it holds in other tests. If it should hold only in some tests, write
/// `if condition { assert_reachable!("text") }` with an [`assert_reachable!`](crate::sim::assert_reachable) there, and
/// `must_reach("text")` in these tests.
///
/// Nothing is counted outside a test with seeds, nor in a [`Sim`](crate::sim::Sim) that a program runs by itself.
/// Outside a simulation the condition is not evaluated.
///
/// # Examples
///
/// ```
/// use mini::sync::mpsc;
///
/// // The body of a #[mini::test(sim, seeds = 200)].
/// async fn all_that_is_sent_is_received() {
///     let (send, mut receive) = mpsc::channel(2);
///     let receives = mini::spawn(async move { while receive.recv().await.is_some() {} });
///     for number in 0..10 {
///         mini::sim::assert_sometimes!(send.capacity() == 0, "the queue is full");
///         send.send(number).await.unwrap();
///     }
///     drop(send);
///     receives.await.unwrap();
/// }
/// # mini::sim::Seeds::new("docs", "all_that_is_sent_is_received", 200).run(all_that_is_sent_is_received);
/// # let never = std::panic::catch_unwind(|| {
/// #     mini::sim::Seeds::new("docs", "never", 2).run(|| async { mini::sim::assert_sometimes!(1 > 2, "large") })
/// # });
/// # assert!(never.unwrap_err().downcast::<String>().unwrap().starts_with("no seed of 2 reached \"large\"\n"));
/// ```
///
/// ```text
/// no seed of 200 reached "the queue is full"
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __sim_assert_sometimes {
    ($condition:expr, $text:literal $(,)?) => {
        if $crate::sim::is_simulated() {
            $crate::sim::note_sometimes($text, $condition);
        }
    };
}

/// Requires that at least one seed of a test reaches this line, if the test calls
/// [`must_reach`](crate::sim::Current::must_reach). `MINI_SIM_COVERAGE=1` shows the number of seeds that did.
///
/// It does nothing outside a test with seeds, nor in a [`Sim`](crate::sim::Sim) that a program runs by itself.
///
/// # Examples
///
/// See [`must_reach`](crate::sim::Current::must_reach).
#[doc(hidden)]
#[macro_export]
macro_rules! __sim_assert_reachable {
    ($text:literal $(,)?) => {
        if $crate::sim::is_simulated() {
            $crate::sim::note_reachable($text);
        }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Always,
    Sometimes,
    Reachable,
    Must,
}

/// A line whose reach is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    file: &'static str,
    line: u32,
    column: u32,
    kind: Kind,
    text: &'static str,
}

/// The lines that one seed came to, and whether their conditions held there once.
#[derive(Debug, Default)]
pub(super) struct Reached(BTreeMap<Point, bool>);

/// A simulation begins on this thread.
pub(super) fn begin() {
    REACHED.set(Some(Reached::default()));
}

/// It ends.
pub(super) fn end() -> Reached {
    REACHED.take().unwrap_or_default()
}

#[track_caller]
fn note(kind: Kind, text: &'static str, holds: bool) {
    let location = Location::caller();
    let (file, line, column) = (location.file(), location.line(), location.column());
    REACHED.with_borrow_mut(|reached| {
        if let Some(Reached(points)) = reached {
            *points.entry(Point { file, line, column, kind, text }).or_default() |= holds;
        }
    });
}

#[doc(hidden)]
#[track_caller]
pub fn note_always(text: &'static str) {
    if mini_context::sim::is_simulated() {
        note(Kind::Always, text, true);
    }
}

#[doc(hidden)]
#[track_caller]
pub fn note_sometimes(text: &'static str, holds: bool) {
    note(Kind::Sometimes, text, holds);
}

#[doc(hidden)]
#[track_caller]
pub fn note_reachable(text: &'static str) {
    note(Kind::Reachable, text, true);
}

#[track_caller]
pub(super) fn note_must(text: &'static str) {
    note(Kind::Must, text, false);
}

/// The lines that the seeds of a test came to. As text it is a table.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    seeds: u64,
    rows: BTreeMap<Point, Row>,
}

/// The number of seeds that reached a line, and of those in which its condition held.
#[derive(Debug, Default)]
struct Row {
    came: u64,
    held: u64,
}

impl Coverage {
    /// Adds a seed.
    pub(super) fn add(&mut self, reached: &Reached) {
        self.seeds += 1;
        for (point, held) in &reached.0 {
            let row = self.rows.entry(*point).or_default();
            row.came += 1;
            row.held += u64::from(*held || point.kind == Kind::Must && reached.holds(point.text));
        }
    }

    /// What should have been reached, and was not.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let must = |point: &Point| matches!(point.kind, Kind::Sometimes | Kind::Must);
        let mut texts = Vec::new();
        for (point, _) in self.rows.iter().filter(|(point, row)| must(point) && row.held == 0) {
            if !texts.contains(&point.text) {
                texts.push(point.text);
            }
        }
        texts
    }

    pub(super) fn seeds(&self) -> u64 {
        self.seeds
    }
}

impl Reached {
    /// Whether the seed has reached that text somewhere.
    fn holds(&self, text: &str) -> bool {
        self.0.iter().any(|(point, held)| *held && point.text == text)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  reached by {} seeds:", self.seeds)?;
        for (point, row) in &self.rows {
            let Point { file, line, kind, text, .. } = point;
            let kind = match kind {
                Kind::Always => "always",
                Kind::Sometimes => "sometimes",
                Kind::Reachable => "reachable",
                Kind::Must => "must",
            };
            write!(f, "  {:>7} {kind:<9}  {text:?} at {file}:{line}", row.held)?;
            let came = if row.came > row.held { format!(", of {} that ran the line", row.came) } else { String::new() };
            writeln!(f, "{came}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(f: impl FnOnce()) -> Reached {
        begin();
        f();
        end()
    }

    #[test]
    fn what_holds_in_one_seed_is_enough_and_what_must_be_reached_is_found_by_its_text() {
        let mut coverage = Coverage::default();
        for number in 0..4 {
            coverage.add(&seed(|| {
                note_must("now and then");
                note_must("at no time");
                (0..3).for_each(|turn| note_sometimes("is two", turn == 2));
                note_sometimes("is three", number == 3);
                note_sometimes("is nine", number == 9);
                if number == 1 {
                    note_reachable("now and then");
                }
            }));
        }
        assert_eq!(coverage.missing(), ["at no time", "is nine"]);
        let text = coverage.to_string();
        let line = |row: &str| text.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{text}"));
        assert!(text.starts_with("  reached by 4 seeds:\n"), "{text}");
        assert!(line("\"is two\"").starts_with("        4 sometimes  \"is two\" at "), "{text}");
        assert!(line("\"is nine\"").ends_with(", of 4 that ran the line"), "{text}");
        assert!(line(" reachable ").starts_with("        1 "), "{text}");
    }

    #[test]
    fn without_a_simulation_nothing_is_noted() {
        note_always("nowhere");
        note_sometimes("nowhere", false);
        assert!(end().0.is_empty());
    }
}
