//! A dump copies plain words of each task: how often it allocates does not depend on how many there are.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mini::runtime::{Builder, Handle};
use mini::sync::{Mutex, oneshot};
use mini::task::yield_now;
use mini::time::{Duration, sleep};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: the system's allocator, which is asked once for each call. A thread's count has no destructor and allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(old, layout) }
    }
}

/// How often the first and the second dump allocate beside so many tasks.
async fn allocations(tasks: usize) -> [usize; 2] {
    let lock = std::sync::Arc::new(Mutex::new(()));
    let held = lock.clone().lock_owned().await;
    let (mut senders, mut last) = (Vec::new(), mini::spawn(std::future::pending::<()>()));
    for _ in 0..tasks / 4 {
        let (sender, receiver) = oneshot::channel::<()>();
        senders.push(sender);
        let lock = lock.clone();
        drop(mini::spawn(async move { drop(lock.lock().await) }));
        drop(mini::spawn(async move { drop(receiver.await) }));
        drop(mini::task::Builder::new().name("sleeper").spawn(sleep(Duration::from_secs(600))));
        last = mini::spawn(async move { last.await.unwrap() });
    }
    while Handle::current().dump().tasks().iter().any(|task| task.waits_for().is_none()) {
        yield_now().await;
    }
    let counted = [(); 2].map(|()| {
        let before = ALLOCATIONS.get();
        let dump = Handle::current().dump();
        let allocations = ALLOCATIONS.get() - before;
        assert_eq!(dump.tasks().len(), tasks + 1);
        allocations
    });
    drop((held, senders, last));
    counted
}

#[test]
fn a_dump_allocates_as_often_for_many_tasks_as_for_few() {
    let allocations = |tasks| Builder::new_current_thread().build().unwrap().block_on(allocations(tasks));
    let (few, many) = (allocations(40), allocations(4_000));
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + 32, "{few} for 40 tasks, {many} for 4,000: vectors may grow, and nothing else");
    }
}
