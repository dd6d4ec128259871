//! `Process`: whether this is still the process that something was made in, or a child that fork(2) has made of it.
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

/// How often a process has been forked between the first one that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

/// The process that something was made in.
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
    /// What is said to those who use a runtime of the parent.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(mini_net::Process::REFUSAL.contains("fork(2)"));
    /// ```
    pub const REFUSAL: &str =
        "this mini runtime was built before fork(2) and serves the parent process alone: build a new one in the child";

    /// This process.
    ///
    /// # Examples
    ///
    /// See [`Process`].
    pub fn current() -> Process {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            // SAFETY: the handler does what it may in the child of a process with threads, it adds to an atomic; it is
            // a function of this program, which is there as long as the process. Without memory for it a fork is not
            // noticed. Test: tests/tests/fork.rs `the_parents_runtime_refuses_to_serve_in_a_child`.
            unsafe { pthread_atfork(None, None, Some(count)) };
        });
        Process(FORKS.load(Relaxed))
    }

    /// Whether this process is still the same.
    ///
    /// # Examples
    ///
    /// See [`Process`].
    #[inline]
    pub fn is_current(self) -> bool {
        // Relaxed: a child begins with one thread, which has run the handler.
        FORKS.load(Relaxed) == self.0
    }

    /// Panics in a child; `call` is what the user has called.
    ///
    /// # Examples
    ///
    /// ```
    /// mini_net::Process::current().check("mini::block_on");
    /// ```
    ///
    /// # Panics
    ///
    /// If this is another process.
    #[inline]
    #[track_caller]
    pub fn check(self, call: &str) {
        if !self.is_current() {
            refuse(call);
        }
    }

    /// Whether anything of a parent may be in the memory of this process.
    pub(crate) fn has_parent() -> bool {
        FORKS.load(Relaxed) != 0
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
