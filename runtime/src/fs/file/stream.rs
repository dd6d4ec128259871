//! `Stream`: reading, writing and seeking at a file's position, one job at a time.
//!
//! Called by the futures in `call` and by the traits. The hard part is the state that a dropped future leaves behind,
//! as its job continues and `poll_read` can't know whether the same read is polled again:
//!
//! - A read's job uses read(2), which moves the kernel's position. Bytes that no read has taken are kept for the next
//!   read of this `File`, for which the position counts as before them. A seek by `SeekFrom::Current` counts from
//!   there, and the job of a write moves the position back first. If the file has been cut since, the job of the next
//!   read moves the position back, too, and reads again. A fifo or a terminal has no position: its kept bytes outlast
//!   writes.
//! - A write's job keeps a copy of its bytes. A write that offers the same bytes is that write; any other write waits
//!   until the job is done, and starts its own. The error of a job whose future was dropped is kept for the next call
//!   that can return it.
//! - A write to a file without a position does not wait for a read that was given up: the read may be waiting for the
//!   answer to this write. The read continues concurrently, and is the next one.
//! - A seek of tokio's trait is started in one call, and ends in another, or never. The next operation goes to its
//!   target first, as if the seek had been awaited.
//!
//! ```text
//!            1 read                 2 `kept` has the bytes, and the read takes its part of them
//!          .--------> Reading ----.
//!          | 3 write              | 4 `kept` is emptied, if the position is before it now
//!  Nothing +--------> Writing ----+--> Nothing
//!          | 5 seek               | 6 `kept` is emptied, unless the seek has failed
//!          '--------> Seeking ----'
//!
//!  1, 2 `poll_read`    3 `poll_write`    5, 6 `poll_move`    4, and 2 and 6 of a dropped future, `poll_settle`
//! ```
//!
//! A read stays in Nothing if bytes are kept or cached, a seek if it needs no wait.
//!
//! Rejected: pread(2), and to move the position when the read is ready. Fifos and procfs, whose bytes come once, need
//! a second way then, and each read needs a check that position, length and end are still those of its job. Rejected:
//! to be ready when the data are queued, as tokio's and async-fs's files are. It saves the wait for the hop, and has
//! lost the data of every program that didn't know of `flush`, with the error. Rejected: a position of our own. Child
//! processes and clones of the standard library would not share it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read as _, Seek as _, SeekFrom, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::call::Caller;
use super::open::{FileHold, Open};
use mini_net::Unfilled;

use crate::fs::calls::{self, now};
use crate::fs::job::Job;
use crate::fs::operation::{need_runtime, no_answer, pool};
use crate::fs::sys::CHUNK;

/// The operation in progress at the position of a file.
#[derive(Default)]
pub(super) struct Stream {
    doing: Doing,
    /// A read that was given up, and that a write has not waited for.
    aside: Option<Job<io::Result<Vec<u8>>>>,
    /// Bytes that were read and not taken yet. The kernel's position is behind them, if the file has one.
    kept: VecDeque<u8>,
    /// How often the file had been cut when the last read began.
    cuts: usize,
    /// The error of a write that nobody waited for.
    unseen: Unseen,
    /// Where a seek of tokio's `AsyncSeek` goes that was started: the next operation goes there first.
    pub(super) target: Option<SeekFrom>,
}

#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    Reading(Job<io::Result<Vec<u8>>>),
    Writing(Job<Written>),
    Seeking(SeekFrom, Job<io::Result<u64>>),
}

struct Written {
    bytes: Vec<u8>,
    /// How many of them the kernel has.
    count: usize,
    unseen: Unseen,
    /// How often the file had been cut when they were written.
    cuts: usize,
    /// Kept bytes are to be read again: the position was moved before them.
    is_back: bool,
}

/// An error that must not vanish, and the name of the file.
#[derive(Default)]
struct Unseen(Option<Box<(io::Error, String)>>);

