//! The part that senders and receiver share: a short lock around the queue, the permits that are its bound, and its
//! waiters.
//!
//! A message takes the lock once on its way in and once on its way out (of an unbounded channel: once per chunk). A
//! bound is a number of [`Permits`]: a message holds one from before it is queued until it is received, a reservation
//! holds one too. So a closed channel has ended when the queue is empty and all permits are back.
//!
//! A receiver that waits has a [`Seat`], where a sender hands it the message: that message counts as received when it
//! is sent, and takes no permit. A message that stays in the queue holds one.
//!
//! A locked instruction waits until all stores before it are done, and a call stores registers. So what sends or
//! receives at once is small and becomes part of the task, and nothing is stored that is there already.
//!
//! Rejected:
//! - A lock-free queue (crossbeam's `SegQueue`): a push and a pop of it cost two to three locked instructions each, and
//!   the waker, the permits and the ends need more; under the lock all of that is plain state.
//! - A chunk at a time for bounded channels too: a permit must be back when its message is received and not later, or a
//!   sender would wait for room that is there.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::Arc;
use std::task::{Poll, Waker};

use mini_context::{Guard, Holder, Lock, SyncKind};

use super::queue::Queue;
use super::seat::{Call, Occupant, Seat};
use crate::Semaphore;
use crate::macros::future;
use crate::panics::Steps;
use crate::permits::{self, Acquire, Claim, Permits, Refusal, Source};
use crate::primitives::atomic::{AtomicBool, Ordering::Relaxed};

/// The bound of a channel without one.
pub(super) const UNBOUNDED: usize = Semaphore::MAX_PERMITS + 1;

pub(super) struct Chan<T> {
    state: Lock<State<T>>,
    seat: Seat<T>,
    /// Closed with the channel, and none before: to wait for one is to wait until the channel is closed.
    ends: Lock<Permits>,
    /// `true` if the queue was empty when it last changed: a hint.
    is_empty: AtomicBool,
    pub(super) bound: usize,
    /// The line where the channel was made.
    location: &'static Location<'static>,
}

struct State<T> {
    queue: Queue<T>,
    permits: Permits,
    occupant: Occupant,
    /// Where the receiver has waited last, or has received first, and the task that did so first there. For dumps, as
    /// are those that follow.
    receives: Option<(&'static Location<'static>, u64)>,
    /// That location, if there is nothing more to tell.
    told: Option<&'static Location<'static>>,
    /// The line where a sender was last made. That sender may be gone.
    sends: &'static Location<'static>,
    /// The task that has sent last.
    sent_by: u64,
    /// The owner that is reported.
    owner: Owner,
    is_crowded: bool,
    is_receiver_gone: bool,
    senders: usize,
    weak_senders: usize,
}

/// The task that is reported as having the only sender. It may get the sender from the task that made the channel, and
/// pass it on. A sender that several tasks use has no owner, and is no longer tracked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// No task has sent.
    Unknown,
    First,
    Second,
    /// Or there are several senders.
    Several,
}

/// The result of a search for a message.
pub(super) enum Look<T> {
    Message(T),
    Empty,
    Ended,
}

/// A panic leaves nothing half done: no user code runs under the lock, and a message is in one place.
impl<T> UnwindSafe for Chan<T> {}
impl<T> RefUnwindSafe for Chan<T> {}

impl<T> Source for Chan<T> {
    const KIND: SyncKind = SyncKind::Send;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> R {
        f(&mut self.state.lock().permits)
    }

    /// A task that waits to send learns which task receives.
    fn with_key<R>(&self, f: impl FnOnce(&mut Permits) -> R) -> (R, u64) {
        let mut state = self.state.lock();
        let done = f(&mut state.permits);
        let key = ptr::from_ref(&self.bound).addr() as u64;
        let (location, task) = state.receives.map_or((None, 0), |(location, task)| (Some(location), task));
        mini_context::set_end(key, Holder { task: mini_context::taken(task), location, number: self.bound as u64 });
        (done, key)
    }

    /// The receiver of a closed channel may wait for that.
    fn take_back(&self, count: usize) {
        permits::release(self, count);
        let mut state = self.state.lock();
        let call = if state.has_ended(self.bound) { self.seat.call(&mut state.occupant) } else { Call::Nobody };
        drop(state);
        self.seat.make(call);
    }
}

impl<T> State<T> {
    fn has_ended(&self, bound: usize) -> bool {
        self.queue.is_empty() && (self.senders == 0 || self.permits.is_closed() && self.permits.free() == bound)
    }
}

impl<T> Chan<T> {
    /// A channel with one sender.
    #[track_caller]
    pub(super) fn new(bound: usize) -> Arc<Self> {
        let state = State {
            queue: Queue::new(),
            permits: Permits::new(bound),
            occupant: Occupant::default(),
            receives: None,
            told: None,
            sends: Location::caller(),
            sent_by: 0,
            owner: Owner::Unknown,
            is_crowded: false,
            is_receiver_gone: false,
            senders: 1,
            weak_senders: 0,
        };
        let location = Location::caller();
        Arc::new(Self {
            state: Lock::new(state),
            seat: Seat::new(),
            ends: Lock::new(Permits::new(0)),
            is_empty: AtomicBool::new(true),
            bound,
            location,
        })
    }

