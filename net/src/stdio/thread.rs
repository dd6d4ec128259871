//! A standard stream that is read, or written, by a thread.
//!
//! Called by `stdio`, for files, and for any stream that would block the thread that asks. There is one `Reader` and
//! one `Writer` for a stream in the process, so that bytes that were read are there for the next reader, and bytes that
//! are written go out in order. The thread starts when there is something to do and ends when that is done. It belongs
//! to no runtime, so no runtime waits for it, and it does not keep the process from ending. (Nor does a paused clock
//! wait for it.)
//!
//! The waiting is that of the sockets (`slot`): look, and if there is nothing, take the readiness back and wait for the
//! thread to set it again.
//!
//! A child of fork(2) has no such thread. It starts one of its own, and leaves unwritten bytes of the parent to the
//! parent.
//!
//! # Rejected
//!
//! - The blocking pool of the runtime: its shutdown would wait for somebody to press a key.
//! - A thread that stays: it would need a request to end, or read what no task has asked for.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use mini_context::contain;

use super::handle::Served;
use crate::error::no_thread;
use crate::ready::{Interest, Ready};
use crate::slot::{Key, Slot};
use crate::source::Wait;
use crate::sys::{Custody, Events, Poller, Token, fork::Process};
use crate::unfilled::Unfilled;

/// Bytes that are read at once, or wait to be written.
const ROOM: usize = 64 << 10;

pub(super) struct Reader {
    file: fn() -> io::Result<File>,
    slot: Slot,
    state: Mutex<Input>,
}

#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    /// How many of `bytes` have been given out.
    given: usize,
    /// The end, or an error, to be returned once.
    last: Option<io::Result<usize>>,
    busy: Busy,
}

pub(super) struct Writer {
    file: fn() -> io::Result<File>,
    slot: Slot,
    state: Mutex<Output>,
    /// For threads that wait until something is out.
    moved: Condvar,
}

/// What [`finish_output`](super::finish_output) calls, from the first byte on that a thread writes: a program without
/// any has no code for it.
pub(super) static FINISH: OnceLock<fn(Duration)> = OnceLock::new();

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// The error of bytes that were taken, to be returned once.
    error: Option<io::Error>,
    busy: Busy,
    /// How many bytes have ever been taken, and how many of them are out, or lost with an error.
    taken: u64,
    out: u64,
    /// What flushes wait for, in order: bytes behind a mark are not written together with those in front of it.
    marks: VecDeque<u64>,
}

/// The process whose thread is at work, if one is.
#[derive(Default)]
struct Busy(Option<Process>);

impl Busy {
    /// Returns `true` if a thread must be started; it then counts as at work.
    fn begin(&mut self) -> bool {
        let is_idle = !self.is_at_work();
        if is_idle {
            self.0 = Some(Process::current());
        }
        is_idle
    }

    fn end(&mut self) {
        self.0 = None;
    }

    fn is_at_work(&self) -> bool {
        self.0.is_some_and(Process::is_current)
    }

    /// If the thread is the parent's, forgets it and returns true. The slot then counts as `ready`, since that thread
    /// will never set it. Its waiters are tasks of the parent and are left alone.
    #[cold]
    fn leave_parent(&mut self, slot: &Slot, ready: Ready) -> bool {
        let is_left = self.0.take_if(|process| !process.is_current()).is_some();
        if is_left {
            slot.abandon(ready);
        }
        is_left
    }
}

impl Reader {
    /// Reads what `file` returns, a duplicate of the stream.
    pub(super) fn new(file: fn() -> io::Result<File>) -> Reader {
        Reader { file, slot: Slot::new(Ready::READABLE), state: Mutex::default() }
    }

    pub(super) fn poll_read(
        &'static self,
        cx: &mut Context<'_>,
        wait: &Wait,
        key: &mut Key,
        buf: &mut impl Unfilled,
    ) -> Poll<io::Result<usize>> {
        if Process::has_parent() {
            lock(&self.state).busy.leave_parent(&self.slot, Ready::READABLE);
        }
        poll(&self.slot, cx, wait, Interest::READABLE, key, || self.read(buf))
    }

