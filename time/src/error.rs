//! The error of a future that ran out of time.
//!
//! `mini::time::error` is this module.

use std::error::Error;
use std::fmt;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::time::Duration;

use mini_context::{Reason, Wait};

/// The error of a [`timeout`](crate::timeout()) or a [`deadline`](crate::deadline()) that expired before its future was
/// ready.
///
/// The text names what the future waited for at that time, if that was something of mini's, and the line of the
/// program. `Debug` also names the line that set the limit, so an `unwrap` shows both. If the wait is unknown, or known
/// only by a line of another crate, the text has the line of the limit.
///
/// Two values are always equal: their content is for people.
///
/// # Examples
///
/// ```
/// use mini::time::{error::Elapsed, sleep, timeout};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let error: Elapsed = timeout(Duration::from_secs(1), sleep(Duration::from_secs(2))).await.unwrap_err();
/// let line = error.waited_for().unwrap().location();
/// assert_eq!(error.to_string(), format!("deadline has elapsed after 1s while waiting for Timer at {line}"));
/// assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Clone, Copy)]
pub struct Elapsed {
    /// The wait of the future, or the limit itself; none if it was not asked for.
    wait: Option<Wait>,
    location: &'static Location<'static>,
    /// The time limit in nanoseconds, or [`NOT_KNOWN`].
    after: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<(), Elapsed>>() == 32, "every result of a timeout has room for one");

/// In place of a number of nanoseconds.
pub(crate) const NOT_KNOWN: u64 = u64::MAX;

/// The wait of a future at the time of its expiry; returned by [`Elapsed::waited_for`].
///
/// `Display` shows it as one line: `Read on fd 7 at src/main.rs:12:9`.
///
/// # Examples
///
/// ```
/// use mini::net::UdpSocket;
/// use mini::time::timeout;
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let socket = UdpSocket::bind("127.0.0.1:0").await?;
/// let elapsed = timeout(Duration::from_secs(5), socket.recv_from(&mut [0; 64])).await.unwrap_err();
/// assert!(elapsed.waited_for().unwrap().to_string().starts_with("Read on fd "));
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WaitedFor(Wait);

impl Elapsed {
    /// Creates an `Elapsed`, for code that has its own deadlines. It has no information on a wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::error::Elapsed;
    ///
    /// assert_eq!(Elapsed::new().to_string(), "deadline has elapsed");
    /// ```
    #[track_caller]
    pub const fn new() -> Elapsed {
        Elapsed { wait: None, location: Location::caller(), after: NOT_KNOWN }
    }

    /// The error of a limit that was set at `location`.
    pub(crate) fn of(wait: Wait, location: &'static Location<'static>, after: u64) -> Elapsed {
        Elapsed { wait: Some(wait), location, after }
    }

    /// Returns what the future was waiting for when its time was over.
    ///
    /// If the future waited for several things at once, this is the last one polled. Returns `None` if that was not one
    /// of mini's, such as a channel of another library. Returns `None` too if the future was not polled again when the
    /// time was over, as in a collection that polls only woken futures, and if it was not waiting but yielded again and
    /// again.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{sleep, timeout};
    /// use std::{future, time::Duration};
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let second = Duration::from_secs(1);
    /// let elapsed = timeout(second, sleep(2 * second)).await.unwrap_err();
    /// assert!(elapsed.waited_for().unwrap().to_string().starts_with("Timer at "));
    ///
    /// let elapsed = timeout(second, future::pending::<()>()).await.unwrap_err();
    /// assert_eq!(elapsed.waited_for(), None);
    /// # });
    /// ```
    #[must_use]
    pub fn waited_for(&self) -> Option<WaitedFor> {
        self.wait.filter(|wait| !is_unknown(*wait)).map(WaitedFor)
    }

    /// Returns the line that set the limit: the call of [`timeout`](crate::timeout()),
    /// [`timeout_at`](crate::timeout_at()) or [`deadline`](crate::deadline()).
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{sleep, timeout};
    /// use std::time::Duration;
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let second = Duration::from_secs(1);
    /// let (limited, line) = (timeout(second, sleep(2 * second)), line!());
    /// assert_eq!(limited.await.unwrap_err().location().line(), line);
    /// # });
    /// ```
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the duration given to [`timeout`](crate::timeout()), or `None` for the other limits, which are points in
    /// time.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{sleep, timeout};
    /// use std::time::Duration;
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let second = Duration::from_secs(1);
    /// assert_eq!(timeout(second, sleep(2 * second)).await.unwrap_err().limit(), Some(second));
    /// # });
    /// ```
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        (self.after != NOT_KNOWN).then(|| Duration::from_nanos(self.after))
    }
}

/// A limit is all that is known.
fn is_unknown(wait: Wait) -> bool {
    matches!(wait.reason(), Reason::Limit(_))
}

/// The wait is in another crate than the program that has set the limit, such as one with traits for streams: cargo
/// compiles those by their whole paths.
fn is_elsewhere(wait: &Location<'_>, limit: &Location<'_>) -> bool {
    Path::new(wait.file()).is_absolute() && Path::new(limit.file()).is_relative()
}

impl WaitedFor {
    /// Returns the line of the program that waits: the call that made mini's future. For a joined task it is the line
    /// of the task's spawn.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{sleep, timeout};
    /// use std::time::Duration;
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let second = Duration::from_secs(1);
    /// let (slow, line) = (sleep(2 * second), line!());
    /// let elapsed = timeout(second, slow).await.unwrap_err();
    /// assert_eq!(elapsed.waited_for().unwrap().location().line(), line);
    /// # });
    /// ```
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location()
    }
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for Elapsed {
    #[track_caller]
    fn default() -> Elapsed {
        Elapsed::new()
    }
}

impl PartialEq for Elapsed {
    fn eq(&self, _: &Elapsed) -> bool {
        true
    }
}

impl Eq for Elapsed {}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")?;
        if let Some(limit) = self.limit() {
            write!(f, " after {limit:?}")?;
        }
        match self.wait {
            None => Ok(()),
            Some(wait) if is_unknown(wait) => write!(f, " while waiting for something {wait}"),
            Some(wait) if is_elsewhere(wait.location(), self.location) => {
                write!(f, " while waiting for {wait}, with a time limit at {}", self.location)
            }
            Some(wait) => write!(f, " while waiting for {wait}"),
        }
    }
}

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elapsed")
            .field("waited_for", &self.waited_for())
            .field("location", &format_args!("{}", self.location))
            .field("limit", &self.limit())
            .finish()
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