impl Stream {
    /// Whether nothing is under way, and nothing kept.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.aside.is_none() && self.kept.is_empty() && self.target.is_none()
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        open: &Arc<Open>,
        mut buf: impl Unfilled,
        caller: Caller,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_target(cx, open, caller))?;
        loop {
            match &mut self.doing {
                Doing::Nothing => {
                    need_runtime(caller.call, caller.location);
                    ready!(mini_context::poll_call(cx, &self.target));
                    let unread = self.kept.len();
                    if buf.remaining() == 0 || unread > 0 && self.cuts == open.cuts() {
                        return Poll::Ready(Ok(self.take_kept(&mut buf)));
                    }
                    if unread == 0 {
                        // Bytes that a dropped read has begun to take come first.
                        if self.resume_read() {
                            continue;
                        }
                        if let Some(read) = read_now(open, &mut buf) {
                            return Poll::Ready(Ok(read));
                        }
                    }
                    (self.kept, self.cuts) = (VecDeque::new(), open.cuts());
                    let (lease, length) = (FileHold::new(open), buf.remaining().min(CHUNK));
                    self.doing = Doing::Reading(hop(caller, move || fetch(lease.open(), length, unread)));
                }
                Doing::Reading(job) => {
                    let fetched = ready!(Pin::new(job).poll(cx));
                    self.doing = Doing::Nothing;
                    let fetched = fetched.unwrap_or_else(|lost| Err(no_answer(lost)));
                    self.kept = fetched?.into();
                    if self.kept.is_empty() || self.cuts == open.cuts() {
                        return Poll::Ready(Ok(self.take_kept(&mut buf)));
                    }
                }
                _ => drop(ready!(self.poll_settle(cx, open))),
            }
        }
    }

    /// Goes on with the read that is aside, if there is one.
    fn resume_read(&mut self) -> bool {
        let Some(job) = self.aside.take() else { return false };
        self.doing = Doing::Reading(job);
        true
    }

    /// Lets a read of a file without a position go on beside what comes next.
    fn set_read_aside(&mut self, open: &Open) {
        match std::mem::take(&mut self.doing) {
            Doing::Reading(job) if open.is_seekable() == Some(false) => self.aside = Some(job),
            doing => self.doing = doing,
        }
    }

    /// Takes what fits into `buf` from the kept bytes.
    fn take_kept(&mut self, buf: &mut impl Unfilled) -> usize {
        let read = buf.remaining().min(self.kept.len());
        buf.put(&self.kept.make_contiguous()[..read]);
        self.kept.drain(..read);
        if self.kept.is_empty() {
            self.kept = VecDeque::new(); // gives the memory back
        }
        read
    }

    /// Writes from `bufs`, in order, as much as one hop takes.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        open: &Arc<Open>,
        bufs: &[IoSlice<'_>],
        caller: Caller,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_target(cx, open, caller))?;
        self.set_read_aside(open);
        loop {
            if let Some(Written { bytes, count, cuts, .. }) = ready!(self.poll_settle(cx, open)) {
                // A write that was given up: the same bytes again take its place, unless they may have been cut off
                // since.
                if count > 0 && cuts == open.cuts() && begins_with(bufs, &bytes) {
                    // The number tells what is missing. A write of that meets the error again, if it still holds.
                    self.unseen.0 = None;
                    return Poll::Ready(Ok(count));
                }
            }
            if let Some(failed) = self.unseen.0.take() {
                return Poll::Ready(Err(failed.0));
            }
            need_runtime(caller.call, caller.location);
            ready!(mini_context::poll_budget(cx, &self.target));
            let bytes = gather(bufs);
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let (lease, unread) = (FileHold::writing(open), self.kept.len());
            self.doing = Doing::Writing(hop(caller, move || store(&lease, bytes, unread)));
        }
    }

    /// Ready when no write is under way; then returns the error of a write that nobody waited for.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>, open: &Open) -> Poll<io::Result<()>> {
        if let Doing::Writing(_) = self.doing {
            ready!(self.poll_settle(cx, open));
        }
        ready!(mini_context::poll_budget(cx, &self.target));
        Poll::Ready(self.unseen.0.take().map_or(Ok(()), |failed| Err(failed.0)))
    }

    pub(super) fn poll_seek(
        &mut self,
        cx: &mut Context<'_>,
        open: &Arc<Open>,
        to: SeekFrom,
        caller: Caller,
    ) -> Poll<io::Result<u64>> {
        ready!(self.poll_target(cx, open, caller))?;
        self.poll_move(cx, open, to, caller)
    }

    /// Goes to the target of a seek that was started, if there is one, and returns the new position.
    pub(super) fn poll_target(
        &mut self,
        cx: &mut Context<'_>,
        open: &Arc<Open>,
        caller: Caller,
    ) -> Poll<io::Result<Option<u64>>> {
        let Some(to) = self.target else { return Poll::Ready(Ok(None)) };
        let sought = ready!(self.poll_move(cx, open, to, caller));
        self.target = None;
        Poll::Ready(sought.map(Some))
    }

    fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        open: &Arc<Open>,
        to: SeekFrom,
        caller: Caller,
    ) -> Poll<io::Result<u64>> {
        loop {
            match &mut self.doing {
                Doing::Nothing => {
                    need_runtime(caller.call, caller.location);
                    // Perhaps only a server knows the end. Any other position needs only the kernel's memory, unless
                    // the file makes its bytes once more.
                    let unread = self.kept.len();
                    let is_quick = !matches!(to, SeekFrom::End(_)) && unread == 0;
                    if is_quick && let Some(_turn) = open.try_turn() {
                        ready!(mini_context::poll_call(cx, &self.target));
                        return Poll::Ready(open.std().seek(to));
                    }
                    let lease = FileHold::new(open);
                    let job = move || {
                        let _turn = lease.open().turn();
                        lease.std().seek(before(unread, to))
                    };
                    self.doing = Doing::Seeking(to, hop(caller, job));
                }
                Doing::Seeking(same, job) if *same == to => {
                    let sought = ready!(Pin::new(job).poll(cx));
                    self.doing = Doing::Nothing;
                    let sought = sought.unwrap_or_else(|lost| Err(no_answer(lost)));
                    if sought.is_ok() {
                        self.forget_kept(open);
                    }
                    return Poll::Ready(sought);
                }
                _ => drop(ready!(self.poll_settle(cx, open))),
            }
        }
    }

    /// Ready when nothing is under way.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>, open: &Arc<Open>, caller: Caller) -> Poll<()> {
        let _ = ready!(self.poll_target(cx, open, caller)); // an error leaves the position where it is
        ready!(self.poll_settle(cx, open));
        if self.resume_read() {
            ready!(self.poll_settle(cx, open));
        }
        Poll::Ready(())
    }

    /// Waits for the job that is under way, and keeps of its result what must be kept. Returns a write that is done.
    fn poll_settle(&mut self, cx: &mut Context<'_>, open: &Open) -> Poll<Option<Written>> {
        match &mut self.doing {
            Doing::Nothing => {}
            Doing::Reading(job) => {
                if let Ok(Ok(bytes)) = ready!(Pin::new(job).poll(cx)) {
                    self.kept = bytes.into();
                }
            }
            Doing::Writing(job) => {
                let written = ready!(Pin::new(job).poll(cx));
                self.doing = Doing::Nothing;
                match written {
                    Ok(mut written) => {
                        self.unseen = std::mem::take(&mut written.unseen);
                        if written.is_back {
                            self.kept = VecDeque::new();
                        }
                        return Poll::Ready(Some(written));
                    }
                    // A shutdown has discarded the job.
                    Err(lost) => self.unseen = Unseen::new(open, no_answer(lost)),
                }
            }
            Doing::Seeking(_, job) => {
                if let Ok(Ok(_)) = ready!(Pin::new(job).poll(cx)) {
                    self.forget_kept(open);
                }
            }
        }
        self.doing = Doing::Nothing;
        Poll::Ready(None)
    }

    /// After a seek: the position is before the kept bytes, or elsewhere, if the file has one.
    fn forget_kept(&mut self, open: &Open) {
        if !self.kept.is_empty() && open.is_seekable() == Some(true) {
            self.kept = VecDeque::new();
        }
    }
}

