//! The number of descriptors that this process may have open: `RLIMIT_NOFILE` in getrlimit(2).
//!
//! Called by `error`, which names the limit where it has been reached.

#![allow(unsafe_code)]

/// The limit, or `None` if there is none or the system does not report it.
#[cold]
pub(crate) fn open_files() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is an rlimit of this function's own, which the call fills and does not keep;
    // `the_limit_is_told_where_it_has_been_reached` runs it.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if result != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    Some(limit.rlim_cur as _)
}
