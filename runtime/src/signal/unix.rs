//! Signals by kind: [`signal(kind)`](signal) returns a [`Signal`], which receives every later signal of that kind.

// Called by users, by `ctrl_c` and by `process::watch`. A `Signal` is an `Ear` and the kind that this hears.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use libc::c_int;
use mini_net::{CallSite, IoKind, Site};
use signal_hook_registry::FORBIDDEN;

use super::simulated::{Ear, Hearing};

#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "netbsd",
    target_os = "openbsd"
))]
mod info;

/// The number of a signal; see signal(7).
///
/// # Examples
///
/// ```
/// use mini::signal::unix::SignalKind;
/// assert_eq!(SignalKind::terminate().as_raw_value(), 15);
/// assert_eq!(SignalKind::from_raw(15), SignalKind::terminate());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignalKind(c_int);

macro_rules! kinds {
    ($($(#[doc = $text:literal])* $name:ident = $number:ident;)*) => { $(
        $(#[doc = $text])*
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("let mut signals = mini::signal::unix::signal(mini::signal::unix::SignalKind::",
            stringify!($name), "())?;")]
        /// # std::io::Result::Ok(())
        /// ```
        pub const fn $name() -> Self {
            Self(libc::$number)
        }
    )*

        /// The name that the system has for it, if it has a function here.
        const fn system_name(self) -> Option<&'static str> {
            match self.0 {
                $(libc::$number => Some(stringify!($number)),)*
                _ => None,
            }
        }
    };
}

impl SignalKind {
    /// Returns the signal with this number. [`signal`] checks whether it exists and can be listened to.
    ///
    /// # Examples
    ///
    /// See [`SignalKind`].
    pub const fn from_raw(number: c_int) -> Self {
        Self(number)
    }

    /// Returns the number of the signal on this system.
    ///
    /// # Examples
    ///
    /// See [`SignalKind`].
    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }

    kinds! {
        /// SIGALRM: a timer of alarm(2) or setitimer(2) has run out. By default it ends the process.
        alarm = SIGALRM;
        /// SIGCHLD: a child has ended, stopped or gone on. By default nothing happens.
        child = SIGCHLD;
        /// SIGHUP: the terminal is gone; to daemons often "read your configuration again". By default it ends the
        /// process.
        hangup = SIGHUP;
        /// SIGINT: Ctrl-C. By default it ends the process.
        interrupt = SIGINT;
        /// SIGIO: a descriptor with `O_ASYNC` is ready. By default it ends the process on Linux, and elsewhere nothing
        /// happens.
        io = SIGIO;
        /// SIGPIPE: a write to a pipe that nobody reads. Rust programs ignore it from the start, and get an error
        /// instead.
        pipe = SIGPIPE;
        /// SIGQUIT: Ctrl-\. By default it ends the process with a core dump.
        quit = SIGQUIT;
        /// SIGTERM: the request to end. By default it ends the process.
        terminate = SIGTERM;
        /// SIGUSR1: for the program's own use. By default it ends the process.
        user_defined1 = SIGUSR1;
        /// SIGUSR2: for the program's own use. By default it ends the process.
        user_defined2 = SIGUSR2;
        /// SIGWINCH: the terminal has another size. By default nothing happens.
        window_change = SIGWINCH;
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.system_name() {
            Some(name) => f.write_str(name),
            None => f.debug_tuple("SignalKind").field(&self.0).finish(),
        }
    }
}

impl From<c_int> for SignalKind {
    fn from(number: c_int) -> Self {
        Self(number)
    }
}

impl From<SignalKind> for c_int {
    fn from(kind: SignalKind) -> Self {
        kind.0
    }
}

