//! The errors of this channel.

use std::fmt;

use crate::macros::error;

/// The error of a value sent without a receiver; it contains the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

error!(SendError<T> { _ => "the channel has no receiver" });

/// All senders are gone, and their last value counts as seen or is not wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

error!(RecvError { _ => "the channel is closed" });
