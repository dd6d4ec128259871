//! The messages of a channel: chunks in a queue, so that no push moves more than one chunk's messages, however many
//! there are. The receiver of an unbounded channel takes a chunk at a time and needs the lock only for the next one.
//!
//! Rejected: one `VecDeque` (a push that doubles it copies all messages under the lock: 10 ms for a million of 64
//! bytes).

use std::collections::VecDeque;
use std::mem;

/// Messages in a chunk: the receiver's lock, and the push into the outer queue, cost a sixty-fourth each.
const CHUNK: usize = 64;

/// A queue that has so many chunks more says so.
const MANY: usize = 64;

#[derive(Debug)]
pub(super) struct Queue<T> {
    /// The newest.
    last: VecDeque<T>,
    /// Before those of `last`; none is empty.
    earlier: VecDeque<VecDeque<T>>,
    /// Empty, kept for its memory.
    spare: VecDeque<T>,
    len: usize,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let [last, spare] = [VecDeque::new(), VecDeque::new()];
        Self { last, earlier: VecDeque::new(), spare, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Says whether the queue has grown by 4096 messages again.
    #[inline]
    pub(super) fn push(&mut self, message: T) -> bool {
        let mut has_grown = false;
        if self.last.len() == CHUNK {
            let next = mem::take(&mut self.spare);
            self.earlier.push_back(mem::replace(&mut self.last, next));
            has_grown = self.earlier.len().is_multiple_of(MANY);
        }
        self.last.push_back(message);
        self.len += 1;
        has_grown
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let message = match self.earlier.front_mut() {
            None => self.last.pop_front(),
            Some(_) => self.pop_earlier(),
        }?;
        self.len -= 1;
        Some(message)
    }

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
        self.len -= chunk.len();
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
        }
        received.extend(std::iter::from_fn(|| queue.pop()));
        assert!(received.into_iter().eq(0..sent));
    }
}
