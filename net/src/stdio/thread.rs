//! A standard stream that is read, or written, by a thread.
//!
//! Called by `stdio`, for files, and for any stream that would block the thread that asks. There is one `Reader` and
//! one `Writer` for a stream in the process, so that bytes that were read are there for the next reader, and bytes that
//! are written go out in order. The thread starts when there is something to do and ends when that is done. It belongs
//! to no runtime, so no runtime waits for it, and it does not keep the process from ending. (Nor does a paused clock
//! wait for it.)
//!
//! All state is behind one lock, and each step of the thread wakes every task that waits. A waker goes with its future
//! or its handle: nobody may ever press a key, and a waker keeps a runtime open. In a child of fork(2), which has no
//! such thread, the state begins anew: unwritten bytes are left to the parent.
//!
//! # Rejected
//!
//! - The blocking pool of the runtime: its shutdown would wait for somebody to press a key.
//! - A thread that stays: it would need a request to end, or read what no task has asked for.
//! - The waiters of sockets (`slot`), who look for readiness again without a lock. Here the bytes are behind the lock,
//!   and so few tasks wait that a list will do.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mini_context::contain;

use crate::error::no_thread;
use crate::source::CallSite;
use crate::sys::fork::Process;
use crate::unfilled::Unfilled;

/// Bytes that are read at once, or wait to be written.
const ROOM: usize = 64 << 10;

/// The pause before the next try if another process has made the stream non-blocking. The state is too rare to pay for
/// a wait with poll(2). Real time: the thread belongs to no runtime, so no paused clock applies.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Reader {
    file: fn() -> io::Result<File>,
    state: Mutex<State<Input>>,
}

pub(super) struct Writer {
    file: fn() -> io::Result<File>,
    state: Mutex<State<Output>>,
    /// For threads that wait until something is out.
    moved: Condvar,
}

/// What [`finish_output`](super::finish_output) calls, from the first byte on that a thread writes: a program without
/// any has no code for it.
pub(super) static FINISH: OnceLock<fn(Duration)> = OnceLock::new();

/// Names a future or a handle, as long as the process lives and in its children.
pub(super) type Number = NonZeroU64;

/// A number that was not given out before.
pub(super) fn new_number() -> Number {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Number::MIN.saturating_add(LAST.fetch_add(1, Relaxed))
}

/// The state of a stream in this process.
struct State<S> {
    process: Process,
    stream: S,
    is_thread_at_work: bool,
    /// The wakers of the futures and handles that wait, by their numbers.
    waiting: Vec<(Number, Waker)>,
}

#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    /// How many of `bytes` have been given out.
    given: usize,
    /// The end, or an error, to be returned once.
    last: Option<io::Result<usize>>,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// The error of bytes that were taken, to be returned once.
    error: Option<io::Error>,
    /// How many bytes have ever been taken, and how many of them are out, or lost with an error.
    taken: u64,
    out: u64,
}

impl<S: Default> Default for State<S> {
    fn default() -> Self {
        State { process: Process::current(), stream: S::default(), is_thread_at_work: false, waiting: Vec::new() }
    }
}

impl<S> State<S> {
    /// Starts a thread that runs `body`, unless one is at work.
    fn serve(&mut self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        if !self.is_thread_at_work {
            let builder = thread::Builder::new().name("mini-stdio".to_owned());
            builder.spawn(body).map_err(no_thread)?;
            self.is_thread_at_work = true;
        }
        Ok(())
    }

    /// Takes out the waker of `number`.
    fn forget(&mut self, number: Number) -> Option<Waker> {
        let at = self.waiting.iter().position(|(other, _)| *other == number)?;
        Some(self.waiting.remove(at).1)
    }
}

impl Reader {
    /// Reads what `file` returns, a duplicate of the stream.
    pub(super) fn new(file: fn() -> io::Result<File>) -> Reader {
        Reader { file, state: Mutex::default() }
    }

