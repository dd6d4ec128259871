//! The timers of two drivers on one paused clock, beside a list of deadlines.
//!
//! Sleeps are made, polled within either driver's context, moved, dropped, outlive their timers and go on in others.
//! What fires, when, in which order and whom it wakes must be as the list says, to the nanosecond.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mini_time::{Clock, Park, Sleep, Timers, enter, sleep, sleep_until};

use crate::Choices;

/// The widths of the wheel's slots: a tick, a slot of the first upper ring, one of the second.
const TICK: u64 = 1 << 16;
const NEAR: u64 = TICK << 10;
const FAR: u64 = NEAR << 10;

/// A deadline that never comes.
const NEVER: u64 = u64::MAX;

/// Time that a run may use up; so little that no sum of it and a deadline overflows.
const LIFE: u64 = 1 << 61;

/// Numbers of wakers, in the order in which they were woken.
type Log = Arc<Mutex<Vec<u64>>>;

struct Recorder(u64, Log);

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

/// The model's state of a sleep.
struct Known {
    sleep: Sleep,
    deadline: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not registered.
    New,
    /// Registered with a driver, for the waker of this number.
    Armed { driver: usize, waker: u64 },
    /// Its timer has fired.
    Fired,
    /// Its timers were shut down.
    Orphan,
    /// It was ready.
    Done,
}

struct Model {
    clock: Clock,
    drivers: [Timers; 2],
    sleeps: Vec<Known>,
    now: u64,
    wakers: u64,
    log: Log,
}

/// Runs the model.
///
/// # Panics
///
/// If the timers do something else.
pub fn run(choices: &mut Choices) {
    let clock = Clock::pausable(true);
    let drivers = [(); 2].map(|()| Timers::new(clock.clone(), Waker::noop().clone()));
    let mut model = Model { clock, drivers, sleeps: Vec::new(), now: 0, wakers: 0, log: Log::default() };
    while choices.step() {
        model.act(choices);
        model.check();
    }
    model.end();
}

impl Model {
    fn act(&mut self, choices: &mut Choices) {
        let driver = choices.below(2) as usize;
        match choices.below(16) {
            0..=2 => self.add(choices, driver),
            3..=6 => self.poll(choices, driver),
            7 | 8 => self.reset(choices),
            9 => {
                if let Some(at) = choices.place(self.sleeps.len()) {
                    self.sleeps.swap_remove(at);
                }
            }
            10..=12 => self.advance(choices, driver),
            13 => self.turn(driver),
            14 => self.jump(driver),
            _ => self.park(choices, driver),
        }
    }

    fn add(&mut self, choices: &mut Choices, driver: usize) {
        let deadline = self.deadline(choices);
        let _entered = enter(&self.drivers[driver]);
        let sleep = match deadline > self.now && choices.one_in(2) {
            true if deadline == NEVER => sleep(Duration::MAX),
            true => sleep(Duration::from_nanos(deadline - self.now)),
            false => sleep_until(self.clock.instant(deadline)),
        };
        // An instant 584 years away is as good as never, and may be counted as that.
        let deadline = self.clock.nanos(sleep.deadline());
        self.sleeps.push(Known { sleep, deadline, state: State::New });
        if choices.one_in(2) {
            self.poll_at(self.sleeps.len() - 1, driver);
        }
    }

    fn poll(&mut self, choices: &mut Choices, driver: usize) {
        if let Some(at) = choices.place(self.sleeps.len()) {
            self.poll_at(at, driver);
        }
    }

    fn poll_at(&mut self, at: usize, driver: usize) {
        let _entered = enter(&self.drivers[driver]);
        self.wakers += 1;
        let waker = Waker::from(Arc::new(Recorder(self.wakers, Arc::clone(&self.log))));
        let known = &mut self.sleeps[at];
        let is_over = self.now >= known.deadline && known.deadline != NEVER;
        let expected = match known.state {
            State::Fired | State::Done => State::Done,
            State::Armed { .. } | State::New | State::Orphan if is_over => State::Done,
            State::Armed { driver, .. } => State::Armed { driver, waker: self.wakers },
            State::New | State::Orphan => State::Armed { driver, waker: self.wakers },
        };
        let polled = Pin::new(&mut known.sleep).poll(&mut Context::from_waker(&waker));
        let wanted = if expected == State::Done { Poll::Ready(()) } else { Poll::Pending };
        assert_eq!(polled, wanted, "{:?} with a deadline at {}, polled at {}", known.state, known.deadline, self.now);
        known.state = expected;
        self.nobody_is_woken();
    }

    fn reset(&mut self, choices: &mut Choices) {
        let deadline = self.deadline(choices);
        let Some(at) = choices.place(self.sleeps.len()) else { return };
        let known = &mut self.sleeps[at];
        let to = self.clock.instant(deadline);
        Pin::new(&mut known.sleep).reset(to);
        known.deadline = self.clock.nanos(to);
        if !matches!(known.state, State::Armed { .. } | State::Orphan) {
            known.state = State::New;
        }
        self.nobody_is_woken();
    }

