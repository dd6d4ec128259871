//! The tasks that are alive on a core: a shutdown finds them here, and any thread may look at them.
//!
//! Called by spawning, by a task's completion and by the closing of a core. The owner of the core keeps one list for
//! its owned tasks; a second list, under a mutex, holds the shared tasks that were spawned there. The holder of that
//! mutex is the owner of the list.
//!
//! # Visits
//!
//! A dump reads a list from any thread, even while the owner is stuck. Tasks come and go during the visit, but no task
//! that is being read is freed:
//!
//! ```text
//!   owner removes a task               visitor
//!   the seat is free                   visitors + 1
//!   light fence                        heavy fence
//!   visitors? --- none: go on          for each part, with the lock `part`:
//!        '------- some: take and         reads the seats, and the tasks that sit there
//!                 leave `part`        visitors - 1 (Release)
//! ```
//!
//! By the two fences, at least one side sees the other: the visitor finds the seat free, or the owner finds a visitor
//! and takes the lock of a part before it gives away the list's reference. If that was before a part, the visitor finds
//! the seat free there; if not, the owner has waited for its end. So an owner that spawns pays nothing for all this,
//! and one whose task ends a load and a branch, or a lock for as long as a visitor is there; a visitor pays one system
//! call, which interrupts the processors of this process. This also protects the memory of the seats, which moves when
//! it grows. A visitor sees each task that sat there before it came and does so until it goes.
//!
//! Rejected: a lock that only the visitor pays for, around each change (two stores and a load, and a visitor would wait
//! for an owner that is not given a CPU). A lock for a whole visit: a visitor makes room for what it has read between
//! two parts, so a lock would be held while it allocates. A locked instruction for each owned task that comes or goes:
//! 10 ns of 55. To ask the owner for its list: the one that does not answer is the one that matters. A heavy fence for
//! each part (half of the time of a dump).

#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::slice;

use crate::primitives::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use crate::primitives::{Mutex, fences, lock};

/// A counted reference to a task that keeps the number of its seat.
pub trait Seated: Clone {
    fn set_seat(&self, number: u32);

    /// `None` before it has one.
    fn seat(&self) -> Option<u32>;

    /// The address of what is referred to, which is even; the reference is kept.
    fn into_raw(self) -> NonNull<()>;

    /// # Safety
    ///
    /// `raw` came from [`into_raw`](Self::into_raw), and that reference is still there; it is this one from now on.
    unsafe fn from_raw(raw: NonNull<()>) -> Self;
}

/// Set in the number of a seat: the task's future is not `Send` and must end on the thread that spawned it.
const PINNED: u32 = 1 << 31;

/// Seats of a list that is not empty, at first.
const FIRST: usize = 4;

/// A task; or, marked by [`FREE`], the number of the next free seat.
type Seat = AtomicPtr<()>;

/// In a free seat the number is above this bit. Addresses of tasks are even.
const FREE: usize = 1;

/// In place of the number of a seat: there is none.
const NONE: u32 = PINNED - 1;

/// A slab of tasks: inserting and removing are a few plain stores.
pub(crate) struct OwnedTasks<T: Seated> {
    /// The memory of the seats, from [`grow`](Self::grow); a seat keeps its number when they move.
    room: AtomicPtr<Seat>,
    /// How many seats there are, which is how many were ever taken at a time: the first ones of the room, and all of it
    /// that is initialised. Memory beyond that is not touched.
    used: AtomicUsize,
    visitors: AtomicUsize,
    /// A visitor looks at a part.
    part: Mutex<()>,
    /// The owner's alone, as are all below: how many seats the room has memory for.
    capacity: Cell<usize>,
    /// The first free seat.
    free: Cell<u32>,
    len: Cell<usize>,
    pinned: Cell<usize>,
    is_closed: Cell<bool>,
    /// It has references.
    tasks: PhantomData<T>,
}

// SAFETY: a list may change its owner: what it has are references, which may if `T` may.
// Test: tests/tests/runtimes/runtimes.rs `two_threads_take_turns_in_block_on`.
unsafe impl<T: Seated + Send> Send for OwnedTasks<T> {}

impl<T: Seated> Default for OwnedTasks<T> {
    fn default() -> Self {
        Self {
            room: AtomicPtr::new(NonNull::dangling().as_ptr()),
            used: AtomicUsize::new(0),
            visitors: AtomicUsize::new(0),
            part: Mutex::new(()),
            capacity: Cell::new(0),
            free: Cell::new(NONE),
            len: Cell::new(0),
            pinned: Cell::new(0),
            is_closed: Cell::new(false),
            tasks: PhantomData,
        }
    }
}

