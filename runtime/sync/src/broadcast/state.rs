//! A ring of messages under one lock. A place in it counts the receivers that have not got its message; with the last
//! of them the message leaves the ring. Receivers get messages in order, so those that all have got are the older ones.
//!
//! A message is in an `Arc`, which is what is cloned under the lock. The user's `clone` runs later, under a mutex of
//! that message, as the message need not be `Sync`; the last receiver gets the message itself.
//!
//! Rejected: messages in the ring itself (the user's `clone` and `drop` under the lock of the channel, or a lock for
//! each place and a protocol between those and the channel's). Cloning without a mutex (messages would have to be
//! `Sync`).

use std::sync::{Arc, Mutex, PoisonError};

use crate::rounds::Rounds;

pub(super) type Message<T> = Arc<Mutex<T>>;

pub(super) struct State<T> {
    /// The message at the position `p` is in the place `p` modulo the length, which is a power of two.
    pub(super) ring: Box<[Slot<T>]>,
    /// The position of the next message.
    pub(super) tail: u64,
    pub(super) senders: usize,
    pub(super) weak_senders: usize,
    pub(super) receivers: usize,
    /// A round ends when there is a message or no sender left.
    pub(super) messages: Rounds<()>,
    /// A round ends when no receiver is left.
    pub(super) closes: Rounds<()>,
}

pub(super) struct Slot<T> {
    /// The number of receivers that have not got the message.
    pub(super) owed: usize,
    /// Present while it is owed.
    pub(super) message: Option<Message<T>>,
}

/// What a receiver finds.
pub(super) enum Found<T> {
    Message(Message<T>),
    Lagged(u64),
    Empty,
    Closed,
}

impl<T> State<T> {
    /// With one sender, and room for `capacity` messages, a power of two.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            ring: (0..capacity).map(|_| Slot { owed: 0, message: None }).collect(),
            tail: 0,
            senders: 1,
            weak_senders: 0,
            receivers: 0,
            messages: Rounds::new(),
            closes: Rounds::new(),
        }
    }

    /// The position of the oldest message that is kept, if there were as many as the ring has places for.
    pub(super) fn oldest(&self) -> u64 {
        self.tail.saturating_sub(self.ring.len() as u64)
    }

    pub(super) fn slot(&mut self, position: u64) -> &mut Slot<T> {
        let mask = self.ring.len() - 1;
        &mut self.ring[position as usize & mask]
    }

    /// The message before comes back, to be dropped without the lock.
    pub(super) fn push(&mut self, message: Message<T>) -> Option<Message<T>> {
        let (tail, owed) = (self.tail, self.receivers);
        self.tail += 1;
        std::mem::replace(self.slot(tail), Slot { owed, message: Some(message) }).message
    }

    /// One receiver less is to get the message at this position, which is kept.
    pub(super) fn pay(&mut self, position: u64) -> Option<Message<T>> {
        let slot = self.slot(position);
        slot.owed -= 1;
        if slot.owed == 0 { slot.message.take() } else { None }
    }

    /// Moves the receiver's position on.
    pub(super) fn take(&mut self, next: &mut u64) -> Found<T> {
        let oldest = self.oldest();
        if *next < oldest {
            let missed = oldest - *next;
            *next = oldest;
            return Found::Lagged(missed);
        }
        if *next == self.tail {
            return if self.senders == 0 { Found::Closed } else { Found::Empty };
        }
        let position = *next;
        *next += 1;
        let shared = self.slot(position).message.clone();
        Found::Message(self.pay(position).or(shared).expect("a message that is owed"))
    }

    /// The number of messages owed to at least one receiver. They are the newest ones.
    pub(super) fn len(&mut self) -> usize {
        let (mut low, mut high) = (self.oldest(), self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.slot(middle).owed == 0 { low = middle + 1 } else { high = middle }
        }
        (self.tail - low) as usize
    }

    /// Lets a receiver in, at the end.
    pub(super) fn subscribe(&mut self) -> u64 {
        self.receivers = self.receivers.checked_add(1).expect("as many receivers as there are numbers");
        self.tail
    }
}

/// The message itself, if no other receiver has it.
pub(super) fn unwrap<T: Clone>(message: Message<T>) -> T {
    match Arc::try_unwrap(message) {
        Ok(message) => message.into_inner().unwrap_or_else(PoisonError::into_inner),
        Err(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}
