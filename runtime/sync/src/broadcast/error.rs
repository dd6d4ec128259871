//! The errors of this channel.

use std::error::Error;
use std::fmt;

use crate::macros::error;

/// The error of a message sent without a receiver; it contains the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

error!(SendError<T> { _ => "the channel has no receiver" });

/// The reason why [`Receiver::recv`](super::Receiver::recv) has no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// All senders are gone, and no message is left.
    Closed,
    /// This number of messages was overwritten before the receiver got them.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the channel is closed"),
            Self::Lagged(missed) => write!(f, "the receiver has missed {missed} messages"),
        }
    }
}

impl Error for RecvError {}

/// The reason why [`Receiver::try_recv`](super::Receiver::try_recv) has no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message now, but there may be one later.
    Empty,
    /// All senders are gone, and no message is left.
    Closed,
    /// This number of messages was overwritten before the receiver got them.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the channel is empty"),
            Self::Closed => f.write_str("the channel is closed"),
            Self::Lagged(missed) => write!(f, "the receiver has missed {missed} messages"),
        }
    }
}

impl Error for TryRecvError {}