/// For the owner, but for [`visit`](Self::visit). That the type is not `Sync` reminds of it; `Core` says who that is.
impl<T: Seated> OwnedTasks<T> {
    /// Takes the runtime's reference.
    ///
    /// # Errors
    ///
    /// Gives it back if the list was closed.
    #[inline]
    pub(crate) fn insert(&self, task: T, pinned: bool) -> Result<(), T> {
        if self.is_closed() {
            return Err(task);
        }
        let mut number = self.free.get();
        if number == NONE {
            number = self.add_seat();
        }
        let seat = &self.seats()[number as usize];
        self.free.set((seat.load(Relaxed).addr() >> 1) as u32);
        task.set_seat(if pinned { number | PINNED } else { number });
        self.pinned.set(self.pinned.get() + usize::from(pinned));
        self.len.set(self.len.get() + 1);
        // Release: a visitor that finds the task sees all of it.
        seat.store(task.into_raw().as_ptr(), Release);
        Ok(())
    }

    #[inline]
    fn seats(&self) -> &[Seat] {
        // Acquire, and before the room: that is the room in which the last of these seats was made, or a later one.
        let used = self.used.load(Acquire);
        let room = self.room.load(Acquire);
        // SAFETY: the first `used` seats of the room are initialised: `add_seat` writes a seat before it counts it, and
        // `grow` copies all that are counted. From then on they change as atomics only. The room is not freed while a
        // visitor has it, nor while the owner does, who calls `grow` with no such reference.
        // Test: model `a_visitor_reads_no_seats_that_have_moved`.
        unsafe { slice::from_raw_parts(room, used) }
    }

    /// Makes a new seat, which is free, and returns its number.
    fn add_seat(&self) -> u32 {
        let used = self.used.load(Relaxed);
        if used == self.capacity.get() {
            self.grow();
        }
        // SAFETY: the room has memory for more than `used` seats.
        // Test: model `a_visitor_reads_no_seats_that_have_moved`.
        let seat = unsafe { self.room.load(Relaxed).add(used) };
        // SAFETY: it is memory of a box of `grow`, from its own pointer, and nobody reads a seat before it is counted.
        // Test: model `a_visitor_reads_no_seats_that_have_moved`.
        unsafe { seat.write(Seat::new(link(NONE))) };
        // Release: a visitor sees what is in it.
        self.used.store(used + 1, Release);
        used as u32
    }

    /// Moves the seats into a room of twice the size.
    #[cold]
    fn grow(&self) {
        let old = self.seats();
        let capacity = (old.len() * 2).max(FIRST);
        assert!(capacity < NONE as usize, "fewer than 2^30 tasks on one core");
        let mut room = Box::<[Seat]>::new_uninit_slice(capacity);
        for (new, old) in room.iter_mut().zip(old) {
            new.write(Seat::new(old.load(Relaxed)));
        }
        // Release: a visitor sees what is in them.
        let old = self.room.swap(Box::into_raw(room).cast(), Release);
        self.wait_for_visitor();
        free_room(old, self.capacity.replace(capacity));
    }

    /// Waits until no visitor uses what was just taken out of the list.
    #[inline]
    fn wait_for_visitor(&self) {
        fences::light();
        // Acquire: what visitors have read is over.
        if self.visitors.load(Acquire) != 0 {
            self.wait_long();
        }
    }

    #[cold]
    fn wait_long(&self) {
        drop(lock(&self.part));
    }

    /// Gives the runtime's reference back when the task in the seat of that number completes.
    #[inline]
    pub(crate) fn remove(&self, number: u32) -> T {
        self.pinned.set(self.pinned.get() - usize::from(number & PINNED != 0));
        let task = self.vacate(number & !PINNED);
        self.wait_for_visitor();
        task
    }

    /// Frees a seat that is taken. The caller then waits for a visitor.
    #[inline]
    fn vacate(&self, number: u32) -> T {
        let seat = &self.seats()[number as usize];
        let task = Self::task_in(seat.load(Relaxed)).expect("a registered task is removed once");
        seat.store(link(self.free.get()), Relaxed);
        self.free.set(number);
        self.len.set(self.len.get() - 1);
        ManuallyDrop::into_inner(task)
    }

    /// The list's reference to the task that was read from a seat, if it was one.
    #[inline]
    fn task_in(seat: *mut ()) -> Option<ManuallyDrop<T>> {
        if seat.addr() & FREE != 0 {
            return None;
        }
        // SAFETY: no seat is null.
        let raw = unsafe { NonNull::new_unchecked(seat) };
        // SAFETY: what is even in a seat is a task of which the list has a reference. The caller makes sure that it
        // still has, and uses it up once at most. Test: model `a_task_is_not_freed_while_it_is_looked_at`.
        Some(ManuallyDrop::new(unsafe { T::from_raw(raw) }))
    }

