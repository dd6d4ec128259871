//! For systems that tell nothing about a thread of this process, and let it set neither its timer slack nor its
//! processor.

use std::io;
use std::time::Duration;

pub(crate) fn set_timer_slack(_: u64) -> Option<u64> {
    None
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

pub(crate) fn pin(_: usize) -> io::Result<bool> {
    Ok(false)
}
