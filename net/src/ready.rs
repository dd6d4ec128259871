//! `Ready`, what an fd can do now, and `Interest`, what a task waits for.
//!
//! `Ready` goes from the backends through `slot` to the user; `Interest` the other way.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Sub};

/// The operations that an fd can do without blocking: a set of flags.
///
/// A flag is the kernel's latest report, so it may be out of date. Only the operation itself shows what is true.
///
/// # Examples
///
/// ```
/// use mini::io::Ready;
///
/// let ready = Ready::READABLE | Ready::READ_CLOSED;
/// assert!(ready.is_readable() && ready.is_read_closed());
/// assert!(!ready.is_writable() && !ready.is_write_closed());
/// assert!(!ready.is_priority() && !ready.is_error() && !ready.is_empty());
/// assert_eq!(ready & Ready::READABLE, Ready::READABLE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ready(u8);

/// The directions that a task waits for: a set, never empty.
///
/// # Examples
///
/// ```
/// use mini::io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable() && !both.is_priority() && !both.is_error());
/// assert_eq!(Interest::READABLE.add(Interest::WRITABLE), both);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interest(Ready);

impl Ready {
    /// Nothing.
    pub const EMPTY: Ready = Ready(0);
    /// A read will not block.
    pub const READABLE: Ready = Ready(1);
    /// A write will not block.
    pub const WRITABLE: Ready = Ready(2);
    /// Nothing more will arrive than what is there.
    pub const READ_CLOSED: Ready = Ready(4);
    /// Nothing more can be written.
    pub const WRITE_CLOSED: Ready = Ready(8);
    /// Out-of-band data has arrived (Linux and Android only).
    pub const PRIORITY: Ready = Ready(16);
    /// An error is pending.
    pub const ERROR: Ready = Ready(32);
    /// All of the above.
    pub const ALL: Ready = Ready(63);

    /// The reactor will not report any more. Permanent; never shown to the user.
    pub(crate) const SHUTDOWN: Ready = Ready(64);
    /// As [`READ_CLOSED`](Self::READ_CLOSED), for those that read: one that has looked for out-of-band data, and found
    /// none, need not look again. Shown to the user as that.
    pub(crate) const READ_END: Ready = Ready(128);
    /// A hang-up, as all waiters must see it.
    pub(crate) const CLOSED: Ready = Ready(1 | 2 | 4 | 8);

    /// Returns `true` if no flag is set.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if a read will not block: there is data, a connection to accept, the end of the stream, or an
    /// error.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_readable(self) -> bool {
        self.intersects(Ready(1 | 4 | 128))
    }

    /// Returns `true` if a write will not block: there is room, or an error.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_writable(self) -> bool {
        self.intersects(Ready(2 | 8))
    }

    /// Returns `true` if the reading side is closed.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_read_closed(self) -> bool {
        self.intersects(Ready(4 | 128))
    }

    /// Returns `true` if the writing side is closed.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_write_closed(self) -> bool {
        self.intersects(Ready::WRITE_CLOSED)
    }

    /// Returns `true` if out-of-band data has arrived. Take the data only after seeing this flag: otherwise a read that
    /// ends at its mark counts as one that has returned everything.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_priority(self) -> bool {
        self.intersects(Ready::PRIORITY)
    }

    /// Returns `true` if an error is pending.
    ///
    /// # Examples
    ///
    /// See [`Ready`].
    pub const fn is_error(self) -> bool {
        self.intersects(Ready::ERROR)
    }

    pub(crate) const fn is_shut_down(self) -> bool {
        self.intersects(Ready::SHUTDOWN)
    }

    pub(crate) const fn intersects(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }

    /// As users see it.
    pub(crate) fn shown(self) -> Ready {
        let end = if self.intersects(Ready::READ_END) { Ready::READ_CLOSED } else { Ready::EMPTY };
        self.without(Ready::READ_END) | end
    }

    pub(crate) const fn without(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Ready {
        Ready(bits)
    }
}

impl Interest {
    /// Reading, and the end of what can be read.
    pub const READABLE: Interest = Interest(Ready::READABLE);
    /// Writing, and the end of what can be written.
    pub const WRITABLE: Interest = Interest(Ready::WRITABLE);
    /// Out-of-band data (Linux and Android only).
    pub const PRIORITY: Interest = Interest(Ready::PRIORITY);
    /// A pending error.
    pub const ERROR: Interest = Interest(Ready::ERROR);

