//! The lines that have spawned tasks, each with a small number that fits into an event.
//!
//! A spawn asks for the number of its line; an export asks for the line of a number. Neither waits for the other: a
//! line is in the first free slot from one on that its address gives, each of which is written once.
//!
//! Rejected: a table for each worker (a task may end on another one). Lines leave the table never: a program has as
//! many as it has calls of `spawn`.

use std::ptr;
use std::sync::OnceLock;

use super::Line;

/// How many slots there are.
const MOST: usize = 4096;

/// How many of them are tried.
const TRIES: usize = 64;

pub(super) struct Places(Box<[OnceLock<Line>]>);

impl Places {
    pub(super) fn new() -> Self {
        Self((0..MOST).map(|_| OnceLock::new()).collect())
    }

    /// The number of a line, or 0 if there is no room for it.
    #[inline]
    pub(super) fn number(&self, line: Line) -> u32 {
        let first = ptr::from_ref(line).addr() / size_of_val(line);
        let mut slots = (first..first + TRIES).map(|slot| slot % MOST);
        let found = slots.find(|&slot| ptr::eq(*self.0[slot].get_or_init(|| line), line));
        found.map_or(0, |slot| slot as u32 + 1)
    }

    /// The line of a number, if it is one.
    pub(super) fn line(&self, number: u32) -> Option<Line> {
        self.0.get((number as usize).checked_sub(1)?)?.get().copied()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn a_line_has_one_number_and_is_found_by_it() {
        let places = Places::new();
        let lines = [Location::caller(), Location::caller()];
        let numbers = lines.map(|line| places.number(line));
        assert_ne!(numbers[0], numbers[1]);
        for (line, number) in lines.into_iter().zip(numbers) {
            assert_eq!(places.number(line), number);
            assert_eq!(places.line(number), Some(line));
        }
        assert_eq!(places.line(0), None);
        assert_eq!(places.line(u32::MAX), None);
    }

    #[test]
    fn when_the_table_is_full_further_lines_have_no_number() {
        static LINES: OnceLock<Vec<Location<'static>>> = OnceLock::new();
        let places = Places::new();
        let lines = LINES.get_or_init(|| vec![*Location::caller(); 2 * MOST]);
        let mut numbers: Vec<u32> = lines.iter().map(|line| places.number(line)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (0..=MOST as u32).collect::<Vec<_>>(), "each slot has one, and the others have none");
    }
}
