//! The part that the two ends of a channel for one message share: the message, a waker for each end, and a word.
//!
//! ```text
//!   sender                                    receiver
//!   1 watch   WATCHER                         2 wait    WAITER
//!   3 end     ENDED, if not CLOSED            4 close   CLOSED
//!             takes the waiter, and its own             takes both wakers, if not ENDED
//!             watcher
//!   5 leave   SENDER_GONE                     6 leave   RECEIVER_GONE
//! ```
//!
//! | field | whose |
//! |---|---|
//! | `message` | the sender's until ENDED, then the receiver's |
//! | `waiter` | the receiver's while WAITER is not set; with WAITER, of the end that comes first to edge 2 again, 3 or 4 |
//! | `watcher` | the sender's while WATCHER is not set; with WATCHER, of the end that comes first to edge 1 again, 3 or 4 |
//! | the memory | the end that leaves last frees it |
//!
//! An end that is polled in another task takes its waker back before it leaves the new one (edges 1 and 2 again), which
//! leaves MOVED permanently.
//!
//! Most messages cost two locked instructions: the receiver waits, and the sender ends and leaves in one step. For that
//! it reads the waiter before, as the memory may be gone after. The waiter that it has read is valid if the word is as
//! it was: a change of the waiter would have left MOVED. If MOVED is set, or there is a watcher to drop, the sender
//! ends, takes the wakers, and then leaves.
//!
//! Memory order: each change of the word releases what came before it and acquires what the other end has done.
//!
//! Rejected: a lock and a counted reference (five locked instructions and two more words, 1.1 times the time of tokio's
//! channel).

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::task::{Poll, Waker};

use mini_context::WakerSlot;

use crate::primitives::UnsafeCell;
use crate::primitives::atomic::{AtomicU8, Ordering::AcqRel, Ordering::Acquire};

const ENDED: u8 = 1;
const WAITER: u8 = 2;
const CLOSED: u8 = 4;
const WATCHER: u8 = 8;
const MOVED: u8 = 16;
const SENDER_GONE: u8 = 32;
const RECEIVER_GONE: u8 = 64;

/// One of the two ends of a channel has it, and leaves it once: by [`end`](Self::end) or [`leave`](Self::leave).
pub(super) struct Chan<T>(NonNull<Inner<T>>);

struct Inner<T> {
    word: AtomicU8,
    waiter: WakerSlot,
    watcher: WakerSlot,
    message: UnsafeCell<Option<T>>,
    #[cfg(loom)]
    memory: Memory,
}

// SAFETY: the word says which end uses what, as in the table; messages go from thread to thread. By a shared reference
// an end reads the word, and whether a message that is its own is there. Test: the models below.
unsafe impl<T: Send> Send for Chan<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Chan<T> {}

/// The wakers that an end has taken.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) waiter: Option<Waker>,
    pub(super) watcher: Option<Waker>,
}

impl<T> Chan<T> {
    /// One for the sender, one for the receiver.
    pub(super) fn pair() -> (Self, Self) {
        let inner = Inner {
            word: AtomicU8::new(0),
            waiter: WakerSlot::new(),
            watcher: WakerSlot::new(),
            message: UnsafeCell::new(None),
            #[cfg(loom)]
            memory: Memory::default(),
        };
        let memory = NonNull::from(Box::leak(Box::new(inner)));
        (Self(memory), Self(memory))
    }

    #[inline]
    fn inner(&self) -> &Inner<T> {
        // SAFETY: this end has not left, so nobody has freed it. Test: model `who_leaves_last_frees`.
        let inner = unsafe { self.0.as_ref() };
        #[cfg(loom)]
        inner.memory.use_it();
        inner
    }

    #[inline]
    fn word(&self) -> u8 {
        self.inner().word.load(Acquire)
    }

    /// Changes the word from `now`, or returns the current word.
    #[inline]
    fn change(&self, now: u8, new: u8) -> Result<(), u8> {
        self.inner().word.compare_exchange(now, new, AcqRel, Acquire).map(drop)
    }

