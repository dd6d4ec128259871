//! The lines at which a program may be made to fail: each has random numbers of its own.
//!
//! They are drawn from the seed and the number of the line, in the order in which lines are first reached. One stream
//! for all lines would change at every line when a run is repeated without one fault. With a stream per line only the
//! consequences of that fault change, and shrinking relies on that. Adding a line that prints something also keeps the
//! same faults.
//!
//! Rejected: to draw from file, line and column (a comment above changes what a seed does).

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;

use mini_context::sim::Random;

thread_local! {
    /// Of the simulation on this thread.
    static SITES: RefCell<Option<Sites>> = const { RefCell::new(None) };
}

/// Streams of lines are apart from those with small numbers.
const STREAMS: u64 = 1 << 63;

struct Sites {
    seed: u64,
    /// By file, line and column.
    known: HashMap<(&'static str, u32, u32), Site>,
}

/// A line, in one seed.
pub(super) struct Site {
    random: Random,
    /// One line of four is on in a seed: if all were, no program would come far.
    pub(super) is_on: bool,
}

/// A simulation of `seed` begins on this thread.
pub(super) fn begin(seed: u64) {
    SITES.set(Some(Sites { seed, known: HashMap::new() }));
}

/// It ends.
pub(super) fn end() {
    SITES.set(None);
}

/// Asks the line `location`; `None` outside of a simulation.
pub(super) fn ask<T>(location: &'static Location<'static>, question: impl FnOnce(&mut Site) -> T) -> Option<T> {
    SITES.with_borrow_mut(|sites| {
        let Sites { seed, known } = sites.as_mut()?;
        let place = (location.file(), location.line(), location.column());
        let number = known.len() as u64;
        Some(question(known.entry(place).or_insert_with(|| Site::new(*seed, number))))
    })
}

/// The line as it is shown.
pub(super) fn shown(location: &Location<'_>) -> String {
    format!("{}:{}", location.file(), location.line())
}

impl Site {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed, STREAMS | number);
        let is_on = random.below(4) == 0;
        Self { random, is_on }
    }

    /// Draws whether something of that probability happens.
    pub(super) fn draw(&mut self, probability: f64) -> bool {
        self.random.happens(probability)
    }
}

/// The hash FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub(super) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Refuses what is no probability.
#[track_caller]
pub(super) fn check(probability: f64) {
    assert!((0.0..=1.0).contains(&probability), "{probability} is not a probability: expected a number from 0 to 1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_lines_is_on_and_draws_are_as_probable_as_they_should_be() {
        let sites = |number| Site::new(7, number);
        let on = (0..1000).filter(|&line| sites(line).is_on).count();
        assert!((200..300).contains(&on), "{on}");
        let mut site = sites(1);
        let hits = (0..1000).filter(|_| site.draw(0.1)).count();
        assert!((70..130).contains(&hits), "{hits}");
        assert!((0..100).all(|_| site.draw(1.0)) && !(0..100).any(|_| site.draw(0.0)));
    }

    #[test]
    fn the_hash_is_fnv() {
        assert_eq!(fnv(*b"foobar"), 0x8594_4171_f739_67e8); // as published with the hash
    }
}
