//! The last steps of a simulation and the faults between them, as text.
//!
//! Repetitions are folded into one line: a task that runs many times in a row, and a few tasks that run in turn.

use mini_context::sim::Fault;

use super::run::Trace;
use super::steps::Step;
use super::world::World;

/// The most lines. What was before them is seldom what a reader looks for, and the dump stands above.
const LINES: usize = 40;

/// The most tasks that are folded if they run in turn.
const IN_TURN: usize = 3;

/// Of more faults between two steps not all are shown: those are in the list of the faults.
const FAULTS: usize = 3;

/// See the module.
#[derive(Default)]
pub(super) struct Last(String);

/// An item with a line of its own, unless it is folded.
#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Step(&'a Step),
    Fault(&'a Fault),
    /// So many faults more, from this one on.
    Faults(usize, &'a Fault),
}

impl Last {
    pub(super) fn of(world: &World, trace: &Trace) -> Self {
        let (steps, count) = world.with_steps(|steps| (steps.last().copied().collect::<Vec<_>>(), steps.sum().0));
        let is_cut = count > steps.len() as u64;
        let name_of = |number| trace.tasks.shown(number);
        Self(told(&lines(&items(&steps, trace.faults.injected()), name_of), is_cut))
    }

    /// With a line above, if there is something.
    pub(super) fn told(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("  the last steps:\n{}", self.0) }
    }
}

fn told(lines: &[String], is_cut: bool) -> String {
    let left_out = lines.len().saturating_sub(LINES);
    let dots = if is_cut || left_out > 0 { "        ...\n" } else { "" };
    dots.to_owned() + &lines[left_out..].concat()
}

/// The steps, and behind each the faults that came before the next one.
fn items<'a>(steps: &'a [Step], faults: &'a [Fault]) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for (nth, step) in steps.iter().enumerate() {
        items.push(Item::Step(step));
        let end = steps.get(nth + 1).map_or(faults.len(), |next| next.faults);
        let between = faults.get(step.faults..end).unwrap_or_default();
        let shown = if between.len() > FAULTS { FAULTS - 1 } else { between.len() };
        items.extend(between[..shown].iter().map(Item::Fault));
        items.extend(between.get(shown).map(|next| Item::Faults(between.len() - shown, next)));
    }
    items
}

/// `name_of` names a task by its number.
fn lines(items: &[Item<'_>], name_of: impl Fn(u64) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let (at, text, count) = match first {
            Item::Step(step) => {
                let (period, rounds) = turns(rest);
                let (run, after) = (period * rounds, &rest[..period]);
                let names: Vec<String> = after.iter().filter_map(Item::task).map(&name_of).collect();
                let ends = rest[run - 1].step().filter(|last| last.at != step.at);
                let until = ends.map(|last| format!(", until {:.6} s", last.at.as_secs_f64()));
                (step.at, joined(&names) + &times(rounds) + &until.unwrap_or_default(), run)
            }
            Item::Fault(fault) => (fault.at, format!("#{} {}", fault.number, fault.text.trim_end_matches(',')), 1),
            Item::Faults(count, fault) => (fault.at, format!("{count} more faults from #{} on", fault.number), 1),
        };
        lines.push(format!("    {:>12.6} s  {text}\n", at.as_secs_f64()));
        rest = &rest[count..];
    }
    lines
}

/// How many tasks run in turn at the beginning of `items`, and how often: those that fold most.
fn turns(items: &[Item<'_>]) -> (usize, usize) {
    let mut best = (1, 1);
    for period in 1..=IN_TURN.min(items.len()) {
        let first = &items[..period];
        let is_same = |round: &&[Item<'_>]| round.iter().zip(first).all(|(one, other)| one.runs_as(other));
        let rounds = items.chunks_exact(period).take_while(is_same).count();
        // Two at different times are two events to a reader.
        let is_one_moment = || items[1].step().map(|step| step.at) == items[0].step().map(|step| step.at);
        let is_enough = rounds >= 3 || period == 1 && rounds == 2 && is_one_moment();
        if is_enough && period * rounds > best.0 * best.1 {
            best = (period, rounds);
        }
    }
    best
}

fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first @ .., last] => format!("{} and {last}, in turn", first.join(", ")),
    }
}

