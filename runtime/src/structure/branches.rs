//! `Branches`: the futures of a `join!` or a `race!`, side by side in one value.
//!
//! A list of pairs, which the macros build and take apart: `Pair(Pair(Empty, first), second)`. It has no allocation,
//! and the compiler makes straight code of a walk along it. The type of a branch decides what happens to the output of
//! its future: a branch of a join keeps it; the branches of a race have their own list in `race.rs`.
//!
//! The macros add a branch behind others, at one step of their recursion, so that the compiler's `recursion_limit` of
//! 128 leaves room for more than a hundred.
//!
//! A poll walks the list twice, from some branch to the end and then from the beginning to that branch. The first
//! branch changes from poll to poll, so a branch that spends the budget does not starve those behind it.
//!
//! Rejected: a tuple type for each number of branches (a limit, and the same code by a macro). An array of boxes (an
//! allocation for each branch).

use std::cell::Cell;

use mini_kernel::primitives::thread_local;

/// A list without a branch.
pub struct Empty;

/// The branches that a walk polls: from `from` on, before `to`.
#[derive(Clone, Copy)]
pub struct Walk {
    from: usize,
    to: usize,
}

impl Walk {
    /// Two walks that come to all of `len` branches, to `start` first.
    pub(super) fn all(start: usize, len: usize) -> [Self; 2] {
        [Self { from: start, to: len }, Self { from: 0, to: start }]
    }

    /// Whether it polls the branch behind `before` others.
    pub(super) fn comes_to(self, before: usize) -> bool {
        (self.from..self.to).contains(&before)
    }
}

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Sets what the next draws on this thread come from; returns what it was. For simulations.
#[cfg(feature = "sim")]
pub(crate) fn swap_drawn(drawn: u64) -> u64 {
    DRAWN.replace(drawn)
}

/// The branch that comes first in a race: as good as random, as races that follow each other in a loop may be of any
/// number, and a plain counter would give each of them the same branch again and again. The one place where it is
/// drawn. (A linear congruential generator; Knuth, "The Art of Computer Programming", 3.3.4.)
pub(super) fn draw(branches: usize) -> usize {
    let drawn = DRAWN.with(|drawn| {
        drawn.set(drawn.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        drawn.get() >> 32
    });
    ((drawn * branches as u64) >> 32) as usize
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_branch_is_drawn_as_often_as_others_also_when_races_alternate() {
        let mut drawn = [0; 2];
        for _ in 0..1_000 {
            drawn[draw(2)] += 1;
            let _of_another_race = draw(2);
        }
        assert!(drawn.iter().all(|times| *times > 400), "{drawn:?}");
        assert_eq!(draw(1), 0);
    }

    #[test]
    fn two_walks_come_to_each_branch_once() {
        for start in 0..3 {
            let mut came = Vec::new();
            for walk in Walk::all(start, 3) {
                came.extend((0..3).filter(|branch| walk.comes_to(*branch)));
            }
            assert_eq!(came, [start, (start + 1) % 3, (start + 2) % 3]);
        }
    }
}
