//! The children of a scope that are to be polled: a queue under a short lock, and the waker of the task that polls
//! them.
//!
//! Each place for a child has a waker of its own, which puts the place's number into the queue, once until it is taken
//! out. So a wake costs one locked instruction and the parent's own wake, whatever the number of children, and a child
//! that was not woken is not polled.
//!
//! ```text
//!              1 wake: queued, and the parent is woken           2 take: the numbers, in order
//!   RESTING --------------------------------------> WOKEN --------------------------------> POLLING
//!      ^                                                                                      | ^  '-- 3 wake:
//!      '-------------- 4 rest: the queue is empty, the waker is left ------------------------'  '----  queued
//! ```
//!
//! No wake is lost: a number that comes before `rest` looks at the queue is found by it, under the same lock; one that
//! comes after it finds the parent's waker, which was left in that same step. A parent that moves to another task
//! brings its new waker with its next poll.
//!
//! Rejected: a bit for each child (10,000 children need a tree of words, and their order is that of their places). A
//! flag for each child outside of the lock (a second locked instruction).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use mini_context::Lock;
use mini_kernel::primitives::atomic::{AtomicBool, Ordering::Relaxed};

/// Shared by the scope and the wakers of its children.
#[derive(Debug)]
pub(super) struct Ready {
    queue: Lock<Queue>,
    /// There are new children to take over. Set under the lock; without it a hint.
    has_spawned: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    numbers: VecDeque<u32>,
    /// By number: whether it is among `numbers`.
    is_queued: Vec<bool>,
    /// The parent is at work, and looks at the queue before it rests.
    is_polling: bool,
    parent: Option<Waker>,
}

impl Queue {
    fn push(&mut self, number: u32) {
        let index = number as usize;
        if index >= self.is_queued.len() {
            self.is_queued.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_queued[index], true) {
            self.numbers.push_back(number);
        }
    }
}

