//! `Stream`: reading, writing and seeking at a file's position, one job at a time.
//!
//! Called by the futures in `call` and by the traits. The hard part is the state that a dropped future leaves behind,
//! as its job continues and `poll_read` can't know whether the same read is polled again:
//!
//! - A read's job uses pread(2) and moves nothing. The read that takes the bytes moves the position, if it still is
//!   where they were read; otherwise they are discarded. Bytes without a position (fifo, terminal) are kept for the
//!   next read instead.
//! - A file that by its size has nothing at its position is read by read(2): the kernel makes the bytes of most files
//!   of procfs as they are read, record by record, and for a seek it makes all bytes before it again. Bytes that no
//!   read takes are kept, and count as not read: a seek, a write or the file of std begins before them. If the file has
//!   just grown, which its size then shows, the job moves the position back, and the read was like any other.
//! - A write's job keeps a copy of its bytes. A write that offers the same bytes is that write; any other write waits
//!   until the job is done, and starts its own. The error of a job whose future was dropped is kept for the next call
//!   that can return it.
//! - A write to a file without a position does not wait for a read that was given up: the read may be waiting for the
//!   answer to this write. The read continues concurrently, and is the next one.
//! - A seek of tokio's trait is started in one call, and ends in another, or never. The next operation goes to its
//!   target first, as if the seek had been awaited.
//!
//! Rejected: to be ready when the data are queued, as tokio's and async-fs's files are. It saves the wait for the hop,
//! and has lost the data of every program that didn't know of `flush`, with the error. Rejected: a position of our own.
//! Child processes and clones of the standard library would not share it.

use std::io::{self, Cursor, ErrorKind, IoSlice, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::call::Caller;
use super::open::{Lease, Open};
use mini_net::Unfilled;

use crate::fs::calls::{File, look, now};
use crate::fs::job::Job;
use crate::fs::operation::{need_runtime, no_answer, pool};
use crate::fs::sys::{CHUNK, Look};

/// The operation in progress at the position of a file.
#[derive(Default)]
pub(super) struct Stream {
    doing: Doing,
    /// A read that was given up, and that a write has not waited for.
    aside: Option<Job<io::Result<Fetched>>>,
    /// Bytes that come once, as from a fifo or a terminal, read and not taken yet.
    kept: Cursor<Box<[u8]>>,
    /// The position behind those, if the file has one.
    kept_to: Option<u64>,
    /// The error of a write that nobody waited for.
    unseen: Unseen,
    /// Where a seek of tokio's `AsyncSeek` goes that was started: the next operation goes there first.
    pub(super) target: Option<SeekFrom>,
}

#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    Reading(Job<io::Result<Fetched>>),
    Writing(Job<Written>),
    Seeking(SeekFrom, Job<io::Result<u64>>),
}

struct Fetched {
    bytes: Vec<u8>,
    /// Where they were read; `None` if they can't be read again.
    at: Option<u64>,
    /// The position when they were read, and then the size of the file, if it has them; `at`, or else the position has
    /// moved behind the bytes.
    begin: Option<u64>,
    size: Option<u64>,
    /// How often the length of the file had been set when the read began.
    cuts: usize,
}

/// Bytes that were read and not taken: their number, and the position behind them.
#[derive(Clone, Copy)]
struct Unread(u64, u64);

struct Written {
    bytes: Vec<u8>,
    /// How many of them the kernel has.
    count: usize,
    unseen: Unseen,
    /// How often the length of the file had been set when they were written.
    cuts: usize,
}

/// An error that must not vanish, and the path of the file.
#[derive(Default)]
struct Unseen(Option<Box<(io::Error, PathBuf)>>);

