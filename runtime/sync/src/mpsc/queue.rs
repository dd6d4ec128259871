//! The messages of a channel: chunks in a queue, so that no push moves more than one chunk's messages, however many
//! there are. The receiver of an unbounded channel takes a chunk at a time and needs the lock only for the next one.
//!
//! Rejected: one `VecDeque` (a push that doubles it copies all messages under the lock: 10 ms for a million of 64
//! bytes).

use std::collections::VecDeque;
use std::mem;

/// Messages in a chunk: the receiver's lock, and the push into the outer queue, cost a sixty-fourth each.
const CHUNK: usize = 64;

/// A queue that has grown by this many chunks reports it.
const MANY: usize = 64;

#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Before those of `last`; none is empty, and all but the first are full.
    earlier: VecDeque<VecDeque<T>>,
    /// The newest, dropped after the others.
    last: VecDeque<T>,
    /// Empty, kept for its memory.
    spare: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let [last, spare] = [VecDeque::new(), VecDeque::new()];
        Self { last, earlier: VecDeque::new(), spare }
    }

    pub(super) fn len(&self) -> usize {
        let earlier = self.earlier.front().map_or(0, |first| first.len() + (self.earlier.len() - 1) * CHUNK);
        earlier + self.last.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_empty() && self.earlier.is_empty()
    }

    /// Returns whether the queue has grown by 4096 messages again.
    #[inline]
    pub(super) fn push(&mut self, message: T) -> bool {
        let has_grown = self.last.len() == CHUNK && self.begin_chunk();
        self.last.push_back(message);
        has_grown
    }

    #[cold]
    fn begin_chunk(&mut self) -> bool {
        let mut next = mem::take(&mut self.spare);
        next.reserve_exact(CHUNK); // in place of growing five times: the one before is full
        self.earlier.push_back(mem::replace(&mut self.last, next));
        self.earlier.len().is_multiple_of(MANY)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.earlier.is_empty() { self.last.pop_front() } else { self.pop_earlier() }
    }

    #[cold]
    fn pop_earlier(&mut self) -> Option<T> {
        let chunk = self.earlier.front_mut()?;
        let message = chunk.pop_front();
        if chunk.is_empty() {
            self.spare = self.earlier.pop_front()?;
        }
        message
    }

    /// Exchanges `chunk`, which is empty, for the oldest one.
    #[inline]
    pub(super) fn take_chunk(&mut self, chunk: &mut VecDeque<T>) {
        debug_assert!(chunk.is_empty());
        match self.earlier.pop_front() {
            None => mem::swap(&mut self.last, chunk),
            Some(oldest) => self.spare = mem::replace(chunk, oldest),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_by_one_and_by_chunks() {
        let mut queue = Queue::new();
        let mut chunk = VecDeque::new();
        let (mut sent, mut received) = (0, Vec::new());
        for round in 0..40 {
            for _ in 0..round * 7 {
                queue.push(sent);
                sent += 1;
            }
            match round % 3 {
                0 => received.extend(queue.pop()),
                1 => {
                    queue.take_chunk(&mut chunk);
                    received.extend(chunk.drain(..));
                }
                _ => received.extend((0..100).map_while(|_| queue.pop())),
            }
            assert_eq!(queue.len(), sent - received.len());
            assert_eq!(queue.is_empty(), received.len() == sent);
        }
        received.extend(std::iter::from_fn(|| queue.pop()));
        assert!(received.into_iter().eq(0..sent));
    }
}