    /// Returns the union of `self` and `other`; the same as `|`.
    ///
    /// # Examples
    ///
    /// See [`Interest`].
    pub const fn add(self, other: Interest) -> Interest {
        Interest(Ready(self.0.0 | other.0.0))
    }

    /// Returns `self` without `other`, or `None` if nothing is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::Interest;
    /// let both = Interest::READABLE | Interest::WRITABLE;
    /// assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    /// assert_eq!(both.remove(both), None);
    /// ```
    #[must_use = "this returns what is left"]
    pub const fn remove(self, other: Interest) -> Option<Interest> {
        match self.0.0 & !other.0.0 {
            0 => None,
            left => Some(Interest(Ready(left))),
        }
    }

    /// Returns `true` if reading is part of it.
    ///
    /// # Examples
    ///
    /// See [`Interest`].
    pub const fn is_readable(self) -> bool {
        self.0.intersects(Ready::READABLE)
    }

    /// Returns `true` if writing is part of it.
    ///
    /// # Examples
    ///
    /// See [`Interest`].
    pub const fn is_writable(self) -> bool {
        self.0.intersects(Ready::WRITABLE)
    }

    /// Returns `true` if out-of-band data is part of it.
    ///
    /// # Examples
    ///
    /// See [`Interest`].
    pub const fn is_priority(self) -> bool {
        self.0.intersects(Ready::PRIORITY)
    }

    /// Returns `true` if errors are part of it.
    ///
    /// # Examples
    ///
    /// See [`Interest`].
    pub const fn is_error(self) -> bool {
        self.0.intersects(Ready::ERROR)
    }

    /// The flags that end a wait for this.
    pub(crate) const fn mask(self) -> Ready {
        let mut mask = self.0.0;
        if self.0.intersects(Ready(1 | 16)) {
            mask |= Ready::READ_CLOSED.0;
        }
        if self.is_readable() {
            mask |= Ready::READ_END.0;
        }
        if self.is_writable() {
            mask |= Ready::WRITE_CLOSED.0;
        }
        Ready(mask)
    }

    /// The flags of `mask` without the closed ones: a short read or a user may clear these.
    pub(crate) const fn open(self) -> Ready {
        self.0
    }

    /// The reverse of `open`, for a set that is not empty.
    pub(crate) const fn from_open(ready: Ready) -> Interest {
        Interest(ready)
    }

    pub(crate) const fn covers(self, other: Interest) -> bool {
        self.0.0 & other.0.0 == other.0.0
    }
}

impl BitOr for Ready {
    type Output = Ready;
    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        self.0 |= other.0;
    }
}

impl BitAnd for Ready {
    type Output = Ready;
    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl BitAndAssign for Ready {
    fn bitand_assign(&mut self, other: Ready) {
        self.0 &= other.0;
    }
}

/// The flags of the first that are not in the second.
impl Sub for Ready {
    type Output = Ready;
    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

impl BitOr for Interest {
    type Output = Interest;
    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Interest) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] =
            ["READABLE", "WRITABLE", "READ_CLOSED", "WRITE_CLOSED", "PRIORITY", "ERROR", "SHUTDOWN", "READ_END"];
        if self.is_empty() {
            return f.write_str("EMPTY");
        }
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interest_covers_the_closing_of_its_direction() {
        assert_eq!(Interest::READABLE.mask(), Ready::READABLE | Ready::READ_CLOSED | Ready::READ_END);
        assert_eq!(Interest::WRITABLE.mask(), Ready::WRITABLE | Ready::WRITE_CLOSED);
        assert_eq!(Interest::PRIORITY.mask(), Ready::PRIORITY | Ready::READ_CLOSED);
        assert_eq!(Interest::ERROR.mask(), Ready::ERROR);
    }

    #[test]
    fn debug_names_the_flags() {
        assert_eq!(format!("{:?}", Ready::EMPTY), "EMPTY");
        assert_eq!(format!("{:?}", Ready::READABLE | Ready::ERROR), "READABLE | ERROR");
        assert_eq!(format!("{:?}", Interest::WRITABLE), "WRITABLE");
    }
}