impl Stream {
    /// Whether nothing is under way, and nothing kept.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.aside.is_none() && self.kept().is_empty() && self.target.is_none()
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
                    // What a read has begun to take comes first, but for what an earlier one has kept.
                    if buf.remaining() > 0 && self.kept().is_empty() && self.resume_read() {
                        continue;
                    }
                    if let Some(read) = self.read_now(open, &mut buf) {
                        return Poll::Ready(Ok(read));
                    }
                    let (lease, length, cuts) = (Lease::moving(open), buf.remaining().min(CHUNK), open.cuts());
                    let job = move || fetch(lease.open(), length, cuts);
                    self.doing = Doing::Reading(hop(caller, job));
                }
                Doing::Reading(job) => {
                    let fetched = ready!(Pin::new(job).poll(cx));
                    self.doing = Doing::Nothing;
                    let delivered = fetched.unwrap_or_else(|lost| Err(no_answer(lost)));
                    match delivered.and_then(|fetched| self.deliver(open, fetched, &mut buf)) {
                        Ok(Some(read)) => return Poll::Ready(Ok(read)),
                        Ok(None) => {}
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                _ => ready!(self.poll_settle(cx, open)),
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
            Doing::Reading(job) if look(open.std()).is_ok_and(|look| !look.is_seekable) => self.aside = Some(job),
            doing => self.doing = doing,
        }
    }

    /// What can be read without a hop.
    fn read_now(&mut self, open: &Open, buf: &mut impl Unfilled) -> Option<usize> {
        if buf.remaining() == 0 {
            return Some(0);
        }
        if self.unread().is_some_and(|Unread(_, to)| has_gone_back(open, to)) {
            self.forget_kept();
        }
        if !self.kept().is_empty() {
            let read = buf.remaining().min(self.kept().len());
            buf.put(&self.kept()[..read]);
            self.kept.set_position(self.kept.position() + read as u64);
            return Some(read);
        }
        let _turn = open.try_turn()?;
        let read = now::read(open.std(), buf)?;
        mini_context::spend_bytes(read);
        Some(read)
    }

    /// Gives out what a job has read; `None` if it has to be read again: the position has moved meanwhile, or a clone
    /// is just about to move it, or the end of the file has moved. Behind bytes that come once it may move on.
    fn deliver(&mut self, open: &Open, fetched: Fetched, buf: &mut impl Unfilled) -> io::Result<Option<usize>> {
        let Fetched { bytes, at, begin, size, cuts } = fetched;
        let read = bytes.len().min(buf.remaining());
        let mut file = open.std();
        if bytes.is_empty()
            && let Some(begin) = begin
        {
            let Some(_turn) = open.try_turn_of_job() else { return Ok(None) };
            // Not if it is as large as it was: some files say that they are larger than they are, as most of sysfs.
            let has_grown = now::size(file).is_some_and(|now| Some(now) != size && now > begin);
            if has_grown || file.stream_position()? != begin {
                return Ok(None);
            }
        }
        if let Some(at) = at {
            // A job that begins now waits for its turn, as the next `fetch` does for this clone's.
            let Some(_turn) = open.try_turn_of_job() else { return Ok(None) };
            if file.stream_position()? != at || cuts != open.cuts() {
                return Ok(None);
            }
            if read > 0 {
                file.seek(SeekFrom::Start(at + read as u64))?;
            }
        } else if begin.is_some_and(|begin| has_gone_back(open, begin + bytes.len() as u64)) {
            return Ok(None);
        } else {
            self.keep(&bytes[read..], begin, bytes.len());
        }
        buf.put(&bytes[..read]);
        Ok(Some(read))
    }

    /// What is kept and not taken yet.
    fn kept(&self) -> &[u8] {
        &self.kept.get_ref()[self.kept.position() as usize..]
    }

    /// Bytes that come once and were read for nobody are the next that are read.
    fn keep(&mut self, bytes: &[u8], begin: Option<u64>, all: usize) {
        self.kept = Cursor::new(bytes.into());
        self.kept_to = begin.map(|begin| begin + all as u64);
    }

    /// What is kept of a file with a position, for a job that is to begin before it.
    fn unread(&mut self) -> Option<Unread> {
        let length = self.kept().len() as u64;
        self.kept_to.filter(|_| length > 0).map(|to| Unread(length, to))
    }

    /// The position is where what was kept begins, or away from there.
    fn forget_kept(&mut self) {
        if self.kept_to.take().is_some() {
            self.kept = Cursor::default();
        }
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
            match &mut self.doing {
                Doing::Nothing => {
                    need_runtime(caller.call, caller.location);
                    ready!(mini_context::poll_budget(cx, &self.target));
                    if let Some(failed) = self.unseen.0.take() {
                        return Poll::Ready(Err(failed.0));
                    }
                    let bytes = gather(bufs);
                    if bytes.is_empty() {
                        return Poll::Ready(Ok(0));
                    }
                    let (lease, unread) = (Lease::writing(open), self.unread());
                    self.forget_kept();
                    let job = move || store(&lease, bytes, unread);
                    self.doing = Doing::Writing(hop(caller, job));
                }
                Doing::Writing(job) => {
                    let written = ready!(Pin::new(job).poll(cx));
                    self.doing = Doing::Nothing;
                    let Written { bytes, count, unseen, cuts } = match written {
                        Ok(written) => written,
                        Err(lost) => return Poll::Ready(Err(no_answer(lost))),
                    };
                    self.unseen = unseen;
                    // A write that was given up: the same bytes again take its place, unless they may have been cut off
                    // since.
                    if count > 0 && cuts == open.cuts() && begins_with(bufs, &bytes) {
                        // The number tells what is missing. A write of that meets the error again, if it still holds.
                        self.unseen.0 = None;
                        return Poll::Ready(Ok(count));
                    }
                }
                _ => ready!(self.poll_settle(cx, open)),
            }
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
                    let unread = self.unread();
                    let is_quick = !matches!(to, SeekFrom::End(_)) && unread.is_none();
                    let turn = if is_quick { open.try_turn() } else { None };
                    if turn.is_some() {
                        ready!(mini_context::poll_call(cx, &self.target));
                        return Poll::Ready(open.std().seek(to));
                    }
                    let lease = Lease::moving(open);
                    let job = move || {
                        let _turn = lease.open().turn();
                        unread.map_or(Ok(()), |unread| unread.go_back(lease.std()))?;
                        lease.std().seek(to)
                    };
                    self.doing = Doing::Seeking(to, hop(caller, job));
                }
                Doing::Seeking(same, job) if *same == to => {
                    let sought = ready!(Pin::new(job).poll(cx));
                    self.doing = Doing::Nothing;
                    self.forget_kept();
                    return Poll::Ready(sought.unwrap_or_else(|lost| Err(no_answer(lost))));
                }
                _ => ready!(self.poll_settle(cx, open)),
            }
        }
    }

    /// Ready when nothing is under way, and the position is before what nobody has taken.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>, open: &Arc<Open>, caller: Caller) -> Poll<()> {
        let _ = ready!(self.poll_target(cx, open, caller)); // an error leaves the position where it is
        ready!(self.poll_settle(cx, open));
        if self.resume_read() {
            ready!(self.poll_settle(cx, open));
        }
        if self.unread().is_some() {
            let _ = ready!(self.poll_move(cx, open, SeekFrom::Current(0), caller)); // likewise
        }
        Poll::Ready(())
    }

    /// Waits for the job that is under way, and keeps of its result what must be kept.
    pub(super) fn poll_settle(&mut self, cx: &mut Context<'_>, open: &Open) -> Poll<()> {
        match &mut self.doing {
            Doing::Nothing => {}
            Doing::Reading(job) => {
                if let Ok(Ok(Fetched { bytes, at: None, begin, .. })) = ready!(Pin::new(job).poll(cx)) {
                    self.keep(&bytes, begin, bytes.len());
                }
            }
            Doing::Writing(job) => {
                let written = ready!(Pin::new(job).poll(cx));
                self.doing = Doing::Nothing;
                self.unseen = match written {
                    Ok(Written { unseen, .. }) => unseen,
                    // A shutdown has discarded the job.
                    Err(lost) => Unseen::new(open, no_answer(lost)),
                };
            }
            Doing::Seeking(_, job) => {
                drop(ready!(Pin::new(job).poll(cx)));
                self.forget_kept();
            }
        }
        self.doing = Doing::Nothing;
        Poll::Ready(())
    }
}