    /// Refuses new tasks from now on.
    pub(crate) fn refuse(&self) {
        self.is_closed.set(true);
    }

    /// Refuses new tasks from now on, and lists those that are alive.
    pub(crate) fn close(&self) -> Vec<T> {
        self.refuse();
        self.list()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(crate) fn list(&self) -> Vec<T> {
        let mut list = Vec::with_capacity(self.len());
        self.each(|task| list.push(task.clone()));
        list
    }

    /// Calls `f` with each task.
    pub(crate) fn each(&self, f: impl FnMut(&T)) {
        self.part(0, usize::MAX, |seats| seats.each(f));
    }

    /// Calls `f` with up to `count` seats, from seat `from` on.
    pub(crate) fn part<R>(&self, from: usize, count: usize, f: impl FnOnce(&Seats<'_, T>) -> R) -> R {
        let seats = self.seats().get(from..).unwrap_or_default();
        f(&Seats { from, seats: &seats[..seats.len().min(count)], list: PhantomData })
    }

    /// A visit, from any thread; `None` if the system has no such fence.
    pub(crate) fn visit(&self) -> Option<Visit<'_, T>> {
        self.visitors.fetch_add(1, Relaxed);
        let visit = Visit(self);
        fences::heavy().then_some(visit)
    }

    /// The tasks that are alive.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Where the seat of that number is: [`each`](Self::each) goes by these.
    pub(crate) fn place(number: u32) -> u32 {
        number & !PINNED
    }

    /// Whether the task in the seat of that number must end on the thread that spawned it.
    pub(crate) fn is_pinned(number: u32) -> bool {
        number & PINNED != 0
    }

    /// Removes the tasks that must end on the thread that spawned them.
    pub(crate) fn take_pinned(&self) -> Vec<T> {
        self.take_marked(PINNED)
    }

    /// Removes all tasks.
    pub(crate) fn take_all(&self) -> Vec<T> {
        self.take_marked(0)
    }

    /// Removes the tasks in whose seat's number the bits of `mark` are set.
    fn take_marked(&self, mark: u32) -> Vec<T> {
        let mut numbers = Vec::new();
        self.each(|task| numbers.extend(task.seat().filter(|number| number & mark == mark)));
        let taken = numbers.into_iter().map(|number| self.vacate(number & !PINNED)).collect();
        self.pinned.set(0); // these are among them either way
        self.wait_for_visitor();
        taken
    }

    /// How many tasks must end on the thread that spawned them.
    pub(crate) fn pinned(&self) -> usize {
        self.pinned.get()
    }
}

/// Some of the seats of a list, in their order, while none of the tasks there is freed.
pub struct Seats<'a, T> {
    /// The number of the first one.
    from: usize,
    seats: &'a [Seat],
    list: PhantomData<&'a T>,
}

impl<T: Seated> Seats<'_, T> {
    /// There are no more seats.
    pub(crate) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Calls `f` with each task.
    #[inline]
    pub fn each(&self, mut f: impl FnMut(&T)) {
        self.seats.iter().for_each(|seat| Self::look_at(seat, &mut f));
    }

    /// Calls `f` with the task in the seat of that number, if there is one.
    #[inline]
    pub fn with(&self, number: usize, f: impl FnOnce(&T)) {
        if let Some(seat) = number.checked_sub(self.from).and_then(|at| self.seats.get(at)) {
            Self::look_at(seat, f);
        }
    }

    #[inline]
    fn look_at(seat: &Seat, f: impl FnOnce(&T)) {
        // Acquire: pairs with the Release in `seat`, for a visitor.
        if let Some(task) = OwnedTasks::task_in(seat.load(Acquire)) {
            f(&task);
        }
    }
}

/// A thread that looks at a list, one part after the other.
pub(crate) struct Visit<'a, T: Seated>(&'a OwnedTasks<T>);

impl<T: Seated> Visit<'_, T> {
    /// Calls `f` with a [`part`](OwnedTasks::part) of the list. No task there is freed meanwhile, and an owner whose
    /// task ends waits. So `f` is short, takes no lock that an owner may have, and gives no reference back.
    pub(crate) fn part<R>(&self, from: usize, count: usize, f: impl FnOnce(&Seats<'_, T>) -> R) -> R {
        let _part = lock(&self.0.part);
        self.0.part(from, count, f)
    }
}

impl<T: Seated> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        // Release: what was read is over, for an owner that finds nobody.
        self.0.visitors.fetch_sub(1, Release);
    }
}

impl<T: Seated> Drop for OwnedTasks<T> {
    fn drop(&mut self) {
        drop(self.take_all());
        free_room(self.room.load(Relaxed), self.capacity.get());
    }
}

