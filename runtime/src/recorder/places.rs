//! The lines that have spawned tasks, each with a small number that fits into an event.
//!
//! A spawn asks for the number of its line; an export asks for the line of a number. The export must take no lock that
//! a worker may want, so lines are in slots that are written once. A spawn finds a line that it has seen in a cache of
//! one load; only a new one takes a lock, among spawns.
//!
//! Rejected: a table for each worker (a task may end on another one). Lines leave the table never: a program has as
//! many as it has calls of `spawn`.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::OnceLock;

use crate::primitives::atomic::{AtomicU64, Ordering::Relaxed};
use crate::primitives::{Mutex, lock};

/// How many lines have a number; those that come later have none.
const MOST: usize = 4096;

/// How many lines are found without the lock.
const CACHED: usize = 256;

/// In place of the number of a line that has none.
const NOWHERE: u32 = 0;

pub(super) struct Places {
    lines: Box<[OnceLock<&'static Location<'static>>]>,
    /// Address in the upper 48 bits, number in the lower 16.
    cache: [AtomicU64; CACHED],
    /// By address.
    numbers: Mutex<HashMap<u64, u32>>,
}

impl Places {
    pub(super) fn new() -> Self {
        let lines = (0..MOST).map(|_| OnceLock::new()).collect();
        Self { lines, cache: [0; CACHED].map(AtomicU64::new), numbers: Mutex::default() }
    }

    /// The number of a line.
    pub(super) fn number(&self, line: &'static Location<'static>) -> u32 {
        let address = std::ptr::from_ref(line).addr() as u64;
        let cached = &self.cache[(address >> 3) as usize % CACHED];
        let word = cached.load(Relaxed);
        if word >> 16 == address {
            return (word & 0xffff) as u32;
        }
        let number = self.look_up(address, line);
        if address >> 48 == 0 {
            cached.store(address << 16 | u64::from(number), Relaxed);
        }
        number
    }

    fn look_up(&self, address: u64, line: &'static Location<'static>) -> u32 {
        let mut numbers = lock(&self.numbers);
        if let Some(number) = numbers.get(&address) {
            return *number;
        }
        let next = numbers.len() + 1;
        if next >= MOST {
            return NOWHERE;
        }
        let _ = self.lines[next].set(line); // under the lock, and each once
        numbers.insert(address, next as u32);
        next as u32
    }

    /// The line of a number, if it is one.
    pub(super) fn line(&self, number: u32) -> Option<&'static Location<'static>> {
        self.lines.get(number as usize)?.get().copied()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
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
        assert_eq!(places.line(NOWHERE), None);
        assert_eq!(places.line(u32::MAX), None);
    }

    #[test]
    fn when_the_table_is_full_further_lines_have_no_number() {
        let places = Places::new();
        let line = Location::caller();
        let numbers: Vec<u32> = (0..2 * MOST as u64).map(|address| places.look_up(address, line)).collect();
        assert!(numbers[..MOST - 1].iter().all(|&number| number != NOWHERE));
        assert!(numbers[MOST - 1..].iter().all(|&number| number == NOWHERE));
    }
}