/// Runs `job` in a thread that may block.
fn hop<T: Send + 'static>(caller: Caller, job: impl FnOnce() -> T + Send + 'static) -> Job<T> {
    Job::start(&pool(caller.call, caller.location), caller.location, job)
}

impl Unread {
    /// Moves the position before those bytes, unless something else has moved it since.
    fn go_back(self, mut file: &File) -> io::Result<()> {
        let Self(length, to) = self;
        if file.stream_position()? == to {
            file.seek(SeekFrom::Start(to.saturating_sub(length)))?;
        }
        Ok(())
    }
}

/// Whether the position is before `to`, where a read has left it. It may well be further on, as clones read too.
/// Without a turn the answer is no: what another thread does at the same time may come later.
fn has_gone_back(open: &Open, to: u64) -> bool {
    let mut file = open.std();
    open.try_turn_of_job().is_some_and(|_turn| file.stream_position().is_ok_and(|now| now < to))
}

/// Reads up to `length` bytes, in a thread that may block.
fn fetch(open: &Open, length: usize, cuts: usize) -> io::Result<Fetched> {
    fetch_after(look(open.std())?, open, length, cuts)
}

/// As `fetch`, after a look at the file, which may have changed since.
fn fetch_after(look: Look, open: &Open, length: usize, cuts: usize) -> io::Result<Fetched> {
    let (mut bytes, file) = (vec![0; length], open.std());
    let turn = look.is_seekable.then(|| open.turn());
    let begin = position(file, look.is_seekable)?;
    // By its size there is nothing: the kernel makes the bytes as they are read, unless it is the end.
    let comes_once = |at: u64| look.is_file && at >= look.size;
    let mut at = begin.filter(|&at| !comes_once(at));
    let mut turn = turn.filter(|_| begin.is_some() && at.is_none()); // while the read moves the position
    loop {
        let read = match at {
            Some(at) => file.read_at(&mut bytes, at),
            None => read(file, &mut bytes),
        };
        match read {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::NotSeekable && at.is_some() => (at, turn) = (None, None),
            read => {
                bytes.truncate(read?);
                let size = begin.map(|_| look.size);
                let (at, begin) = match (at, begin) {
                    (None, Some(begin)) => places(file, begin, bytes.len()),
                    _ => (at, begin),
                };
                drop(turn);
                return Ok(Fetched { bytes, at, begin, size, cuts });
            }
        }
    }
}

