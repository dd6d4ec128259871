//! For systems that report nothing about a thread of this process, and let it set neither its timer slack nor its
//! processor, nor make the other threads pass a fence.

use std::ffi::{c_int, c_long};
use std::io;
use std::sync::atomic::{Ordering::SeqCst, fence};
use std::time::Duration;

pub(crate) fn set_timer_slack(_: u64) -> Option<u64> {
    None
}

#[inline]
pub(crate) fn light_fence() {
    fence(SeqCst);
}

pub(crate) fn heavy_fence() -> bool {
    fence(SeqCst);
    true
}

pub(crate) fn own_thread() -> i32 {
    0
}

pub(crate) fn cpu_time(_: i32) -> Option<Duration> {
    None
}

pub(crate) fn is_runnable(_: i32) -> Option<bool> {
    None
}

pub(crate) fn system_call(_: i32) -> Option<(c_long, bool)> {
    None
}

pub(crate) fn system_call_name(_: c_long) -> Option<&'static str> {
    None
}

pub(crate) fn signal(_: i32, _: c_int) -> bool {
    false
}

pub(crate) fn pin(_: usize) -> io::Result<bool> {
    Ok(false)
}