    /// Sends under a permit that is taken at once, if there is one. A receiver that waits needs none.
    #[inline(always)]
    pub(super) fn try_send(&self, message: T, claim: Claim) -> Result<(), (Refusal, T)> {
        let mut state = self.state.lock();
        let taken = match state.occupant.is_seated() {
            true => state.permits.could_take(1, claim),
            false => state.permits.try_take(1, claim),
        };
        if let Err(refusal) = taken {
            return Err((refusal, message));
        }
        self.deliver(state, message);
        Ok(())
    }

    /// Sends without a permit.
    #[inline(always)]
    pub(super) fn send_unbounded(&self, message: T) -> Result<(), T> {
        let state = self.state.lock();
        if state.permits.is_closed() {
            return Err(message);
        }
        self.deliver(state, message);
        Ok(())
    }

    /// Sends under a permit that the caller has. If the receiver is gone the message is dropped.
    pub(super) fn send_permitted(&self, message: T) {
        let mut state = self.state.lock();
        if state.is_receiver_gone {
            let _nobody = state.permits.give(1); // it is closed
            drop(state);
            return drop(message);
        }
        let waker = if state.occupant.is_seated() { state.permits.give(1) } else { None };
        let mut steps = Steps::default();
        steps.run(|| self.deliver(state, message));
        steps.run(|| waker.into_iter().for_each(Waker::wake)); // one permit completes one waiter
    }

    /// Hands the message to the receiver, which is called, or else leaves it in the queue.
    #[inline(always)]
    fn deliver(&self, mut state: Guard<'_, State<T>>, message: T) {
        if state.owner != Owner::Several && state.sent_by != mini_context::task() {
            self.note_sender(&mut state);
        }
        if state.occupant.is_seated() {
            let call = self.seat.call(&mut state.occupant); // first: who sees the message must see the call
            self.seat.hand(message);
            drop(state);
            return self.seat.make(call);
        }
        if state.queue.push(message) {
            self.tell_crowd(&mut state);
        }
        self.is_empty.store(false, Relaxed);
    }

    /// Takes the next message of a bounded channel, at `location`, and gives its permit back.
    #[inline(always)]
    pub(super) fn pop(&self, location: &'static Location<'static>) -> Look<T> {
        let mut state = self.state.lock();
        if state.receives.is_none() {
            state.receives = Some((location, mini_context::task())); // it may never wait
        }
        if let Some(message) = self.seat.take() {
            return Look::Message(message); // handed over since the look without the lock
        }
        let Some(message) = state.queue.pop() else { return self.look_of(&state) };
        let waker = state.permits.give(1);
        self.is_empty.store(state.queue.is_empty(), Relaxed);
        let Some(waker) = waker else { return Look::Message(message) };
        self.seat.keep(message); // or it would be lost if the waker panics
        drop(state);
        waker.wake(); // one permit completes one waiter
        Look::Message(self.seat.take().expect("kept above"))
    }

    /// Takes the next messages of an unbounded channel into `chunk`, which is empty.
    #[inline(never)]
    pub(super) fn pop_chunk(&self, chunk: &mut VecDeque<T>) -> Look<T> {
        let mut state = self.state.lock();
        if let Some(message) = self.seat.take() {
            return Look::Message(message); // handed over since the look without the lock
        }
        state.queue.take_chunk(chunk);
        self.is_empty.store(state.queue.is_empty(), Relaxed);
        chunk.pop_front().map_or_else(|| self.look_of(&state), Look::Message)
    }

    fn look_of(&self, state: &State<T>) -> Look<T> {
        if state.has_ended(self.bound) { Look::Ended } else { Look::Empty }
    }

    /// The message that was handed to the receiver where it waited.
    #[inline]
    pub(super) fn handed(&self) -> Option<T> {
        self.seat.take()
    }