/// What `Fetched` says as `at` and as `begin` of bytes that read(2) has taken at the position `begin`.
fn places(mut file: &File, begin: u64, length: usize) -> (Option<u64>, Option<u64>) {
    let end = begin + length as u64;
    if length == 0 {
        return (None, Some(begin));
    }
    if file.stream_position().ok() != Some(end) {
        return (None, None); // reading moves no position, as in /proc/kmsg, or another process has moved it
    }
    // The file has grown since the look: the bytes can be read again, and others are to find them.
    let has_grown = look(file).is_ok_and(|look| look.size >= end);
    let is_back = has_grown && file.seek(SeekFrom::Start(begin)).is_ok();
    (is_back.then_some(begin), Some(begin))
}

fn read(mut file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    file.read(bytes)
}

/// Where the next read is to be made; `None` for a file whose bytes come once, in their order. Such a file may look
/// like an ordinary one, as some of the kernel's own do (`trace_pipe` of tracefs).
fn position(mut file: &File, is_seekable: bool) -> io::Result<Option<u64>> {
    if !is_seekable {
        return Ok(None);
    }
    match file.stream_position() {
        Err(e) if e.kind() == ErrorKind::NotSeekable => Ok(None),
        at => at.map(Some),
    }
}

/// Writes all it can, in a thread that may block.
fn store(lease: &Lease, bytes: Vec<u8>, unread: Option<Unread>) -> Written {
    let (mut count, mut unseen) = (0, Unseen(None));
    // A file without a position may have no reader: then the write waits, and must not hold the turn.
    let _turn = look(lease.std()).is_ok_and(|look| look.is_seekable).then(|| lease.open().turn());
    let cuts = lease.open().cuts();
    if let Some(Err(error)) = unread.map(|unread| unread.go_back(lease.std())) {
        unseen = Unseen::new(lease.open(), error);
    }
    while count < bytes.len() && unseen.0.is_none() {
        match lease.std().write(&bytes[count..]) {
            Ok(0) => unseen = Unseen::new(lease.open(), ErrorKind::WriteZero.into()),
            Ok(written) => count += written,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => unseen = Unseen::new(lease.open(), e),
        }
    }
    Written { bytes, count, unseen, cuts }
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
        Unseen(Some(Box::new((error, open.path().to_owned()))))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        if let Some((error, path)) = self.0.as_deref() {
            say!(
                "failed to write `{}`: {error}; call `flush` before the file is dropped to get such an error",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_a_clone_is_about_to_move_stays_where_it_is() {
        let path = std::env::temp_dir().join(format!("mini-turn-{}", std::process::id()));
        std::fs::write(&path, "content").unwrap();
        let (open, mut buf) = (Open::new(File::open(&path).unwrap(), path.clone(), false), [0; 4]);
        let mut stream = Stream::default();
        let fetched = || fetch(&open, 4, open.cuts()).unwrap();

        let (early, turn) = (fetched(), open.turn());
        assert_eq!(stream.deliver(&open, early, &mut &mut buf[..]).unwrap(), None);
        assert_eq!(stream.read_now(&open, &mut &mut buf[..]), None);
        assert_eq!(open.std().stream_position().unwrap(), 0);
        drop(turn);
        assert_eq!(stream.deliver(&open, fetched(), &mut &mut buf[..]).unwrap(), Some(4));
        assert_eq!((open.std().stream_position().unwrap(), &buf), (4, b"cont"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_read_that_finds_what_a_file_has_just_grown_by_leaves_the_position() {
        let path = std::env::temp_dir().join(format!("mini-grows-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let mut options = crate::fs::calls::OpenOptions::new();
        let file = options.read(true).write(true).open(&path).unwrap();
        let (open, mut buf) = (Open::new(file, path.clone(), false), [0; 8]);
        let (mut stream, empty) = (Stream::default(), look(open.std()).unwrap());
        std::fs::write(&path, "grown").unwrap();
        let fetched = || fetch_after(empty, &open, 8, open.cuts()).unwrap();

        let dropped = fetched();
        assert_eq!(open.std().stream_position().unwrap(), 0, "others find the bytes, too");
        assert_eq!(stream.deliver(&open, fetched(), &mut &mut buf[..]).unwrap(), Some(5));
        assert_eq!((open.std().stream_position().unwrap(), &buf[..5]), (5, &b"grown"[..]));
        assert_eq!(stream.deliver(&open, dropped, &mut &mut buf[..]).unwrap(), None, "they have been read");
        open.std().seek(SeekFrom::Start(0)).unwrap();
        let cut_off = fetched();
        open.set_len(0).unwrap();
        assert_eq!(stream.deliver(&open, cut_off, &mut &mut buf[..]).unwrap(), None);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_a_read_returns_that_moves_no_position_comes_once() {
        let file = File::open("Cargo.toml").unwrap();
        assert_eq!(places(&file, 0, 4), (None, None));
        assert_eq!(places(&file, 0, 0), (None, Some(0)));
    }

    #[test]
    fn a_small_read_moves_nothing_of_what_is_kept() {
        let open = Open::new(File::open("/dev/null").unwrap(), "/dev/null".into(), false);
        let (mut stream, mut byte) = (Stream::default(), [0]);
        stream.keep(b"abc", None, 3);
        let last = std::ptr::from_ref(&stream.kept()[2]);
        assert_eq!((stream.read_now(&open, &mut &mut byte[..]), &byte), (Some(1), b"a"));
        assert_eq!((stream.kept().len(), std::ptr::from_ref(&stream.kept()[1])), (2, last));
    }
}