impl Ready {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { queue: Lock::new(Queue::default()), has_spawned: AtomicBool::new(false) })
    }

    /// A child was spawned: as a wake, but that it has no number yet.
    pub(super) fn announce(&self) {
        let mut queue = self.queue.lock();
        self.has_spawned.store(true, Relaxed);
        let parent = if queue.is_polling { None } else { queue.parent.take() };
        drop(queue);
        parent.into_iter().for_each(Waker::wake);
    }

    /// Whether a spawn was announced that the scope has not seen: then it sees later ones too, as it looks for new
    /// children after it has taken notice.
    pub(super) fn has_spawned(&self) -> bool {
        self.has_spawned.load(Relaxed)
    }

    /// Whether there may be new children, from now on without those.
    pub(super) fn take_spawned(&self) -> bool {
        let has_spawned = self.has_spawned.load(Relaxed);
        if has_spawned {
            self.has_spawned.store(false, Relaxed);
        }
        has_spawned
    }

    /// The scope has ended: late wakes wake nobody.
    pub(super) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.is_polling = true;
        let parent = queue.parent.take();
        drop(queue);
        drop(parent);
    }

    /// Edges 1 and 3.
    pub(super) fn wake(&self, number: u32) {
        let mut queue = self.queue.lock();
        queue.push(number);
        let parent = if queue.is_polling { None } else { queue.parent.take() };
        drop(queue);
        parent.into_iter().for_each(Waker::wake);
    }

    /// Edge 2. Puts the first numbers into `numbers`, which is empty: as many as a poll may come to, so that of very
    /// many each is taken once.
    pub(super) fn take(&self, numbers: &mut Vec<u32>) {
        let mut queue = self.queue.lock();
        queue.is_polling = true;
        let count = queue.numbers.len().min(usize::from(mini_context::BUDGET));
        numbers.extend(queue.numbers.drain(..count));
        for &number in &*numbers {
            queue.is_queued[number as usize] = false;
        }
    }

    /// Puts numbers back that were taken and not used, before all others. One that was woken since stays where it is.
    pub(super) fn put_back(&self, numbers: &mut Vec<u32>) {
        let mut queue = self.queue.lock();
        for number in numbers.drain(..).rev() {
            if !std::mem::replace(&mut queue.is_queued[number as usize], true) {
                queue.numbers.push_front(number);
            }
        }
    }

    /// Edge 4: pending if there is nothing to do until a wake.
    pub(super) fn rest(&self, waker: &Waker) -> Poll<()> {
        let mut queue = self.queue.lock();
        if queue.numbers.is_empty() && !queue.parent.as_ref().is_some_and(|parent| parent.will_wake(waker)) {
            drop(queue);
            let waker = waker.clone();
            queue = self.queue.lock();
            let old = queue.parent.replace(waker);
            drop(queue);
            drop(old);
            queue = self.queue.lock();
        }
        queue.is_polling = false;
        let is_idle = queue.numbers.is_empty() && !self.has_spawned.load(Relaxed);
        if is_idle { Poll::Pending } else { Poll::Ready(()) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_in_its_turn_however_few_of_a_pass_are_used() {
        let (ready, mut pass, mut used) = (Ready::new(), Vec::new(), Vec::new());
        (0..1000).for_each(|number| ready.wake(number));
        while used.len() < 1002 {
            ready.take(&mut pass);
            assert!(pass.len() <= usize::from(mini_context::BUDGET));
            if used.len() == 500 {
                ready.wake(500); // taken, and not used yet: from now on behind the others
                ready.wake(0);
                ready.wake(0);
            }
            used.extend(pass.drain(..pass.len().min(50)));
            ready.put_back(&mut pass);
        }
        assert!(used.drain(..550).eq(0..550), "500 was used in that pass");
        assert!(used.into_iter().eq((550..1000).chain([500, 0])));
        ready.take(&mut pass);
        assert!(pass.is_empty());
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::future::poll_fn;

    use loom::future::block_on;
    use loom::thread;

    use super::super::wakers::Wakers;
    use super::*;

    /// A scope that waits until `is_done` says so of what it has been told: the numbers so far, and whether children
    /// were spawned.
    fn wait(ready: &Ready, is_done: impl Fn(&[u32], bool) -> bool) {
        let (mut all, mut pass, mut has_spawned) = (Vec::new(), Vec::new(), false);
        block_on(poll_fn(|cx| {
            ready.take(&mut pass);
            all.append(&mut pass);
            has_spawned |= ready.take_spawned();
            if is_done(&all, has_spawned) {
                return Poll::Ready(());
            }
            if ready.rest(cx.waker()).is_ready() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        }));
    }

    /// Fails if `wake` pushes nothing while the parent polls, or if `rest` does not look at the queue again after it
    /// has left the waker.
    #[test]
    fn a_wake_reaches_the_scope_whenever_it_comes() {
        loom::model(|| {
            let ready = Ready::new();
            let mut wakers = Wakers::new(&ready);
            let wakes = [1, 2].map(|number| {
                let waker = wakers.of(number).clone();
                thread::spawn(move || waker.wake())
            });
            wait(&ready, |numbers, _| numbers.contains(&1) && numbers.contains(&2));
            for wake in wakes {
                wake.join().unwrap();
            }
        });
    }

    /// Fails if `rest` does not ask for spawns.
    #[test]
    fn a_spawn_from_elsewhere_reaches_the_scope() {
        loom::model(|| {
            let ready = Ready::new();
            let spawning = ready.clone();
            let spawn = thread::spawn(move || {
                if !spawning.has_spawned() {
                    spawning.announce();
                }
            });
            wait(&ready, |_, has_spawned| has_spawned);
            spawn.join().unwrap();
        });
    }

    /// A wake at the same time as the end of a scope is for a child that is gone.
    #[test]
    fn a_late_wake_does_no_harm() {
        loom::model(|| {
            let ready = Ready::new();
            let waker = Wakers::new(&ready).of(1).clone();
            let late = thread::spawn(move || waker.wake());
            assert!(ready.rest(std::task::Waker::noop()).is_pending() || ready.queue.lock().numbers == [1]);
            ready.close();
            late.join().unwrap();
        });
    }
}