    fn advance(&mut self, choices: &mut Choices, driver: usize) {
        let first = self.first(driver).unwrap_or(self.now).min(LIFE);
        let target = match choices.below(8) {
            0 => self.now + 1,
            1 => self.now + choices.below(TICK),
            2 => self.now + choices.below(20 * TICK),
            3 => self.now + choices.below(3 * NEAR),
            4 => self.now + choices.below(FAR),
            5 => self.now + choices.below(100) * FAR,
            6 => first.saturating_sub(1),
            _ => first,
        };
        let target = target.clamp(self.now, LIFE.max(self.now));
        self.clock.advance(Duration::from_nanos(target - self.now)).unwrap();
        self.now = target;
        if choices.one_in(2) {
            self.turn(driver);
        }
    }

    /// All that is due is woken, in order, and nothing else.
    fn turn(&mut self, driver: usize) {
        let woken = self.drivers[driver].turn();
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        assert_eq!(woken, log.len());
        let mut last = 0;
        for number in log {
            let is_it = |known: &&mut Known| known.state == State::Armed { driver, waker: number };
            let known = self.sleeps.iter_mut().find(is_it).expect("somebody who does not wait here was woken");
            assert!(known.deadline <= self.now, "early by {}", known.deadline - self.now);
            assert!(known.deadline >= last, "not in the order of deadlines");
            last = known.deadline;
            known.state = State::Fired;
        }
        let first = self.first(driver);
        assert!(first.is_none_or(|first| first > self.now), "{first:?} has not fired at {}", self.now);
    }

    fn jump(&mut self, driver: usize) {
        let first = self.first(driver);
        if first.is_some_and(|first| first > LIFE) {
            return;
        }
        assert_eq!(self.drivers[driver].auto_advance(), first.is_some());
        self.now = first.map_or(self.now, |first| first.max(self.now));
        assert_eq!(self.clock.nanos(self.clock.now()), self.now, "it goes to the first deadline, and no further");
        self.turn(driver);
    }

    fn park(&mut self, choices: &mut Choices, driver: usize) {
        let is_due = self.first(driver).is_some_and(|first| first <= self.now);
        let park = self.drivers[driver].prepare_park();
        assert!(if is_due { park == Park::Ready } else { park != Park::Until(Duration::ZERO) }, "{park:?}");
        if choices.one_in(2) {
            self.drivers[driver].finish_park();
        }
        if choices.one_in(8) {
            self.close(choices, driver);
        }
    }

    /// The timers end, waiting sleeps learn of it, and new timers take their place.
    fn close(&mut self, choices: &mut Choices, driver: usize) {
        if choices.one_in(2) {
            self.drivers[driver].shutdown();
            assert!(self.drivers[driver].is_empty());
        }
        self.drivers[driver] = Timers::new(self.clock.clone(), Waker::noop().clone());
        let mut woken = std::mem::take(&mut *self.log.lock().unwrap());
        woken.sort_unstable();
        let mut waited = Vec::new();
        for known in &mut self.sleeps {
            if let State::Armed { driver: at, waker } = known.state
                && at == driver
            {
                waited.push(waker);
                known.state = State::Orphan;
            }
        }
        waited.sort_unstable();
        assert_eq!(woken, waited);
    }

    fn check(&mut self) {
        self.nobody_is_woken();
        for (driver, timers) in self.drivers.iter().enumerate() {
            let armed = |known: &&Known| matches!(known.state, State::Armed { driver: at, .. } if at == driver);
            assert_eq!(timers.len(), self.sleeps.iter().filter(armed).count());
            let next = timers.next_deadline().map(|next| self.clock.nanos(next));
            let first = self.first(driver);
            // `next` may be too early, also if there is no deadline.
            assert!(first.is_none() || next.is_some() && next <= first, "{next:?} is after {first:?}");
        }
    }

    fn end(mut self) {
        for driver in [0, 1] {
            self.turn(driver);
        }
        self.sleeps.clear();
        self.check();
        assert_eq!(Arc::strong_count(&self.log), 1, "a waker was kept");
    }

    fn nobody_is_woken(&self) {
        assert_eq!(*self.log.lock().unwrap(), []);
    }

    /// The first deadline in the timers of a driver.
    fn first(&self, driver: usize) -> Option<u64> {
        let armed = |known: &&Known| matches!(known.state, State::Armed { driver: at, .. } if at == driver);
        self.sleeps.iter().filter(armed).map(|known| known.deadline).filter(|&deadline| deadline != NEVER).min()
    }

    /// A deadline near a border of the wheel, seen from now.
    fn deadline(&self, choices: &mut Choices) -> u64 {
        let now = self.now;
        let nudge = choices.below(3);
        let near = |base: u64, more: u64| base.saturating_add(more).saturating_add(nudge).saturating_sub(1);
        match choices.below(14) {
            0 => now.saturating_sub(choices.below(2 * NEAR)),
            1 => now,
            2 => now / TICK * TICK + choices.below(TICK),
            3 => near(now / TICK * TICK, choices.below(4) * TICK),
            4 => now + choices.below(NEAR),
            5 => near(now / TICK * TICK, NEAR - TICK + choices.below(3) * TICK),
            6 => near(now / NEAR * NEAR, choices.below(4) * NEAR),
            7 => now + choices.below(FAR),
            8 => near(now / NEAR * NEAR, FAR - NEAR + choices.below(3) * NEAR),
            9 => near(now / FAR * FAR, choices.below(4) * FAR),
            10 => now + choices.below(200 * FAR),
            11 => now + choices.below(LIFE),
            12 => NEVER - choices.below(2),
            // The deadline of another sleep.
            _ => choices.place(self.sleeps.len()).map_or(now, |at| self.sleeps[at].deadline),
        }
    }
}
