//! A batch: commands on their way to the data, and the replies on their way back, in buffers that are used again and
//! again.
//!
//! Taken from the pool when a client has sent something, and given back when everything is answered: a connection that
//! waits for its client's next command holds no buffer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::replies::Replies;
use super::requests::Requests;

/// Batches that are kept.
const KEPT: usize = 256;

#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Requests,
    pub(crate) replies: Replies,
    /// After these replies the connection ends.
    pub(crate) is_last: bool,
}

/// Boxed, so that a batch goes through a channel as a pointer.
#[allow(clippy::vec_box)]
#[derive(Default)]
pub(crate) struct BatchPool(Mutex<Vec<Box<Batch>>>);

impl BatchPool {
    /// An empty batch.
    pub(crate) fn take(&self) -> Box<Batch> {
        self.kept().pop().unwrap_or_default()
    }

    /// Keeps an empty batch for others.
    pub(crate) fn give_back(&self, batch: Box<Batch>) {
        let mut kept = self.kept();
        if kept.len() < KEPT && !batch.requests.is_large() && !batch.replies.is_large() {
            kept.push(batch);
        }
    }

    /// Held for a few instructions; whole at any time.
    #[allow(clippy::vec_box)]
    fn kept(&self) -> MutexGuard<'_, Vec<Box<Batch>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