    /// Returns `true` if the sender has ended its part. Then the receiver may [`fetch`](Self::fetch).
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.word() & ENDED != 0
    }

    /// Returns `true` if the receiver wants nothing more.
    pub(super) fn is_closed(&self) -> bool {
        self.word() & CLOSED != 0
    }

    /// The message, for the receiver, when the sender has ended its part.
    #[inline]
    pub(super) fn fetch(&self) -> Option<T> {
        debug_assert!(self.has_ended());
        // SAFETY: ENDED, and this is the receiver. Test: model `the_message_or_the_end_wakes_the_receiver`.
        self.inner().message.with_mut(|message| unsafe { (*message).take() })
    }

    /// For the receiver: `true` if there is a message to fetch.
    pub(super) fn has_message(&self) -> bool {
        // SAFETY: ENDED, and this is the receiver. Test: tests/oneshot.rs `try_recv_tells_not_yet_from_never`.
        self.has_ended() && self.inner().message.with(|message| unsafe { (*message).is_some() })
    }

    /// Edge 2: for the receiver. Ready if the sender has ended, or this end was closed.
    #[inline]
    pub(super) fn wait(&self, waker: &Waker) -> Poll<()> {
        self.leave_waker(&self.inner().waiter, WAITER, ENDED | CLOSED, waker)
    }

    /// Edge 1: for the sender. Ready if the receiver wants nothing more.
    pub(super) fn watch(&self, waker: &Waker) -> Poll<()> {
        self.leave_waker(&self.inner().watcher, WATCHER, CLOSED, waker)
    }

    /// Leaves the waker of this end, which `bit` names, unless there is one of `ends`.
    #[inline]
    fn leave_waker(&self, slot: &WakerSlot, bit: u8, ends: u8, waker: &Waker) -> Poll<()> {
        let mut now = self.word();
        if now & ends != 0 {
            return Poll::Ready(());
        }
        if now & bit != 0 && slot.is(waker) {
            return Poll::Pending;
        }
        let waker = waker.clone(); // if that panics, the old one is still there
        let mut _old = None; // dropped when the new one is there
        if now & bit != 0 {
            let Some(taken) = self.take_back(slot, bit, ends) else { return Poll::Ready(()) };
            (now, _old) = taken;
        }
        slot.put(waker);
        while let Err(changed) = self.change(now, now | bit) {
            if changed & ends != 0 {
                // SAFETY: `bit` is not set, so what was put there is this end's still.
                // Test: model `the_message_or_the_end_wakes_the_receiver`.
                drop(unsafe { slot.look().into_waker() });
                return Poll::Ready(());
            }
            now = changed;
        }
        Poll::Pending
    }

    /// Edge 1 or 2 again: the waker that this end has left, and the word then; none if there is one of `ends`.
    #[cold]
    fn take_back(&self, slot: &WakerSlot, bit: u8, ends: u8) -> Option<(u8, Option<Waker>)> {
        let mut now = self.word();
        loop {
            if now & ends != 0 {
                return None;
            }
            let new = now & !bit | MOVED;
            match self.change(now, new) {
                // SAFETY: `bit` was set and is no more, so it is this end's. Test: model `a_receiver_moves`.
                Ok(()) => return Some((new, Some(unsafe { slot.look().into_waker() }))),
                Err(changed) => now = changed,
            }
        }
    }

    /// Edges 3 and 5: the sender ends its part, with a message or without, and leaves. An unwanted message is returned.
    #[inline]
    pub(super) fn end(self, message: Option<T>) -> Result<(), T> {
        let mut now = self.word();
        if now & CLOSED == 0 {
            // SAFETY: not ENDED, and this is the sender; the place is empty, so nothing is dropped.
            // Test: model `the_message_or_the_end_wakes_the_receiver`.
            self.inner().message.with_mut(|place| unsafe { place.write(message) });
        } else {
            self.leave_as(SENDER_GONE, RECEIVER_GONE);
            return message.map_or(Ok(()), Err);
        }
        loop {
            let is_brief = now & (MOVED | WATCHER) == 0;
            let waiter = self.inner().waiter.look();
            let new = if is_brief { now | ENDED | SENDER_GONE } else { (now | ENDED) & !WATCHER };
            match self.change(now, new) {
                Ok(()) if is_brief => {
                    if now & WAITER != 0 {
                        // SAFETY: WAITER without MOVED: nobody has changed the waiter since WAITER was read with
                        // Acquire, and by ENDED it is the sender's. Test: model `who_leaves_last_frees`.
                        unsafe { waiter.into_waker() }.wake();
                    }
                    return Ok(());
                }
                Ok(()) => {
                    self.end_slowly(now);
                    return Ok(());
                }
                Err(changed) if changed & CLOSED != 0 => return self.end_unwanted(),
                Err(changed) => now = changed,
            }
        }
    }

    /// The sender has ended when the word was `before`, and has not left.
    #[cold]
    fn end_slowly(self, before: u8) {
        let taken = self.taken(before);
        self.leave_as(SENDER_GONE, RECEIVER_GONE);
        taken.waiter.into_iter().for_each(Waker::wake);
    }

    /// The receiver came first: its end is closed.
    #[cold]
    fn end_unwanted(self) -> Result<(), T> {
        // SAFETY: CLOSED came before ENDED, which nobody else sets, so the message is the sender's.
        // Test: model `a_message_comes_back_or_is_dropped`.
        let message = self.inner().message.with_mut(|place| unsafe { (*place).take() });
        self.leave_as(SENDER_GONE, RECEIVER_GONE);
        message.map_or(Ok(()), Err)
    }

    /// Edge 4: the receiver wants nothing more. It has the wakers then, if the sender has not ended.
    pub(super) fn close(&self) -> Taken {
        let mut now = self.word();
        loop {
            if now & CLOSED != 0 {
                return Taken::default();
            }
            let has_ended = now & ENDED != 0;
            let new = if has_ended { now | CLOSED } else { (now | CLOSED) & !(WAITER | WATCHER) };
            match self.change(now, new) {
                Ok(()) if has_ended => return Taken::default(),
                Ok(()) => return self.taken(now),
                Err(changed) => now = changed,
            }
        }
    }

    /// The wakers that were there when this end changed the word from `before`.
    fn taken(&self, before: u8) -> Taken {
        let take = |slot: &WakerSlot, bit| {
            // SAFETY: edges 3 and 4 make it the caller's. Test: models `a_receiver_moves` and
            // `closing_wakes_the_sender`.
            (before & bit != 0).then(|| unsafe { slot.look().into_waker() })
        };
        let inner = self.inner();
        Taken { waiter: take(&inner.waiter, WAITER), watcher: take(&inner.watcher, WATCHER) }
    }

    /// Edge 6.
    #[inline]
    pub(super) fn leave(self) {
        self.leave_as(RECEIVER_GONE, SENDER_GONE);
    }

    #[inline]
    fn leave_as(self, own: u8, other: u8) {
        let word = &self.inner().word;
        // If the other end has left, nobody but this one is there. An addition is one instruction; the bit is not set.
        if word.load(Acquire) & other != 0 || word.fetch_add(own, AcqRel) & other != 0 {
            #[cfg(loom)]
            self.inner().memory.end_it();
            // SAFETY: a box of `pair`, and both ends have left. Test: model `who_leaves_last_frees`.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// By this loom knows when the memory is used, and that it is freed.
#[cfg(loom)]
struct Memory(UnsafeCell<()>, #[expect(dead_code)] loom::alloc::Track<()>);

#[cfg(loom)]
impl Default for Memory {
    fn default() -> Self {
        Self(UnsafeCell::new(()), loom::alloc::Track::new(()))
    }
}

#[cfg(loom)]
impl Memory {
    fn use_it(&self) {
        self.0.with(|_| ());
    }

    fn end_it(&self) {
        self.0.with_mut(|_| ());
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::task::Context;

    use loom::future::block_on;
    use loom::sync::Arc;
    use loom::{model, thread};

    use super::super::*;
    use super::{AcqRel, Acquire};

    /// Fails if a change of the word does not release or a load does not acquire, and if edge 2 does not look again.
    #[test]
    fn the_message_or_the_end_wakes_the_receiver() {
        for is_sent in [true, false] {
            model(move || {
                let (sender, receiver) = channel();
                let sending = thread::spawn(move || is_sent.then(|| sender.send(7).unwrap()));
                assert_eq!(block_on(receiver).ok(), is_sent.then_some(7));
                sending.join().unwrap();
            });
        }
    }

    #[test]
    fn closing_wakes_the_sender() {
        model(|| {
            let (mut sender, receiver) = channel::<u32>();
            let closing = thread::spawn(move || drop(receiver));
            block_on(sender.closed());
            closing.join().unwrap();
        });
    }

    /// Fails if an end touches the memory after it has left, or if no end frees it.
    #[test]
    fn who_leaves_last_frees() {
        model(|| {
            let (sender, mut receiver) = channel();
            let (woken, waker) = waker();
            assert!(Pin::new(&mut receiver).poll(&mut Context::from_waker(&waker)).is_pending());
            let sending = thread::spawn(move || sender.send(Arc::new(1)).is_ok());
            drop(receiver);
            drop(waker);
            let is_sent = sending.join().unwrap();
            assert_eq!((woken.load(Acquire), Arc::strong_count(&woken)), (usize::from(is_sent), 1));
        });
    }

    /// Fails if edge 2 does not leave MOVED, or edge 3 does not look for it: the sender may then wake what the receiver
    /// has dropped.
    #[test]
    fn a_receiver_moves() {
        model(|| {
            let (sender, mut receiver) = channel();
            let wakers = [waker(), waker(), waker()];
            let mut poll = |at: usize| Pin::new(&mut receiver).poll(&mut Context::from_waker(&wakers[at].1));
            assert!(poll(0).is_pending());
            let sending = thread::spawn(move || sender.send(1).unwrap());
            let mut polls = [poll(1), Poll::Pending];
            if polls[0].is_pending() {
                polls[1] = poll(2);
            }
            sending.join().unwrap();
            drop(receiver);
            let woken = wakers.map(|(woken, waker)| {
                drop(waker);
                assert_eq!(Arc::strong_count(&woken), 1);
                woken.load(Acquire)
            });
            match polls {
                [Poll::Pending, Poll::Pending] => assert_eq!(woken, [0, 0, 1]),
                [Poll::Pending, message] => assert!(message == Poll::Ready(Ok(1)) && woken[1] <= 1 && woken[2] == 0),
                [message, _] => assert!(message == Poll::Ready(Ok(1)) && woken[0] <= 1 && woken[1..] == [0, 0]),
            }
        });
    }

    /// A message is the receiver's or the sender's again, even if the receiver closes at that moment.
    #[test]
    fn a_message_comes_back_or_is_dropped() {
        model(|| {
            let (mut sender, mut receiver) = channel();
            let (woken, waker) = waker();
            assert!(sender.poll_closed(&mut Context::from_waker(&waker)).is_pending());
            let sending = thread::spawn(move || sender.send(Arc::new(1)));
            receiver.close();
            let received = receiver.try_recv();
            let sent = sending.join().unwrap();
            assert_eq!(received.is_ok(), sent.is_ok());
            drop(waker);
            assert_eq!((woken.load(Acquire), Arc::strong_count(&woken)), (usize::from(sent.is_err()), 1));
        });
    }

    /// A waker of which loom sees whether it is dropped, with how often it was woken.
    fn waker() -> (Arc<Wakes>, Waker) {
        let woken = Arc::new(Wakes::new(0));
        let data = Arc::into_raw(woken.clone()).cast();
        // SAFETY: the table fits the pointer of an `Arc<Wakes>`. Test: the models above.
        (woken, unsafe { Waker::new(data, &TABLE) })
    }

    type Wakes = loom::sync::atomic::AtomicUsize;

    static TABLE: std::task::RawWakerVTable = std::task::RawWakerVTable::new(
        |data| {
            // SAFETY: `data` is that of a living waker. Test: the models above.
            let woken = unsafe { Arc::from_raw(data.cast::<Wakes>()) };
            std::mem::forget(woken.clone());
            std::mem::forget(woken);
            std::task::RawWaker::new(data, &TABLE)
        },
        |data| {
            // SAFETY: as above; the waker is used up. Test: the models above.
            let woken = unsafe { Arc::from_raw(data.cast::<Wakes>()) };
            woken.fetch_add(1, AcqRel);
        },
        |_| unreachable!("the channel uses its wakers up"),
        |data| {
            // SAFETY: as above. Test: the models above.
            drop(unsafe { Arc::from_raw(data.cast::<Wakes>()) });
        },
    );
}