/// Hears every signal of one kind, from [`signal`] until it is dropped.
///
/// - **Coalesced.** Signals that arrive before the last one was received may be received as one, as in the kernel
///   (signal(7), "Standard signals"). A signal that arrives after [`recv`](Signal::recv) was ready is received again.
/// - **Each for itself.** All listeners, in all runtimes, receive each signal.
/// - **For good.** The default effect of the signal (to end the process, say) is disabled by the first listener, and
///   stays disabled when all have been dropped, except after [`termination`](super::termination). Handlers that were
///   there before are still called.
/// - **Threads.** It does not matter which thread the kernel interrupts.
/// - **Children.** A signal to a child process is not heard by its parent. A child that runs another program
///   (execve(2)) begins with the default effect of the signal. In a child that was only forked (fork(2)), SIGINT,
///   SIGTERM and SIGQUIT end the process if that was their effect when the parent began to listen; other signals that
///   the parent listens to have no effect there. Such a child makes listeners of its own; waiting for one of its
///   parent's panics.
///
/// A listener belongs to the runtime in which it is made, or otherwise to the one in which it first waits. It can be
/// awaited in any runtime until its own shuts down.
///
/// # Examples
///
/// ```no_run
/// use mini::signal::unix::{SignalKind, signal};
///
/// # mini::block_on(async {
/// let mut hangups = signal(SignalKind::hangup())?;
/// while let Some(()) = hangups.recv().await {
///     println!("reading the configuration again");
/// }
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[must_use = "it hears nothing once it has been dropped"]
pub struct Signal {
    ear: Ear,
    kind: SignalKind,
}

/// Future of [`Signal::recv`]: resolves to `Option<()>`, `Some` when a signal has come.
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a>(Hearing<'a>);

const RECV: &Site = &Site { owner: "Signal", method: "recv", kind: IoKind::Signal };

/// Starts to listen to a signal.
///
/// # Examples
///
/// See [`Signal`].
///
/// # Errors
///
/// Returns `InvalidInput` for SIGKILL and SIGSTOP, which a program cannot handle, and for SIGSEGV, SIGILL and SIGFPE,
/// which are faults of the thread they come to. Returns the errors of sigaction(2) (`EINVAL`: there is no such signal)
/// and of socketpair(2), as each listener takes two descriptors. Returns an error if the runtime has shut down.
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let ear = match kind.0 {
        number if FORBIDDEN.contains(&number) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("signal {number} cannot be caught")))
        }
        number => Ear::open(number),
    };
    Ok(Signal { ear: ear?, kind })
}

impl Signal {
    /// Waits for the next signal. The output is `None` if the listener's runtime has shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::process::{Command, id};
    /// use mini::signal::unix::{SignalKind, signal};
    ///
    /// # mini::block_on(async {
    /// let mut signals = signal(SignalKind::user_defined1())?;
    /// # Command::new("kill").args(["-USR1", &id().to_string()]).status()?;
    /// assert_eq!(signals.recv().await, Some(()));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If it is polled outside a mini runtime, unless the `Signal` has already joined one; in a child of the process
    /// that made the `Signal` (fork(2)).
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no signal.
    #[track_caller]
    pub fn recv(&mut self) -> Recv<'_> {
        self.recv_for(CallSite::here(RECV))
    }

    /// As `recv`, for a call that messages name instead of it.
    pub(crate) fn recv_for(&mut self, call_site: CallSite) -> Recv<'_> {
        Recv(self.ear.hear(call_site))
    }

    /// Polls for the next signal; see [`recv`](Signal::recv).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # mini::block_on(async {
    /// # use mini::signal::unix::{SignalKind, signal};
    /// let mut signals = signal(SignalKind::quit())?;
    /// std::future::poll_fn(|cx| signals.poll_recv(cx)).await;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`recv`](Signal::recv).
    #[track_caller]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        const SITE: &Site = &Site { owner: "Signal", method: "poll_recv", kind: IoKind::Signal };
        self.poll_recv_for(cx, &CallSite::here(SITE))
    }

    /// As `poll_recv`, for a call that messages name instead of it.
    pub(super) fn poll_recv_for(&mut self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<Option<()>> {
        self.ear.poll(cx, call_site)
    }
}

impl Recv<'_> {
    /// Panics where the listener may not wait: outside a mini runtime, unless it has joined one. The text names the
    /// call.
    pub(crate) fn need_runtime(&self) {
        self.0.need_runtime();
    }
}

impl Future for Recv<'_> {
    type Output = Option<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.need_runtime(); // whether or not a signal has come
        Pin::new(&mut self.get_mut().0).poll(cx)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for Recv<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recv").field(&self.0).finish()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Signal, Recv<'_>, super::CtrlC, super::TerminationSignal)>();
};