    /// Takes what is there; if there is nothing, waits for a thread that reads.
    pub(super) fn poll_read(
        &'static self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        number: Number,
        buf: &mut impl Unfilled,
    ) -> Poll<io::Result<usize>> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.state);
        let input = &mut state.stream;
        if input.given < input.bytes.len() {
            let read = buf.remaining().min(input.bytes.len() - input.given);
            buf.put(&input.bytes[input.given..input.given + read]);
            input.given += read;
            return Poll::Ready(Ok(read));
        }
        if let Some(last) = input.last.take() {
            return Poll::Ready(last);
        }
        state.serve(|| self.fill())?;
        pending(state, number, waker, call_site)
    }

    /// The future or the handle of this number is dropped.
    pub(super) fn forget(&self, number: Number, process: Process) {
        forget(&self.state, number, process);
    }

    /// The body of the thread.
    fn fill(&self) {
        let mut bytes = mem::take(&mut lock(&self.state).stream.bytes);
        bytes.resize(ROOM, 0);
        let read = (self.file)().and_then(|file| patiently(|| (&file).read(&mut bytes)));
        let read = unless_closed(read, 0);
        bytes.truncate(*read.as_ref().unwrap_or(&0));
        let mut state = lock(&self.state);
        let last = bytes.is_empty().then_some(read);
        state.stream = Input { bytes, given: 0, last };
        state.is_thread_at_work = false;
        wake(state);
    }
}

impl Writer {
    /// Writes to what `file` returns, a duplicate of the stream.
    pub(super) fn new(file: fn() -> io::Result<File>) -> Writer {
        Writer { file, state: Mutex::default(), moved: Condvar::new() }
    }

    /// Takes what there is room for, and lets a thread write it.
    pub(super) fn poll_write(
        &'static self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        number: Number,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        FINISH.get_or_init(|| super::finish_all);
        let waker = cx.waker().clone();
        let mut state = lock(&self.state);
        if let Some(error) = state.stream.error.take() {
            return Poll::Ready(Err(error));
        }
        let taken = buf.len().min(ROOM - state.stream.bytes.len());
        if taken == 0 {
            return pending(state, number, waker, call_site);
        }
        state.serve(|| self.drain())?;
        state.stream.bytes.extend_from_slice(&buf[..taken]);
        state.stream.taken += taken as u64;
        Poll::Ready(Ok(taken))
    }

    /// Ready when `until` bytes are out; the first poll sets `until`.
    pub(super) fn poll_flush(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        number: Number,
        until: &mut Option<u64>,
    ) -> Poll<io::Result<()>> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.state);
        let until = *until.get_or_insert(state.stream.taken);
        match state.stream.error.take() {
            Some(error) => Poll::Ready(Err(error)),
            None if state.is_thread_at_work && state.stream.out < until => pending(state, number, waker, call_site),
            None => Poll::Ready(Ok(())),
        }
    }

    /// The future or the handle of this number is dropped.
    pub(super) fn forget(&self, number: Number, process: Process) {
        forget(&self.state, number, process);
    }

    /// Waits until what has been taken until now is out, for at most so long. In a child of fork(2), a thread of the
    /// parent may have the lock for ever.
    pub(super) fn finish(&self, limit: Duration) {
        let begin = Instant::now();
        while matches!(self.state.try_lock(), Err(TryLockError::WouldBlock)) {
            if begin.elapsed() >= limit {
                return;
            }
            thread::yield_now();
        }
        let state = lock(&self.state);
        let until = state.stream.taken;
        let is_behind = |state: &mut State<Output>| state.is_thread_at_work && state.stream.out < until;
        let _ = self.moved.wait_timeout_while(state, limit, is_behind);
    }

    /// The body of the thread.
    fn drain(&self) {
        let file = (self.file)();
        let mut state = lock(&self.state);
        loop {
            let bytes = mem::take(&mut state.stream.bytes); // so there is room again
            state.is_thread_at_work = !bytes.is_empty();
            self.moved.notify_all();
            wake(state);
            if bytes.is_empty() {
                return;
            }
            let written = file.as_ref().map_err(copy_of).and_then(|file| write_all(file, &bytes));
            state = lock(&self.state);
            state.stream.out += bytes.len() as u64;
            if let Err(error) = unless_closed(written, ()) {
                // What waits behind it is lost, too.
                state.stream.out = state.stream.taken;
                state.stream.bytes.clear();
                state.stream.error = Some(error);
            }
        }
    }
}

