//! `Process`: detects whether this is still the process in which an object was made, or a child of it (fork(2)).
//!
//! Called by the reactor, whose epoll instance is the same in parent and child, and by the runtime, whose threads do
//! not exist in a child. A handler of pthread_atfork(3) counts in the child, so the answer is one load.
//!
//! Children that start another program at once, without a copy of the memory (vfork(2), posix_spawn(3)), call no
//! handler: it would count in the memory of the parent.
//!
//! Rejected: getpid(2) at each use (a system call). A page that the kernel empties in a child (`MADV_WIPEONFORK`, of
//! Linux alone).

#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::c_int;

/// The number of forks between the first process that called this and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

/// The process in which an object was made.
///
/// # Examples
///
/// ```
/// let process = mini_net::Process::current();
/// assert!(process.is_current());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The message for users of a parent's runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(mini_net::Process::REFUSAL.contains("fork(2)"));
    /// ```
    pub const REFUSAL: &str =
        "this mini runtime was built before fork(2) and serves only the parent process: build a new one in the child";

    /// Returns this process.
    ///
    /// # Examples
    ///
    /// See [`Process`].
    pub fn current() -> Process {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which it may do in the child of a process with threads; it is
            // a function of this program, and exists as long as the process. Without memory for it a fork is not
            // noticed. Test: tests/tests/processes/fork.rs `the_parents_runtime_refuses_to_serve_in_a_child`.
            unsafe { pthread_atfork(None, None, Some(count)) };
        });
        Process(FORKS.load(Relaxed))
    }

    /// Returns `true` if this is still the same process.
    ///
    /// # Examples
    ///
    /// See [`Process`].
    #[inline]
    pub fn is_current(self) -> bool {
        // Relaxed: a child begins with one thread, which has run the handler.
        FORKS.load(Relaxed) == self.0
    }

    /// Panics in a child; `call` names the user's call.
    ///
    /// # Examples
    ///
    /// ```
    /// mini_net::Process::current().check("mini::block_on");
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if this is another process.
    #[inline]
    #[track_caller]
    pub fn check(self, call: &str) {
        if !self.is_current() {
            refuse(call);
        }
    }
}

#[cold]
#[track_caller]
fn refuse(call: &str) -> ! {
    panic!("{call}: {}", Process::REFUSAL)
}

unsafe extern "C" fn count() {
    FORKS.fetch_add(1, Relaxed);
}
