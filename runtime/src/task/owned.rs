//! The tasks that are alive on a core, so that a shutdown finds them.
//!
//! Called by spawning, by a task's completion and by the closing of a core. The owner of the core keeps one list for
//! its owned tasks; a second list, under a mutex, holds the shared tasks that were spawned there.

use std::mem;

/// A task that keeps the number of its slot.
pub(crate) trait Slotted: Clone {
    fn set_slot(&self, slot: u32);

    /// `None` before it has one.
    fn slot(&self) -> Option<u32>;
}

/// Set in a slot number: the task's future is not `Send` and must end on the thread that spawned it.
const PINNED: u32 = 1 << 31;

/// A slab of tasks: inserting and removing are a few plain stores.
#[derive(Debug)]
pub(crate) struct OwnedTasks<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    pinned: usize,
    closed: bool,
    inserted: u64,
}

impl<T> Default for OwnedTasks<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), pinned: 0, closed: false, inserted: 0 }
    }
}

impl<T: Slotted> OwnedTasks<T> {
    /// Takes the runtime's reference.
    ///
    /// # Errors
    ///
    /// Gives it back if the registry was closed.
    #[inline]
    pub(crate) fn insert(&mut self, task: T, pinned: bool) -> Result<(), T> {
        if self.closed {
            return Err(task);
        }
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        task.set_slot(if pinned { slot | PINNED } else { slot });
        self.pinned += usize::from(pinned);
        self.inserted += 1;
        let before = self.slots[slot as usize].replace(task);
        debug_assert!(before.is_none(), "a free slot is empty");
        mem::forget(before); // so that nobody looks whether it has to be dropped
        Ok(())
    }

    /// Makes a new slot.
    #[cold]
    fn grow(&mut self) -> u32 {
        self.slots.push(None);
        let slot = u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX);
        assert!(slot < PINNED - 1, "fewer than 2^31 tasks on one core");
        slot
    }

    /// Gives the runtime's reference back when the task of that slot number completes.
    pub(crate) fn remove(&mut self, slot: u32) -> T {
        self.pinned -= usize::from(slot & PINNED != 0);
        let slot = slot & !PINNED;
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a registered task is removed once")
    }

    /// Refuses new tasks from now on.
    pub(crate) fn refuse(&mut self) {
        self.closed = true;
    }

    /// Refuses new tasks from now on, and lists those that are alive.
    pub(crate) fn close(&mut self) -> Vec<T> {
        self.refuse();
        self.list()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn list(&self) -> Vec<T> {
        let mut list = Vec::with_capacity(self.len());
        for task in self.iter() {
            list.push(task.clone());
        }
        list
    }

    /// Those in `count` slots from slot `from` on; none if there are no such slots.
    pub(crate) fn part(&self, from: usize, count: usize) -> Option<impl Iterator<Item = &T>> {
        let slots = self.slots.get(from..)?.iter().take(count);
        (slots.len() > 0).then(|| slots.flatten())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// How many tasks there ever were.
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The tasks that are alive.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the task of that slot number must end on the thread that spawned it.
    pub(crate) fn is_pinned(slot: u32) -> bool {
        slot & PINNED != 0
    }

    /// Removes the tasks that must end on the thread that spawned them.
    pub(crate) fn take_pinned(&mut self) -> Vec<T> {
        self.take_marked(PINNED)
    }

    /// Removes all tasks.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        self.take_marked(0)
    }

    /// Removes the tasks in whose slot number the bits of `mark` are set.
    fn take_marked(&mut self, mark: u32) -> Vec<T> {
        let mut taken = Vec::new();
        for (index, slot) in (0..).zip(&mut self.slots) {
            if let Some(task) = slot.take_if(|task| task.slot().is_some_and(|number| number & mark == mark)) {
                self.free.push(index);
                taken.push(task);
            }
        }
        self.pinned = 0; // these are among them either way
        taken
    }

    /// How many tasks must end on the thread that spawned them.
    pub(crate) fn pinned(&self) -> usize {
        self.pinned
    }
}