/// Runs `job` in a thread that may block.
fn hop<T: Send + 'static>(caller: Caller, job: impl FnOnce() -> T + Send + 'static) -> Job<T> {
    Job::start(&pool(caller.call, caller.location), caller.location, job)
}

/// Reads what needs no wait.
fn read_now(open: &Open, buf: &mut impl Unfilled) -> Option<usize> {
    let _turn = open.try_turn()?;
    let read = now::read(open.std(), buf)?;
    mini_context::spend_bytes(read);
    Some(read)
}

/// Goes back over `unread` bytes and reads up to `length` bytes, in a thread that may block.
fn fetch(open: &Open, length: usize, unread: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut file) = (vec![0; length], open.std());
    let _turn = open.turn();
    go_back(open, unread);
    loop {
        match file.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}

/// Moves the position back over `unread` bytes; returns whether that was possible. A fifo has no position, nor have
/// devices whose lseek(2) succeeds and moves nothing; and a clone may have moved it to the beginning.
fn go_back(open: &Open, unread: usize) -> bool {
    let back = before(unread, SeekFrom::Current(0));
    unread == 0 || open.is_seekable() == Some(true) && open.std().seek(back).is_ok()
}

/// Returns the kernel's target for `to`, where the position counts as before `unread` bytes.
fn before(unread: usize, to: SeekFrom) -> SeekFrom {
    match to {
        SeekFrom::Current(by) => SeekFrom::Current(by.saturating_sub_unsigned(unread as u64)),
        to => to,
    }
}

