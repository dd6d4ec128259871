//! The errors of sending and receiving.

use std::fmt;

use crate::macros::error;

/// The receiver is gone or has closed the channel. The error has the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// A message could not be sent at once. The error has the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room now, or other tasks wait for it.
    Full(T),
    /// The receiver is gone or has closed the channel.
    Closed(T),
}

/// There is no message to take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message now.
    Empty,
    /// There will be no message: all senders are gone, or the channel is closed.
    Disconnected,
}

impl<T> TrySendError<T> {
    /// Returns the message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

/// A message need not be printable.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

const CLOSED: &str = "the receiver was dropped or has closed the channel";

error!(SendError<T> { _ => CLOSED });
error!(TrySendError<T> {
    Self::Full(_) => "the channel is full",
    Self::Closed(_) => CLOSED,
});
error!(TryRecvError {
    Self::Empty => "the channel is empty",
    Self::Disconnected => "the channel is empty and closed",
});