/// Frees the memory of so many seats, which nobody finds any more.
fn free_room(room: *mut Seat, capacity: usize) {
    let room = ptr::slice_from_raw_parts_mut(room.cast::<MaybeUninit<Seat>>(), capacity);
    // SAFETY: a box of `grow`, of that length, or a slice of none, which has no memory; its list has another one now or
    // is dropped, and no visitor has it. Test: model `a_visitor_reads_no_seats_that_have_moved`.
    drop(unsafe { Box::from_raw(room) });
}

/// What stands in a free seat.
fn link(next: u32) -> *mut () {
    ptr::without_provenance_mut((next as usize) << 1 | FREE)
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// A task of which loom knows when it is read and when it is freed.
    #[derive(Clone)]
    struct Watched(Arc<Inner>);

    struct Inner {
        /// Written when it is freed.
        word: UnsafeCell<u32>,
        number: Cell<Option<u32>>,
    }

    impl Watched {
        fn new() -> Self {
            let new = Self(Arc::new(Inner { word: UnsafeCell::new(0), number: Cell::new(None) }));
            new.write(7);
            new
        }

        fn read(&self) {
            self.0.word.with(|word| {
                // SAFETY: loom checks that nobody writes meanwhile. Test: the models below.
                assert_eq!(unsafe { *word }, 7);
            });
        }

        fn write(&self, new: u32) {
            self.0.word.with_mut(|word| {
                // SAFETY: loom checks that nobody reads meanwhile. Test: the models below.
                unsafe { *word = new }
            });
        }

        fn free(&self) {
            self.write(0);
        }
    }

    impl Seated for Watched {
        fn set_seat(&self, number: u32) {
            self.0.number.set(Some(number));
        }

        fn seat(&self) -> Option<u32> {
            self.0.number.get()
        }

        fn into_raw(self) -> NonNull<()> {
            NonNull::new(Arc::into_raw(self.0).cast_mut().cast()).expect("an address")
        }

        unsafe fn from_raw(raw: NonNull<()>) -> Self {
            // SAFETY: the caller's. Test: the models below.
            Self(unsafe { Arc::from_raw(raw.as_ptr().cast()) })
        }
    }

    /// A list that is seen by two threads, of which one is its owner.
    struct Both(OwnedTasks<Watched>);

    // SAFETY: the models keep to the rights: the thread that made it is the owner. Test: the models below.
    unsafe impl Send for Both {}
    // SAFETY: as above.
    unsafe impl Sync for Both {}

    /// Looks at `count` seats at a time.
    fn visitor(list: &Arc<Both>, count: usize) -> thread::JoinHandle<usize> {
        let list = list.clone();
        thread::spawn(move || {
            let mut seen = 0;
            let visit = list.0.visit().expect("a fence");
            for from in (0..).step_by(count) {
                let is_end = visit.part(from, count, |part| {
                    part.each(|task| {
                        task.read();
                        seen += 1;
                    });
                    part.is_empty()
                });
                if is_end {
                    break;
                }
            }
            seen
        })
    }

    #[test]
    fn a_task_is_not_freed_while_it_is_looked_at() {
        loom::model(|| {
            let list = Arc::new(Both(OwnedTasks::default()));
            let tasks = [Watched::new(), Watched::new()];
            for task in &tasks {
                assert!(list.0.insert(task.clone(), false).is_ok());
            }
            let visitor = visitor(&list, 1); // each in its own part
            for task in tasks {
                list.0.remove(task.seat().unwrap()).free();
            }
            assert!(list.0.insert(Watched::new(), false).is_ok()); // in the seat of the last one
            assert!(visitor.join().unwrap() <= 2);
        });
    }

    #[test]
    fn a_visitor_reads_no_seats_that_have_moved() {
        loom::model(|| {
            let list = Arc::new(Both(OwnedTasks::default()));
            for _ in 0..FIRST {
                assert!(list.0.insert(Watched::new(), false).is_ok());
            }
            let visitor = visitor(&list, FIRST / 2);
            assert!(list.0.insert(Watched::new(), false).is_ok()); // moves them
            assert!((FIRST..=FIRST + 1).contains(&visitor.join().unwrap()));
        });
    }

    #[test]
    fn two_visitors_and_an_owner_whose_tasks_all_end() {
        loom::model(|| {
            let list = Arc::new(Both(OwnedTasks::default()));
            assert!(list.0.insert(Watched::new(), true).is_ok());
            let visitors = [visitor(&list, 8), visitor(&list, 8)];
            for task in list.0.take_all() {
                task.free();
            }
            for visitor in visitors {
                assert!(visitor.join().unwrap() <= 1);
            }
        });
    }
}