/// Leaves a waker, which the next step of the thread wakes, in place of the one that `number` has left before. It was
/// cloned before the lock was taken, as that is user code. So is the drop of the other.
fn pending<S, T>(mut state: MutexGuard<'_, State<S>>, number: Number, waker: Waker, call_site: &CallSite) -> Poll<T> {
    let former = state.forget(number);
    state.waiting.push((number, waker));
    drop(state);
    drop(former);
    call_site.leave_note(-1);
    Poll::Pending
}

/// Takes a waker out, unless the handle is one of a parent, whose threads may have the lock for ever.
fn forget<S: Default>(state: &Mutex<State<S>>, number: Number, process: Process) {
    if !process.is_current() {
        return;
    }
    let mut state = lock(state);
    let waker = state.forget(number);
    drop(state);
    drop(waker);
}

/// Wakes all tasks that wait, without the lock.
fn wake<S>(mut state: MutexGuard<'_, State<S>>) {
    let waiting = mem::take(&mut state.waiting);
    drop(state);
    for (_, waker) in waiting {
        // The waker's panic has been printed. It must not end the thread, which has bytes of other tasks.
        contain(|| waker.wake());
    }
}

/// As in the standard library, a stream that is closed, or not open for this (nohup(1) opens the input only to be
/// written), is no error: it has come to its end, or takes all.
pub(super) fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EBADF) => Ok(otherwise),
        result => result,
    }
}

pub(super) fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match patiently(|| file.write(bytes))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Runs `op`, which blocks, or would if another process had not made the stream non-blocking for all.
fn patiently(mut op: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match op() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // Real time: the stream belongs to another process too, which has made it non-blocking.
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Locks the state; in a child of fork(2), one that is the child's own. The parent's wakers are neither called nor
/// dropped there. Poison is ignored: no user code runs under this lock.
fn lock<S: Default>(state: &Mutex<State<S>>) -> MutexGuard<'_, State<S>> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if !state.process.is_current() {
        mem::forget(mem::take(&mut *state));
    }
    state
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use mini_context::IoKind;

    use super::*;
    use crate::source::Site;

    /// A pipe to read from, into which nobody writes.
    fn silent() -> io::Result<File> {
        static PIPE: OnceLock<(io::PipeReader, io::PipeWriter)> = OnceLock::new();
        let (reader, _) = PIPE.get_or_init(|| io::pipe().unwrap());
        reader.try_clone().map(|reader| File::from(std::os::fd::OwnedFd::from(reader)))
    }

    #[test]
    fn a_waker_goes_with_its_future_or_handle() {
        struct Count;
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {}
        }
        const SITE: &Site = &Site { owner: "Stdin", method: "read", kind: IoKind::Read };
        static READER: OnceLock<Reader> = OnceLock::new();
        let reader = READER.get_or_init(|| Reader::new(silent));
        let [first, second] = [(); 2].map(|()| Arc::new(Count));
        let wait = |number, task: &Arc<Count>| {
            let waker = Waker::from(task.clone());
            let mut cx = Context::from_waker(&waker);
            let mut buf: &mut [u8] = &mut [0; 8];
            assert!(reader.poll_read(&mut cx, &CallSite::here(SITE), number, &mut buf).is_pending());
        };
        let [one, two] = [(); 2].map(|()| new_number());
        wait(one, &first);
        wait(one, &first);
        wait(two, &first);
        assert_eq!(Arc::strong_count(&first), 3);
        wait(one, &second);
        assert_eq!([&first, &second].map(Arc::strong_count), [2, 2], "the last waker of a number counts");
        reader.forget(one, Process::current());
        reader.forget(two, Process::current());
        reader.forget(two, Process::current());
        assert_eq!([&first, &second].map(Arc::strong_count), [1, 1]);
    }
}
