//! Functions of the C library as a simulated program sees them: what `interpose!` calls.
//!
//! `interpose.rs` computes their results; this file has the pointers and system calls. The functions may run on any
//! thread at any time, even before `main` and in a signal handler, so they allocate nothing, lock nothing and do not
//! panic.
//!
//! Outside a simulation, random bytes come from the system call, as in the C library. The time comes from the C
//! library's own `clock_gettime`, which is found by dlsym(3) at the first call: it takes 20 to 40 ns, as it need not
//! enter the kernel (vdso(7)); a system call takes several times as much.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{clockid_t, timespec};

use super::interpose::{Kind, fill, read};

// The types in the signatures of the macro's functions, so that the program need not depend on `libc`.
pub use libc::{clockid_t as Clock, timespec as Time};
pub use std::ffi::{c_int as Int, c_uint as Flags, c_void as Void};

/// The most bytes that getentropy(3) gives.
const MOST: usize = 256;

type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// The C library's `clock_gettime`, once it was asked for.
static SYSTEM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// getrandom(2).
///
/// # Safety
///
/// As getrandom(2): `buf` is valid for writes of `length` bytes.
pub unsafe extern "C" fn getrandom(buf: *mut c_void, length: usize, flags: c_uint) -> isize {
    // SAFETY: as the caller has promised.
    if unsafe { fill_from_seed(buf, length) } {
        return length as isize;
    }
    // SAFETY: as the caller has promised; the kernel checks the flags. Test: tests/tests/interposed/interpose.rs
    // `outside_of_a_simulation_all_is_the_systems`.
    unsafe { libc::syscall(libc::SYS_getrandom, buf, length, flags) as isize }
}

/// getentropy(3).
///
/// # Safety
///
/// As getentropy(3): `buf` is valid for writes of `length` bytes.
pub unsafe extern "C" fn getentropy(buf: *mut c_void, length: usize) -> c_int {
    // SAFETY: as the caller has promised.
    if length <= MOST && unsafe { fill_from_seed(buf, length) } {
        return 0;
    }
    // SAFETY: as the caller has promised. 256 bytes come whole (getrandom(2)).
    let drawn = if length > MOST { -1 } else { unsafe { libc::syscall(libc::SYS_getrandom, buf, length, 0) } };
    if drawn == length as i64 {
        return 0;
    }
    // SAFETY: takes nothing, and gives a pointer that is valid on this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above, and nobody else has a reference. Test: tests/tests/interposed/interpose.rs
    // `the_c_librarys_functions_say_what_the_seed_says`.
    unsafe { errno.write(libc::EIO) };
    -1
}

/// clock_gettime(2).
///
/// # Safety
///
/// As clock_gettime(2): `time` is valid for a write.
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let simulated = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => read(Kind::Calendar),
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_BOOTTIME => {
            read(Kind::Monotonic)
        }
        _ => None, // the time of a processor, say
    };
    let Some(now) = simulated.filter(|_| !time.is_null()) else {
        // SAFETY: as the caller has promised. Test: as for `getrandom`.
        return unsafe { system()(clock, time) };
    };
    let now = timespec { tv_sec: now.as_secs() as _, tv_nsec: now.subsec_nanos().into() };
    // SAFETY: as the caller has promised. Test: tests/tests/interposed/interpose.rs `clocks_follow_virtual_time`.
    unsafe { time.write(now) };
    0
}

/// The C library's `clock_gettime`, or one that makes the system call, if there is none: in a static binary.
fn system() -> ClockGettime {
    let mut found = SYSTEM.load(Relaxed); // a function: nothing was written that has to be seen with it
    if found.is_null() {
        // SAFETY: the name ends with a zero. Test: as for `getrandom`, like the next.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
        if found.is_null() {
            found = call_kernel as ClockGettime as *mut c_void;
        }
        SYSTEM.store(found, Relaxed);
    }
    // SAFETY: a function of that name has this type (clock_gettime(2)), and so has the other one.
    unsafe { transmute::<*mut c_void, ClockGettime>(found) }
}

unsafe extern "C" fn call_kernel(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: as the caller has promised.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
}

/// Fills the buffer, if this thread runs a simulation; says whether it has.
///
/// # Safety
///
/// `buf` is valid for writes of `length` bytes.
unsafe fn fill_from_seed(buf: *mut c_void, length: usize) -> bool {
    if length == 0 {
        return false; // then `buf` may be anything
    }
    // SAFETY: valid for writes, as the caller has promised, and not read, so it need not be initialised; nobody else
    // has it while the caller's call lasts. Test: tests/tests/interposed/interpose.rs
    // `the_c_librarys_functions_say_what_the_seed_says`.
    fill(unsafe { slice::from_raw_parts_mut(buf.cast::<MaybeUninit<u8>>(), length) })
}
