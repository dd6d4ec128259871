//! Allocates the memory of a task, and frees it when the task has ended.
//!
//! Called when a task (`cell.rs`) or the child of a scope (`structure/child.rs`) is allocated or freed. A thread that
//! holds a core uses the blocks that this core keeps (`cache.rs`); other threads use the global allocator, the source
//! of all blocks.
//!
//! Rejected: the cache of the thread instead of that of the core (it would outlive its runtime, and no other worker
//! could send blocks home).

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::scheduler::current;
use crate::task::cache::{RemoteFrees, TaskCache, class_of, layout_for};
use crate::task::schedule::Schedule;

/// Memory for a `T`, not initialised.
pub fn allocate<T>() -> NonNull<T> {
    let kept = const { class_of(Layout::new::<T>()) }.and_then(|class| {
        current::with_held(|core| {
            core.with_blocks(|blocks, returned| {
                blocks.take(class).or_else(|| {
                    if returned.is_empty() {
                        return None;
                    }
                    returned.sort_into(blocks);
                    blocks.take(class)
                })
            })
        })
        .flatten()
    });
    if let Some(block) = kept {
        return block.cast();
    }
    let layout = const {
        assert!(size_of::<T>() > 0);
        layout_for(Layout::new::<T>())
    };
    // SAFETY: the layout is not of size zero.
    // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
    let block = unsafe { alloc(layout) };
    NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives back what [`allocate`] gave for a task that belonged to `schedule`.
///
/// # Safety
///
/// `block` came from `allocate::<T>`, and what was in it has been dropped.
pub(crate) unsafe fn free<T>(block: NonNull<T>, schedule: Schedule) {
    let Some(class) = (const { class_of(Layout::new::<T>()) }) else {
        // SAFETY: the caller's promise.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        return unsafe { free_untied(block) };
    };
    if schedule.is_held() {
        // SAFETY: the caller's promise.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        schedule.with_blocks(|blocks, _| unsafe { blocks.put_or_free(block.cast(), class) });
        // SAFETY: this thread holds the core.
        // Test: as above.
        return unsafe { schedule.drop_here() };
    }
    if let Some(home) = schedule.remote_frees() {
        // SAFETY: the caller's promise.
        // Test: as above.
        return unsafe { home.push(block.cast(), class) };
    }
    // SAFETY: the caller's promise.
    // Test: as above.
    unsafe { free_untied(block) };
}

/// Gives back what [`allocate`] gave, to the core that this thread holds, if any.
///
/// # Safety
///
/// As for [`free`].
pub unsafe fn free_untied<T>(block: NonNull<T>) {
    let kept = const { class_of(Layout::new::<T>()) }.and_then(|class| {
        // SAFETY: the caller's promise.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        let keep = |blocks: &mut TaskCache, _: &RemoteFrees| unsafe { blocks.put_or_free(block.cast(), class) };
        current::with_held(|core| core.with_blocks(keep))
    });
    if kept.is_none() {
        // SAFETY: the caller's promise; every block was allocated with the layout for its type.
        // Test: as above.
        unsafe { dealloc(block.cast().as_ptr(), const { layout_for(Layout::new::<T>()) }) };
    }
}
