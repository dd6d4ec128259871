//! Channels from many senders to one receiver, bounded or unbounded.
//!
//! A bound makes a fast sender wait for a slow receiver. Without one, only the memory limits the channel.
//!
//! # Examples
//!
//! ```
//! use mini::sync::mpsc;
//!
//! # mini::block_on(async {
//! let (sender, mut receiver) = mpsc::channel(16);
//! for worker in 0..3 {
//!     let sender = sender.clone();
//!     mini::spawn(async move { sender.send(worker * 10).await });
//! }
//! drop(sender);
//! let mut sum = 0;
//! while let Some(value) = receiver.recv().await {
//!     sum += value; // ends when all senders are gone
//! }
//! assert_eq!(sum, 30);
//! # });
//! ```
//!
//! # Closing
//!
//! When all senders are gone, `recv` returns the queued messages, then `None`. When the receiver is dropped, or
//! [`close`](Receiver::close) is called, sending returns an error with the message. After `close`, room that was
//! [reserved](Sender::reserve) before may still be used, and `recv` waits for it.
//!
//! # Memory
//!
//! A receiver keeps the waker of the task in which it last waited, until it waits in another task or is dropped. So a
//! message costs no clone of the waker. If a task of mini has ended and its receiver lives on elsewhere, the task's
//! memory is kept that long, but not its future. On an executor where only wakers keep a task alive, a task that has a
//! receiver and is never woken again is never dropped.

mod bounded;
mod chan;
pub mod error;
#[cfg(all(test, loom))]
mod models;
mod queue;
mod receiver;
mod seat;
mod unbounded;

pub use bounded::{OwnedPermit, Permit, PermitIterator, Sender, WeakSender, channel};
pub use receiver::{Receiver, UnboundedReceiver};
pub use unbounded::{UnboundedSender, WeakUnboundedSender, unbounded_channel};

pub(crate) mod future {
    pub use super::bounded::{Reserve, ReserveMany, ReserveOwned, SendRef};
    pub use super::chan::Closed;
    pub use super::receiver::{Recv, RecvMany};
}
