//! `Stay`: when an entry has stayed long enough at a reactor on whose threads nobody waits any more.
//!
//! Called by `registration` at every wait. A single wait elsewhere says little: a task that was stolen once is soon back.
//! Two in a row, with none at home in between, are a reason to move. Each move doubles the number, up to sixteen; a long
//! run of waits at home sets it back to two. So two tasks that use one socket on two workers, in whatever order, cause one
//! move (a microsecond) per fifteen waits at most, while a task that has really moved takes its sockets along at once.
//!
//! It is a guess, from counts that are loaded and stored without a read-modify-write: two threads that wait at the same
//! moment may lose a count, which makes a move early or late, and nothing else.
//!
//! # Rejected
//!
//! - Letting the reader alone decide: a task that only writes would never take its socket along.
//! - Doubling without an end, or without a way back: a connection that lives for days would some day be nailed down.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// With this many waits at home in a row a stay is a long one.
const LONG: u8 = 32;

/// As many waits in a row elsewhere end a long stay, and twice as many for every move since the last long one.
const FIRST_PATIENCE: u8 = 2;

const MOST_DOUBLINGS: u8 = 3;

/// A `Count` in one word.
#[derive(Debug)]
pub(super) struct Stay(AtomicU32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// Waits elsewhere since the last one at home.
    away: u8,
    /// Waits at home since the last one elsewhere, up to `LONG`.
    home: u8,
    /// Moves since the last long stay, up to `MOST_DOUBLINGS`.
    moves: u8,
}

impl Count {
    const SETTLED: Count = Count { away: 0, home: LONG, moves: 0 };

    const fn pack(self) -> u32 {
        u32::from_le_bytes([self.away, self.home, self.moves, 0])
    }

    const fn unpack(word: u32) -> Count {
        let [away, home, moves, _] = word.to_le_bytes();
        Count { away, home, moves }
    }
}

impl Stay {
    /// Somebody waits on a thread of this reactor.
    pub(super) fn wait_at_home(&self) {
        let word = self.0.load(Relaxed);
        // The usual case costs no store.
        if word != Count::SETTLED.pack() {
            self.count_home(Count::unpack(word));
        }
    }

    /// Somebody waits on a thread of another reactor; true if that was once too often.
    pub(super) fn wait_away(&self) -> bool {
        let mut now = self.now();
        now.away = now.away.saturating_add(1);
        now.home = 0;
        self.set(now);
        now.away >= FIRST_PATIENCE << now.moves
    }

    /// A move, or one that has failed.
    pub(super) fn end(&self) {
        let now = self.now();
        self.set(Count { away: 0, home: 0, moves: MOST_DOUBLINGS.min(now.moves + 1) });
    }

    #[cold]
    fn count_home(&self, now: Count) {
        let home = LONG.min(now.home + 1);
        self.set(Count { away: 0, home, moves: if home == LONG { 0 } else { now.moves } });
    }

    fn now(&self) -> Count {
        Count::unpack(self.0.load(Relaxed))
    }

    fn set(&self, count: Count) {
        self.0.store(count.pack(), Relaxed);
    }
}

impl Default for Stay {
    /// The first move is not put off by what came before: nothing did.
    fn default() -> Stay {
        Stay(AtomicU32::new(Count::SETTLED.pack()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits elsewhere until a move; returns how many.
    fn away(stay: &Stay) -> usize {
        let waits = (1..100).find(|_| stay.wait_away()).expect("it gives in");
        stay.end();
        waits
    }

    #[test]
    fn waits_elsewhere_count_only_in_a_row() {
        let stay = Stay::default();
        for _ in 0..100 {
            assert!(!stay.wait_away());
            stay.wait_at_home();
        }
        assert_eq!(away(&stay), 2);
    }

    #[test]
    fn moves_make_it_patient_and_a_long_stay_quick_again() {
        let stay = Stay::default();
        assert_eq!([(); 6].map(|()| away(&stay)), [2, 4, 8, 16, 16, 16]);
        for _ in 0..LONG {
            stay.wait_at_home();
        }
        assert_eq!(away(&stay), 2);
    }

    /// Two owners take turns that are as long as `burst` says; returns how often the entry moves.
    fn moves_of_two_owners(waits: usize, mut burst: impl FnMut() -> usize) -> usize {
        let (stay, mut home, mut owner, mut left, mut moves) = (Stay::default(), 0, 0, 0, 0);
        for _ in 0..waits {
            if left == 0 {
                (owner, left) = (1 - owner, burst());
            }
            left -= 1;
            if owner == home {
                stay.wait_at_home();
            } else if stay.wait_away() {
                stay.end();
                (home, moves) = (owner, moves + 1);
            }
        }
        moves
    }

    #[test]
    fn two_owners_move_it_once_in_fifteen_waits_at_most() {
        const WAITS: usize = 10_000;
        let bounded = |moves: usize| moves <= 4 + WAITS / 15;
        for burst in 1..100 {
            let moves = moves_of_two_owners(WAITS, || burst);
            assert!(bounded(moves), "{moves} moves with turns of {burst}");
        }
        // The worst: each turn ends with the move that it has caused, but for the run at home that brings patience down.
        let mut turns = [34, 4, 8, 16].into_iter().cycle();
        assert!(bounded(moves_of_two_owners(WAITS, || turns.next().unwrap())));
        let mut seed = 1u32;
        let moves = moves_of_two_owners(WAITS, || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1 + (seed >> 26) as usize
        });
        assert!(bounded(moves), "{moves} moves with turns of any length");
    }
}