    /// The key of the note, for a task that waits to receive.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        ptr::from_ref(&self.seat).addr() as u64
    }

    /// The receiver waits at another place than before, or there were very many messages since.
    #[cold]
    fn note_receiver(&self, state: &mut State<T>, location: &'static Location<'static>) {
        state.receives = Some((location, mini_context::task()));
        state.told = Some(location);
        self.tell_senders(state);
        self.end_crowd(state);
    }

    /// Another task sends than before.
    #[cold]
    fn note_sender(&self, state: &mut State<T>) {
        (state.sent_by, state.owner) = match state.owner {
            _ if state.senders > 1 => (0, Owner::Several),
            Owner::Unknown => (mini_context::task(), Owner::First),
            Owner::First => (mini_context::task(), Owner::Second),
            Owner::Second | Owner::Several => (0, Owner::Several),
        };
        self.senders_changed(state);
    }

    /// Notes the senders, for a receiver that waits or is going to.
    #[cold]
    fn tell_senders(&self, state: &State<T>) {
        let task = mini_context::taken(state.sent_by);
        let senders = Holder { task, location: Some(state.sends), number: state.senders as u64 };
        mini_context::set_end(self.key(), senders);
    }

    /// Notes that there are very many messages.
    #[cold]
    fn tell_crowd(&self, state: &mut State<T>) {
        let (task, number) = (state.receives.map_or(0, |(_, task)| task), state.queue.len() as u64);
        mini_context::note_crowd(self.key(), Holder { task, location: Some(self.location), number });
        (state.is_crowded, state.told) = (true, None);
    }

    fn end_crowd(&self, state: &mut State<T>) {
        if std::mem::take(&mut state.is_crowded) {
            mini_context::forget_crowd(self.key());
        }
    }

    /// The receiver waits at `location`, if there is still nothing. If not, look again.
    #[inline]
    pub(super) fn wait(&self, waker: &Waker, location: &'static Location<'static>) -> Poll<()> {
        let ticket = self.seat.prepare(waker);
        let mut state = self.state.lock();
        if self.seat.is_full() || !state.queue.is_empty() || state.has_ended(self.bound) {
            drop(state);
            return Poll::Ready(()); // the ticket is dropped without the lock
        }
        let old = self.seat.sit(&mut state.occupant, ticket);
        if !state.told.is_some_and(|told| ptr::eq(told, location)) {
            self.note_receiver(&mut state, location);
        }
        drop(state);
        drop(old);
        Poll::Pending
    }

    #[inline]
    pub(super) fn seems_empty(&self) -> bool {
        !self.seat.is_full() && self.is_empty.load(Relaxed)
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().queue.len() + usize::from(self.seat.is_full())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.with(|permits| permits.is_closed())
    }

    /// From now on nothing but what has a permit is sent.
    pub(super) fn close(&self) {
        let mut steps = Steps::default();
        steps.run(|| permits::close(self));
        steps.run(|| permits::close(&self.ends));
    }

    /// The receiver is dropped, with messages that it has taken out.
    pub(super) fn end_receiver(&self, chunk: VecDeque<T>) {
        let mut steps = Steps::default();
        steps.run(|| self.close());
        let mut state = self.state.lock();
        state.is_receiver_gone = true;
        self.end_crowd(&mut state);
        let messages = std::mem::replace(&mut state.queue, Queue::new());
        let _nobody = state.permits.give(messages.len()); // it is closed: nobody is granted what they had
        let wakers = self.seat.stand_up(&mut state.occupant);
        drop(state);
        steps.run(|| drop(wakers));
        // In the order in which they were sent.
        steps.run(|| drop(self.seat.take()));
        steps.run(|| drop(chunk));
        steps.run(|| drop(messages));
    }

    #[track_caller]
    pub(super) fn add_sender(&self) {
        self.try_add_sender();
    }

    /// Another sender, unless all are gone.
    #[track_caller]
    pub(super) fn try_add_sender(&self) -> bool {
        let mut state = self.state.lock();
        if state.senders == 0 {
            return false;
        }
        state.senders += 1;
        state.sends = Location::caller();
        (state.sent_by, state.owner) = (0, Owner::Several);
        self.senders_changed(&state);
        true
    }

    fn senders_changed(&self, state: &State<T>) {
        if state.receives.is_some() {
            self.tell_senders(state);
        }
    }

    pub(super) fn end_sender(&self) {
        let mut state = self.state.lock();
        state.senders -= 1;
        (state.sent_by, state.owner) = (0, Owner::Unknown); // that may have been the other one
        self.senders_changed(&state);
        let call = if state.senders == 0 { self.seat.call(&mut state.occupant) } else { Call::Nobody };
        drop(state);
        self.seat.make(call);
    }

    pub(super) fn count_weak(&self, change: isize) {
        let mut state = self.state.lock();
        state.weak_senders = state.weak_senders.wrapping_add_signed(change);
    }

    /// The numbers of senders and of weak senders.
    pub(super) fn senders(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.senders, state.weak_senders)
    }

    pub(super) fn free(&self) -> usize {
        self.with(|permits| permits.free())
    }

    /// For the `Debug` of an end.
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let (messages, senders, is_closed) = (state.queue.len(), state.senders, state.permits.is_closed());
        let last = state.permits.last();
        drop(state);
        let mut debug = f.debug_struct(name);
        debug.field("messages", &messages).field("senders", &senders).field("is_closed", &is_closed);
        if let Some(last) = last {
            debug.field("last_sent", &format_args!("{last}"));
        }
        debug.field("made_at", &format_args!("{}", self.location)).finish_non_exhaustive()
    }
}

future!(
    /// Future of `closed` of a sender: resolves to `()` when the receiver has been closed or dropped.
    Closed['a, T] { inner: Acquire<&'a Lock<Permits>>, chan: PhantomData<&'a Chan<T>> } -> (),
    |this, cx| this.inner.poll(cx).map(|_| ())
);

impl<'a, T> Closed<'a, T> {
    #[track_caller]
    pub(super) fn new(chan: &'a Chan<T>) -> Self {
        Self { inner: Acquire::of_kind(&chan.ends, 1, SyncKind::Closed), chan: PhantomData }
    }
}