    /// Takes what is there; if there is nothing, lets a thread read.
    fn read(&'static self, buf: &mut impl Unfilled) -> io::Result<usize> {
        let mut state = lock(&self.state);
        if state.given < state.bytes.len() {
            let read = buf.remaining().min(state.bytes.len() - state.given);
            buf.put(&state.bytes[state.given..state.given + read]);
            state.given += read;
            return Ok(read);
        }
        if let Some(last) = state.last.take() {
            return last;
        }
        let to_start = state.busy.begin();
        drop(state);
        if to_start {
            start(|| self.fill()).inspect_err(|_| {
                lock(&self.state).busy.end();
                wake(&self.slot, Ready::READABLE); // others may wait for that thread
            })?;
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// The body of the thread.
    fn fill(&self) {
        let mut bytes = std::mem::take(&mut lock(&self.state).bytes);
        bytes.resize(ROOM, 0);
        let read = (self.file)().and_then(|file| patiently(&file, Ready::READABLE, |mut file| file.read(&mut bytes)));
        let read = unless_closed(read, 0);
        bytes.truncate(*read.as_ref().unwrap_or(&0));
        let mut state = lock(&self.state);
        if bytes.is_empty() {
            state.last = Some(read);
        }
        (state.bytes, state.given) = (bytes, 0);
        state.busy.end();
        drop(state);
        wake(&self.slot, Ready::READABLE);
    }
}

impl Writer {
    /// Writers wait for room as for `WRITABLE`. Flushes wait apart, as for `READABLE`, since there may be room while
    /// they wait.
    const ALL: Ready = Ready::from_bits(Ready::WRITABLE.bits() | Ready::READABLE.bits());

    /// Writes to what `file` returns, a duplicate of the stream.
    pub(super) fn new(file: fn() -> io::Result<File>) -> Writer {
        Writer { file, slot: Slot::new(Writer::ALL), state: Mutex::default(), moved: Condvar::new() }
    }

    pub(super) fn poll_write(
        &'static self,
        cx: &mut Context<'_>,
        wait: &Wait,
        key: &mut Key,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.leave_parent();
        poll(&self.slot, cx, wait, Interest::WRITABLE, key, || self.write(buf))
    }

    /// Ready when `until` bytes are out; the first poll sets `until`.
    pub(super) fn poll_flush(
        &'static self,
        cx: &mut Context<'_>,
        wait: &Wait,
        key: &mut Key,
        until: &mut Option<u64>,
    ) -> Poll<io::Result<()>> {
        self.leave_parent();
        poll(&self.slot, cx, wait, Interest::READABLE, key, || {
            let mut state = lock(&self.state);
            let until = *until.get_or_insert_with(|| state.mark());
            match state.error.take() {
                Some(error) => Err(error),
                None if state.out < until => Err(ErrorKind::WouldBlock.into()),
                None => Ok(()),
            }
        })
    }

    /// Waits until what has been taken until now is out, for at most so long.
    pub(super) fn finish(&self, limit: Duration) {
        if Process::has_parent() && matches!(self.state.try_lock(), Err(TryLockError::WouldBlock)) {
            return; // maybe held by a thread of the parent, so for ever
        }
        let state = lock(&self.state);
        let until = state.taken;
        let is_behind = |state: &mut Output| state.busy.is_at_work() && state.out < until;
        let _ = self.moved.wait_timeout_while(state, limit, is_behind);
    }

    /// If a thread of the parent writes, leaves all bytes that wait here, or are being written, to the parent.
    fn leave_parent(&self) {
        if !Process::has_parent() {
            return;
        }
        let mut state = lock(&self.state);
        if state.busy.leave_parent(&self.slot, Writer::ALL) {
            state.bytes.clear();
            state.marks.clear();
            state.out = state.taken;
        }
    }

    /// Takes what there is room for, and lets a thread write it.
    fn write(&'static self, buf: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let taken = buf.len().min(ROOM - state.bytes.len());
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        state.bytes.extend_from_slice(&buf[..taken]);
        state.taken += taken as u64;
        let to_start = state.busy.begin();
        drop(state);
        if to_start {
            FINISH.get_or_init(|| super::finish_all);
            start(|| self.drain()).inspect_err(|error| {
                let mut state = lock(&self.state);
                // What other tasks have written meanwhile is lost; the error tells them.
                let are_others_lost = state.bytes.len() > taken;
                state.error = are_others_lost.then(|| copy_of(error));
                state.lose();
                state.busy.end();
                drop(state);
                self.moved.notify_all();
                wake(&self.slot, Writer::ALL);
            })?;
        }
        Ok(taken)
    }

    /// The body of the thread.
    fn drain(&self) {
        let file = (self.file)();
        let mut out = 0;
        loop {
            let mut state = lock(&self.state);
            state.out += out;
            let bytes = state.up_to_a_mark();
            if bytes.is_empty() {
                state.busy.end();
            }
            drop(state);
            self.moved.notify_all();
            wake(&self.slot, Writer::ALL);
            if bytes.is_empty() {
                return;
            }
            out = bytes.len() as u64;
            let written = file.as_ref().map_err(copy_of).and_then(|file| write_all(file, &bytes));
            let written = unless_closed(written, ());
            if let Err(error) = written {
                let mut state = lock(&self.state);
                state.error = Some(error);
                state.lose();
            }
        }
    }
}

impl Served for Reader {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Served for Writer {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Output {
    /// The mark of a flush that begins now.
    fn mark(&mut self) -> u64 {
        if self.marks.back() != Some(&self.taken) {
            self.marks.push_back(self.taken);
        }
        self.taken
    }

    /// Takes out the bytes to be written next.
    fn up_to_a_mark(&mut self) -> Vec<u8> {
        let begin = self.taken - self.bytes.len() as u64;
        while self.marks.front().is_some_and(|mark| *mark <= begin) {
            self.marks.pop_front();
        }
        let length = self.marks.front().map_or(self.bytes.len(), |mark| (mark - begin) as usize);
        let rest = self.bytes.split_off(length);
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Drops the bytes that wait here: no thread will write them.
    fn lose(&mut self) {
        self.out += self.bytes.len() as u64;
        self.bytes.clear();
    }
}

/// The loop of `Source::poll_io`, with a thread in the place of the kernel.
fn poll<R>(
    slot: &Slot,
    cx: &mut Context<'_>,
    wait: &Wait,
    interest: Interest,
    key: &mut Key,
    mut op: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    ready!(mini_context::check_budget(cx, slot));
    let result = loop {
        let Poll::Ready(seen) = slot.poll_ready(cx, interest, Some(&mut *key)) else {
            wait.leave_note(-1);
            return Poll::Pending;
        };
        match op() {
            Err(e) if e.kind() == ErrorKind::WouldBlock => slot.clear(seen, interest.mask()),
            result => break result,
        }
    };
    mini_context::spend_call();
    Poll::Ready(result)
}

fn wake(slot: &Slot, ready: Ready) {
    let mut woken = Vec::new();
    slot.set(ready, &mut woken);
    for waker in woken {
        // The waker's panic has been printed. It must not end the thread, which has bytes of other tasks.
        contain(|| waker.wake());
    }
}

fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("mini-stdio".to_owned()).spawn(body).map(drop).map_err(no_thread)
}

/// As in the standard library, a stream that is closed, or not open for this (nohup(1) opens the input only to be
/// written), is no error: it has come to its end, or takes all.
pub(super) fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EBADF) => Ok(otherwise),
        result => result,
    }
}

pub(super) fn write_all(file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match patiently(file, Ready::WRITABLE, |mut file| file.write(bytes))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Runs `op`, which blocks until the file is `ready`, or would if another process had not made it non-blocking for all.
fn patiently(file: &File, ready: Ready, mut op: impl FnMut(&File) -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match op(file) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => wait_for(file.as_fd(), ready)?,
            result => return result,
        }
    }
}

/// Blocks until `fd` is `ready`.
fn wait_for(fd: BorrowedFd<'_>, ready: Ready) -> io::Result<()> {
    let (poller, mut events) = (Poller::new()?, Events::with_capacity(1));
    let known = poller.add(fd, Token { index: 0, generation: 0 }, Custody::Ours)?;
    if known.intersects(ready) {
        return Ok(()); // and there will be no report
    }
    loop {
        match poller.wait(&mut events, None) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => result?,
        }
        let is_ready = |at| events.get(at).is_some_and(|event| event.ready.intersects(ready));
        if (0..events.len()).any(is_ready) {
            return Ok(());
        }
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Poison is ignored: no user code runs under these locks.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
