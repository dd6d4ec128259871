//! Messages of the runtime to the person who runs the program: a line on stderr that begins with its name.
//!
//! Used for events that would otherwise be unseen. A closed stderr is no reason to panic.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Prints a line to stderr.
#[doc(hidden)]
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// Prints a line in one write: the standard library prints a panic piece by piece, and takes no lock for it.
#[cold]
pub fn line(text: fmt::Arguments<'_>) {
    let line = format!("mini: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The most lines of a kind per [`WINDOW`]: a network that breaks ends ten thousand connections.
const LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Says lines of one kind, of which there may be very many, and counts those that are too many.
#[derive(Debug)]
pub struct Throttle(Mutex<Quota>);

/// The numbers of recent lines that were printed, and that were not.
#[derive(Debug)]
struct Quota {
    begun: Option<Instant>,
    said: u32,
    unsaid: u64,
}

/// The decision whether to print a line.
#[derive(Debug, PartialEq, Eq)]
enum Say {
    /// Say it, and that so many before it were not said.
    Yes {
        unsaid: u64,
    },
    /// Say it, and that more of them are only counted.
    Last,
    No,
}

impl Throttle {
    pub const fn new() -> Self {
        Self(Mutex::new(Quota { begun: None, said: 0, unsaid: 0 }))
    }

    /// Says the line, unless there were too many lately. Nobody waits for another thread's slow stderr.
    ///
    /// In a simulation each is said, as a seed says the same whatever others have said before.
    #[cold]
    pub fn line(&self, text: fmt::Arguments<'_>) {
        if mini_context::sim::is_simulated() {
            return line(text);
        }
        let say = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        match say {
            Say::Yes { unsaid: 0 } => line(text),
            Say::Yes { unsaid } => say!("{text}\nmini: {unsaid} more lines like this were left out before"),
            Say::Last => say!("{text}\nmini: for a second, more lines like this are only counted"),
            Say::No => {}
        }
    }
}

impl Quota {
    /// Whether to say a line at `now`.
    fn take(&mut self, now: Instant) -> Say {
        if self.begun.is_none_or(|begun| now.saturating_duration_since(begun) >= WINDOW) {
            let unsaid = self.unsaid;
            *self = Self { begun: Some(now), said: 1, unsaid: 0 };
            return Say::Yes { unsaid };
        }
        self.said += 1;
        match self.said {
            ..LINES => Say::Yes { unsaid: 0 },
            LINES => Say::Last,
            _ => {
                self.unsaid += 1;
                Say::No
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_told_later() {
        let begin = Instant::now();
        let mut quota = Throttle::new().0.into_inner().unwrap();
        for _ in 1..LINES {
            assert_eq!(quota.take(begin), Say::Yes { unsaid: 0 });
        }
        assert_eq!(quota.take(begin), Say::Last);
        assert_eq!(quota.take(begin), Say::No);
        assert_eq!(quota.take(begin + WINDOW / 2), Say::No);
        assert_eq!(quota.take(begin + WINDOW), Say::Yes { unsaid: 2 });
        assert_eq!(quota.take(begin + WINDOW), Say::Yes { unsaid: 0 });
    }
}
