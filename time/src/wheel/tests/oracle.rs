//! Random operations on a wheel and on a sorted map, which must agree.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use mini_context::rules::FEW_TIMERS;

use super::super::{Key, NEVER, Wheel};
use super::{FAR, NEAR, TICK};

/// Sebastiano Vigna's SplitMix64: small, and good enough to choose operations.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Writes down which timer fired.
struct Recorder {
    id: u64,
    log: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        self.log.lock().unwrap().push(self.id);
    }
}

struct Timer {
    key: Key,
    deadline: u64,
    was_moved: bool,
}

/// The mix of operations in a run.
#[derive(Clone, Copy)]
enum Mix {
    All,
    /// Nothing is removed or moved, so that every answer of the wheel has to be exact.
    OnlyAdd,
    /// As `All`, beside so many timers for never that slots are refiled ahead of time.
    Ahead,
}

struct Model {
    random: Random,
    wheel: Wheel,
    now: u64,
    /// By number, which is the order of insertion.
    timers: HashMap<u64, Timer>,
    order: BTreeMap<(u64, u64), ()>,
    /// Fired or removed.
    stale: Vec<Key>,
    count: u64,
    log: Arc<Mutex<Vec<u64>>>,
    /// Nothing was removed or moved since the wheel was empty.
    is_exact: bool,
    /// An `expire` was ended by its limit: the timers that it left come before those added later.
    is_cut: bool,
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut random = Random(seed);
        // Some models start far from the base, so that rings begin in the middle and time comes near its end.
        let now = match random.below(4) {
            0 => 0,
            1 => random.below(3 * FAR),
            2 => random.next() >> 4,
            _ => NEVER - random.below(2 * FAR),
        };
        let mut wheel = Wheel::new();
        wheel.catch_up(now);
        Model {
            random,
            wheel,
            now,
            timers: HashMap::new(),
            order: BTreeMap::new(),
            stale: Vec::new(),
            count: 0,
            log: Arc::default(),
            is_exact: true,
            is_cut: false,
        }
    }

    fn run(&mut self, steps: u64, mix: Mix) {
        if let Mix::Ahead = mix {
            (0..=FEW_TIMERS).for_each(|_| self.insert_at(NEVER));
            self.is_exact = false;
        }
        for _ in 0..steps {
            match (mix, self.random.below(100)) {
                (_, 0..35) => self.insert(),
                (Mix::All | Mix::Ahead, 35..50) => self.remove(),
                (Mix::All | Mix::Ahead, 50..65) => self.reset(),
                (Mix::All, 65..67) => self.use_stale(),
                (Mix::All | Mix::Ahead, 67 | 68) => self.cut_expire(),
                (Mix::All, 69) if self.random.below(20) == 0 => self.drain(),
                (_, 70..75) => self.chase(),
                (_, 75..90) => self.jump(),
                _ => drop(self.check_next()),
            }
            assert_eq!(self.wheel.len(), self.timers.len());
            assert_eq!(self.wheel.is_empty(), self.timers.is_empty());
            if self.timers.is_empty() {
                (self.is_exact, self.is_cut) = (true, false);
            }
        }
        self.expire_to(NEVER);
        assert!(self.timers.values().all(|timer| timer.deadline == NEVER));
    }

    fn insert(&mut self) {
        if self.timers.is_empty() && self.random.below(2) == 0 {
            self.wheel.catch_up(self.now);
        }
        let deadline = self.deadline();
        self.insert_at(deadline);
    }

    fn insert_at(&mut self, deadline: u64) {
        let id = self.count;
        self.count += 1;
        let waker = Waker::from(Arc::new(Recorder { id, log: Arc::clone(&self.log) }));
        let key = self.wheel.insert(deadline, waker);
        self.timers.insert(id, Timer { key, deadline, was_moved: false });
        self.order.insert((deadline, id), ());
    }

    fn remove(&mut self) {
        let Some(id) = self.pick() else { return };
        let timer = self.forget(id);
        self.is_exact = false;
        let waker = self.wheel.remove(timer.key).expect("the timer is pending");
        waker.wake();
        assert_eq!(mem::take(&mut *self.log.lock().unwrap()), [id]);
    }

    fn reset(&mut self) {
        let Some(id) = self.pick() else { return };
        let deadline = self.deadline();
        let timer = self.timers.get_mut(&id).unwrap();
        self.order.remove(&(timer.deadline, id));
        self.order.insert((deadline, id), ());
        (timer.deadline, timer.was_moved) = (deadline, true);
        self.is_exact = false;
        assert!(self.wheel.reset(timer.key, deadline));
        assert!(self.wheel.pending_mut(timer.key).is_some());
    }

    fn use_stale(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        let key = self.stale[self.random.below(self.stale.len() as u64) as usize];
        let deadline = self.deadline();
        assert!(self.wheel.remove(key).is_none());
        assert!(!self.wheel.reset(key, deadline));
        assert!(self.wheel.pending_mut(key).is_none());
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        self.wheel.drain(&mut out);
        assert_eq!(out.len(), self.timers.len());
        for id in self.timers.keys().copied().collect::<Vec<_>>() {
            self.forget(id);
        }
    }

    /// Goes to a time of interest.
    fn jump(&mut self) {
        if !self.is_cut && self.random.below(4) == 0 {
            assert_eq!(self.wheel.first_deadline(), self.first().filter(|&first| first != NEVER));
        }
        let first = self.first().unwrap_or(self.now);
        let target = match self.random.below(10) {
            0 => self.now,
            1 => self.now.saturating_add(1),
            2 => self.now.saturating_add(self.random.below(TICK)),
            3 => self.now.saturating_add(self.random.below(20 * TICK)),
            4 => self.now.saturating_add(self.random.below(2 * NEAR + TICK)),
            5 => self.now.saturating_add(self.random.below(3 * NEAR)),
            6 => self.now.saturating_add(self.random.below(FAR)),
            7 => self.now.saturating_add(self.random.below(100) * (FAR << self.random.below(12))),
            8 => first.saturating_sub(1),
            _ => first,
        };
        self.expire_to(target.max(self.now));
    }

    /// Goes where the wheel says, until something fires. The wheel may name a time that is too early, but never the
    /// same time twice.
    fn chase(&mut self) {
        while let Some(next) = self.check_next() {
            let target = next.max(self.now);
            if self.expire_to(target) > 0 {
                return;
            }
            assert!(self.wheel.next_deadline().is_none_or(|later| later > next), "no progress");
        }
    }

    /// An `expire` with a small limit, which may leave timers that are due.
    fn cut_expire(&mut self) {
        let limit = self.random.below(3) as usize;
        let mut out = Vec::new();
        self.is_cut |= self.wheel.expire(self.now, limit, &mut out);
        assert!(out.len() <= limit);
        self.check_fired(out);
    }

    fn expire_to(&mut self, now: u64) -> usize {
        self.now = now;
        let limit = 1 + self.random.below(5) as usize;
        let mut out = Vec::new();
        while self.wheel.expire(now, limit, &mut out) {}
        let count = self.check_fired(out);
        assert!(self.first().is_none_or(|first| first > now || first == NEVER), "fired late");
        self.is_cut = false;
        count
    }

    /// The timers of `out` were due; they came in order.
    fn check_fired(&mut self, out: Vec<Waker>) -> usize {
        let count = out.len();
        out.into_iter().for_each(Waker::wake);
        let fired = mem::take(&mut *self.log.lock().unwrap());
        assert_eq!(fired.len(), count);
        let mut last = 0;
        let mut equals: HashMap<u64, u64> = HashMap::new();
        for id in fired {
            let timer = self.forget(id);
            assert!(timer.deadline <= self.now, "fired early");
            assert_ne!(timer.deadline, NEVER);
            assert!(self.is_cut || timer.deadline >= last, "not in the order of deadlines");
            last = timer.deadline;
            if !timer.was_moved {
                let before = equals.insert(timer.deadline, id);
                assert!(before.is_none_or(|before| before < id), "not first in, first out");
            }
        }
        count
    }

    fn check_next(&mut self) -> Option<u64> {
        let first = self.first().filter(|&first| first != NEVER);
        let next = self.wheel.next_deadline();
        let is_near = self.wheel.occupied().next().is_none();
        if (self.is_exact || is_near) && !self.is_cut {
            assert_eq!(next, first);
        } else {
            // A timer that an `expire` has left over is due, even if an earlier one was added since.
            let bound = if self.is_cut { first.max(Some(self.now)) } else { first };
            assert!(first.is_none() || next.is_some_and(|next| Some(next) <= bound));
        }
        next
    }

    /// A deadline near a border of the wheel, seen from now.
    fn deadline(&mut self) -> u64 {
        let now = self.now;
        let tick = now / TICK * TICK;
        let span = now / NEAR * NEAR;
        let round = now / FAR * FAR;
        let nudge = self.random.below(3);
        let add = |base: u64, more: u64| base.saturating_add(more).saturating_add(nudge).saturating_sub(1);
        match self.random.below(20) {
            0 => now.saturating_sub(self.random.below(2 * NEAR)),
            1 => now,
            2 | 3 => tick | self.random.below(TICK),
            4 => add(tick, self.random.below(4) * TICK),
            5 | 6 => now.saturating_add(self.random.below(NEAR)),
            7 => add(tick, 2 * NEAR - TICK + self.random.below(3) * TICK),
            8 => add(span, self.random.below(4) * NEAR),
            9 => now.saturating_add(self.random.below(8 * NEAR)),
            10 => now.saturating_add(self.random.below(3 * FAR)),
            11 => add(span, 2 * FAR - NEAR + self.random.below(3) * NEAR),
            12 => add(round, self.random.below(4) * FAR),
            13 => {
                let end = FAR << self.random.below(20);
                now.saturating_add(self.random.below(end))
            }
            14 => now.saturating_add(self.random.next() >> 2),
            15 => NEVER,
            16 => NEVER - 1,
            // The deadline of another timer.
            _ => self.pick().map_or(now, |id| self.timers[&id].deadline),
        }
    }

    /// Any pending timer.
    fn pick(&mut self) -> Option<u64> {
        if self.order.is_empty() {
            return None;
        }
        let nth = self.random.below(self.order.len() as u64) as usize;
        self.order.keys().nth(nth).map(|&(_, id)| id)
    }

    fn first(&self) -> Option<u64> {
        self.order.keys().next().map(|&(deadline, _)| deadline)
    }

    fn forget(&mut self, id: u64) -> Timer {
        let timer = self.timers.remove(&id).expect("it is pending");
        self.order.remove(&(timer.deadline, id)).expect("it has a place in the order");
        self.stale.push(timer.key);
        timer
    }
}

/// Miri is a thousand times slower.
const RUNS: u64 = if cfg!(miri) { 4 } else { 4000 };

#[test]
fn agrees_with_a_sorted_map() {
    for seed in 0..RUNS {
        Model::new(seed).run(150, Mix::All);
    }
    Model::new(RUNS).run(if cfg!(miri) { 100 } else { 100_000 }, Mix::All);
}

#[test]
fn agrees_with_a_sorted_map_while_slots_are_refiled_ahead_of_time() {
    for seed in 0..RUNS / 20 {
        Model::new(seed).run(150, Mix::Ahead);
    }
}

#[test]
fn is_exact_while_nothing_is_removed_or_moved() {
    for seed in 0..RUNS {
        Model::new(seed).run(150, Mix::OnlyAdd);
    }
}