/// Writes all it can, in a thread that may block.
fn store(lease: &FileHold, bytes: Vec<u8>, unread: usize) -> Written {
    let (open, mut file) = (lease.open(), lease.std());
    let _turn = open.turn();
    let (mut count, mut unseen, cuts) = (0, Unseen(None), open.cuts());
    let is_back = go_back(open, unread);
    while count < bytes.len() && unseen.0.is_none() {
        match file.write(&bytes[count..]) {
            Ok(0) => unseen = Unseen::new(open, ErrorKind::WriteZero.into()),
            Ok(written) => count += written,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => unseen = Unseen::new(open, e),
        }
    }
    Written { bytes, count, unseen, cuts, is_back }
}

/// A copy of what `bufs` begin with.
fn gather(bufs: &[IoSlice<'_>]) -> Vec<u8> {
    let total: usize = bufs.iter().map(|buf| buf.len()).sum();
    let mut bytes = Vec::with_capacity(total.min(CHUNK));
    for buf in bufs {
        let room = CHUNK - bytes.len();
        bytes.extend_from_slice(&buf[..buf.len().min(room)]);
    }
    bytes
}

fn begins_with(bufs: &[IoSlice<'_>], mut bytes: &[u8]) -> bool {
    for buf in bufs {
        let length = buf.len().min(bytes.len());
        let (head, rest) = bytes.split_at(length);
        if buf[..length] != *head {
            return false;
        }
        bytes = rest;
    }
    bytes.is_empty()
}

impl Unseen {
    fn new(open: &Open, error: io::Error) -> Unseen {
        let name = match open.path() {
            path if path.as_os_str().is_empty() => format!("descriptor {}", calls::number(open.std())),
            path => format!("`{}`", path.display()),
        };
        Unseen(Some(Box::new((error, name))))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        if let Some((error, name)) = self.0.as_deref() {
            say!("failed to write {name}: {error}; call `flush` before the file is dropped to get such an error");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::fs::calls::File;

    #[test]
    fn a_worker_does_not_wait_for_a_job_that_uses_the_position() {
        let path = std::env::temp_dir().join(format!("mini-turn-{}", std::process::id()));
        std::fs::write(&path, "content").unwrap();
        let (open, mut buf) = (Open::new(File::open(&path).unwrap(), path.clone(), false), [0; 4]);
        let turn = open.turn();
        assert!(turn.is_some() && open.try_turn().is_none());
        assert_eq!(read_now(&open, &mut &mut buf[..]), None);
        drop(turn);
        assert_eq!(fetch(&open, 4, 0).unwrap(), b"cont");
        assert_eq!(open.std().stream_position().unwrap(), 4);
        assert_eq!(fetch(&open, 4, 2).unwrap(), b"nten");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_position_before_the_beginning_is_not_gone_to() {
        let open = Open::new(File::open("Cargo.toml").unwrap(), PathBuf::new(), false);
        let mut file = open.std();
        file.seek(SeekFrom::Start(3)).unwrap();
        assert!(!go_back(&open, 4), "a clone has moved it");
        assert!(go_back(&open, 2));
        assert_eq!(file.stream_position().unwrap(), 1);
        assert_eq!(before(1, SeekFrom::Current(i64::MIN)), SeekFrom::Current(i64::MIN));
    }

    #[test]
    fn a_small_read_moves_nothing_of_what_is_kept() {
        let (mut stream, mut byte) = (Stream::default(), [0]);
        stream.kept = b"abc".to_vec().into();
        let last = std::ptr::from_ref(&stream.kept[2]);
        assert_eq!((stream.take_kept(&mut &mut byte[..]), &byte), (1, b"a"));
        assert_eq!((stream.kept.len(), std::ptr::from_ref(&stream.kept[1])), (2, last));
    }
}