fn times(rounds: usize) -> String {
    if rounds > 1 { format!(", {rounds} times") } else { String::new() }
}

impl<'a> Item<'a> {
    fn step(&self) -> Option<&'a Step> {
        match self {
            Item::Step(step) => Some(step),
            _ => None,
        }
    }

    fn task(&self) -> Option<u64> {
        self.step().map(|step| step.number)
    }

    /// Whether both are steps of one task.
    fn runs_as(&self, other: &Self) -> bool {
        self.task().is_some() && self.task() == other.task()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Of steps, which are a task and a millisecond each, and of a fault after each of the steps `faults`.
    fn shown(steps: &[(u64, u64)], faults: &[usize]) -> String {
        let before = |nth: usize| faults.iter().filter(|&&step| step < nth).count();
        let step = |(nth, &(number, at)): (usize, &(u64, u64))| Step {
            number,
            at: Duration::from_millis(at),
            faults: before(nth),
        };
        let steps: Vec<Step> = steps.iter().enumerate().map(step).collect();
        let fault = |(number, &step): (u64, &usize)| Fault { number, at: steps[step].at, text: "a loss".to_owned() };
        let faults: Vec<Fault> = (1..).zip(faults).map(fault).collect();
        let name_of = |number| format!("task {number}");
        lines(&items(&steps, &faults), name_of).concat().replace("        0.00", "")
    }

    #[test]
    fn a_task_that_runs_often_has_one_line() {
        assert_eq!(shown(&[(1, 0), (1, 0), (2, 1)], &[]), "0000 s  task 1, 2 times\n1000 s  task 2\n");
        assert_eq!(shown(&[(1, 0), (1, 1)], &[]), "0000 s  task 1\n1000 s  task 1\n", "two moments");
        assert_eq!(shown(&[(1, 0), (1, 1), (1, 2)], &[]), "0000 s  task 1, 3 times, until 0.002000 s\n");
    }

    #[test]
    fn tasks_that_run_in_turn_have_one_line() {
        let both = [(1, 0), (2, 0)].repeat(3);
        assert_eq!(shown(&both, &[]), "0000 s  task 1 and task 2, in turn, 3 times\n");
        let three = [(1, 0), (2, 0), (3, 1)].repeat(4);
        let line = "0000 s  task 1, task 2 and task 3, in turn, 4 times, until 0.001000 s\n";
        assert_eq!(shown(&three, &[]), line);
        assert_eq!(shown(&both[..4], &[]).lines().count(), 4, "twice says little");
        assert_eq!(shown(&[&both[..], &[(1, 3)]].concat(), &[]).lines().count(), 2);
    }

    #[test]
    fn faults_stand_where_they_happened_and_end_what_is_folded() {
        let text = shown(&[(1, 0), (1, 0), (1, 1)], &[1]);
        assert_eq!(text, "0000 s  task 1, 2 times\n0000 s  #1 a loss\n1000 s  task 1\n");
        let text = shown(&[(1, 0), (2, 1)], &[0, 0, 0, 0]);
        assert_eq!(
            text,
            "0000 s  task 1\n0000 s  #1 a loss\n0000 s  #2 a loss\n0000 s  2 more faults from #3 on\n1000 s  task 2\n"
        );
    }

    #[test]
    fn what_is_left_out_is_marked() {
        let lines = vec!["a\n".to_owned(); LINES];
        assert_eq!(told(&lines, false), "a\n".repeat(LINES));
        assert_eq!(told(&lines, true), format!("        ...\n{}", "a\n".repeat(LINES)));
        assert_eq!(told(&[&lines[..], &lines[..1]].concat(), false).lines().count(), LINES + 1);
    }
}
