//! The senders of a channel without a bound.

use std::fmt;
use std::sync::Arc;

use super::chan::{Chan, Closed, UNBOUNDED};
use super::error::SendError;
use super::receiver::UnboundedReceiver;

/// Creates a channel without a bound: sending never waits, and only the memory limits the channel. Prefer
/// [`channel`](super::channel) where the sender can be faster than the receiver.
///
/// # Examples
///
/// ```
/// use mini::sync::mpsc;
///
/// # mini::block_on(async {
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// std::thread::spawn(move || sender.send("from any thread"));
/// assert_eq!(receiver.recv().await, Some("from any thread"));
/// assert_eq!(receiver.recv().await, None);
/// # });
/// ```
#[track_caller]
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let chan = Chan::new(UNBOUNDED);
    (UnboundedSender { chan: chan.clone() }, UnboundedReceiver::new(chan))
}

/// Sends messages to an unbounded channel; see [`unbounded_channel`].
pub struct UnboundedSender<T> {
    pub(super) chan: Arc<Chan<T>>,
}

impl<T> UnboundedSender<T> {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Fails if the receiver is gone or has closed the channel. The error has the message.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.chan.send_unbounded(message).map_err(SendError)
    }
}

/// A sender that does not keep the channel open; see [`UnboundedSender::downgrade`].
pub struct WeakUnboundedSender<T> {
    chan: Arc<Chan<T>>,
}

macro_rules! sender {
    ($sender:ident, $weak:ident) => {
        impl<T> $sender<T> {
            /// Waits until the channel is closed: the receiver is dropped, or has closed it.
            ///
            /// # Cancel safety
            ///
            /// Nothing is lost.
            #[track_caller]
            pub fn closed(&self) -> Closed<'_, T> {
                Closed::new(&self.chan)
            }

            /// Returns `true` if the receiver is gone or has closed the channel.
            pub fn is_closed(&self) -> bool {
                self.chan.is_closed()
            }

            /// Returns `true` if both senders are of one channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.chan, &other.chan)
            }

            /// Creates a sender that does not keep the channel open.
            pub fn downgrade(&self) -> $weak<T> {
                self.chan.count_weak(1);
                $weak { chan: self.chan.clone() }
            }

            /// Returns the number of senders.
            pub fn strong_count(&self) -> usize {
                self.chan.senders().0
            }

            /// Returns the number of weak senders.
            pub fn weak_count(&self) -> usize {
                self.chan.senders().1
            }
        }

        impl<T> Clone for $sender<T> {
            #[track_caller]
            fn clone(&self) -> Self {
                self.chan.add_sender();
                Self { chan: self.chan.clone() }
            }
        }

        impl<T> Drop for $sender<T> {
            fn drop(&mut self) {
                self.chan.end_sender();
            }
        }

        impl<T> fmt::Debug for $sender<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.chan.describe(stringify!($sender), f)
            }
        }

        impl<T> $weak<T> {
            /// Returns a sender, unless all senders are gone.
            #[track_caller]
            pub fn upgrade(&self) -> Option<$sender<T>> {
                self.chan.try_add_sender().then(|| $sender { chan: self.chan.clone() })
            }

            /// Returns the number of senders.
            pub fn strong_count(&self) -> usize {
                self.chan.senders().0
            }

            /// Returns the number of weak senders.
            pub fn weak_count(&self) -> usize {
                self.chan.senders().1
            }
        }

        impl<T> Clone for $weak<T> {
            fn clone(&self) -> Self {
                self.chan.count_weak(1);
                Self { chan: self.chan.clone() }
            }
        }

        impl<T> Drop for $weak<T> {
            fn drop(&mut self) {
                self.chan.count_weak(-1);
            }
        }

        impl<T> fmt::Debug for $weak<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($weak)).finish_non_exhaustive()
            }
        }
    };
}

sender!(UnboundedSender, WeakUnboundedSender);
pub(super) use sender;
