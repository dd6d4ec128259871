//! Queues: what each has been asked for, and how it is waited for.
//!
//! The queue's descriptor is an epoll instance. In it are two more, level-triggered, one per direction, and an
//! eventfd(2) for `EVFILT_USER`. The instance of a direction has the descriptors, edge-triggered for `EV_CLEAR`.
//!
//! The hard part is an event that was on its way when its filter was removed: each filter has a number of its own,
//! which travels with the event, and an event without its filter is dropped.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libc::{c_int, epoll_event};

use super::{
    EV_ADD, EV_CLEAR, EV_DELETE, EV_ENABLE, EV_EOF, EV_ERROR, EV_RECEIPT, EVFILT_READ, EVFILT_USER, EVFILT_WRITE,
    NOTE_TRIGGER, close, kevent, mean,
};

/// The error that stands for any error of a socket: Linux tells the real one only once, and its owner needs that.
const SOME_ERROR: u32 = libc::ECONNRESET as u32;

/// The data of the outer instance's events: which of the three inner descriptors it is.
const NOTIFIER: u64 = 2;

struct Queue {
    /// For `EVFILT_READ` and `EVFILT_WRITE`.
    directions: [RawFd; 2],
    notifier: RawFd,
    // No hash map: it would draw random numbers, on threads whose random numbers come from a seed.
    filters: BTreeMap<(RawFd, i16), Filter>,
    user: Option<(usize, *mut c_void)>,
}

#[derive(Clone, Copy)]
struct Filter {
    udata: *mut c_void,
    number: u32,
    /// The flags for epoll_ctl(2).
    events: c_int,
    is_pipe: bool,
    is_udp: bool,
    was_told: bool,
}

#[derive(Default)]
struct Queues {
    open: BTreeMap<RawFd, Queue>,
    filters: u32,
}

// SAFETY: the pointers are the caller's, and never followed.
unsafe impl Send for Queues {}

static QUEUES: LazyLock<Mutex<Queues>> = LazyLock::new(Mutex::default);

pub(super) fn open() -> Result<RawFd, c_int> {
    close::begin();
    // SAFETY: takes no pointer.
    let made = [(); 3].map(|()| unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
    // SAFETY: takes no pointer.
    let notifier = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    let [outer, directions @ ..] = made;
    if made.contains(&-1) || notifier < 0 {
        made.into_iter().chain([notifier]).filter(|&fd| fd >= 0).for_each(close::close_now);
        return Err(libc::EMFILE);
    }
    control(outer, libc::EPOLL_CTL_ADD, notifier, libc::EPOLLIN | libc::EPOLLET, NOTIFIER)?;
    for (at, fd) in directions.into_iter().enumerate() {
        control(outer, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, at as u64)?;
    }
    queues().open.insert(outer, Queue { directions, notifier, filters: BTreeMap::new(), user: None });
    Ok(outer)
}

/// Applies changes, and returns the answers to those that want one or have failed, as far as there is room.
pub(super) fn apply(queue: RawFd, changes: &[kevent], room: usize) -> Result<Vec<kevent>, c_int> {
    let mut answers = Vec::new();
    let mut queues = queues();
    for change in changes {
        let result = queues.change(queue, change);
        if result.is_ok() && change.flags & EV_RECEIPT == 0 {
            continue;
        }
        let error = result.err().unwrap_or(0);
        if answers.len() == room {
            return if error == 0 { Ok(answers) } else { Err(error) };
        }
        answers.push(kevent { flags: change.flags | EV_ERROR, data: i64::from(error), ..*change });
    }
    if queues.open.contains_key(&queue) { Ok(answers) } else { Err(libc::EBADF) }
}

/// Waits for events: at most `room`, which is not 0. None of them when the time is over.
pub(super) fn wait(queue: RawFd, room: usize, limit: Option<Duration>) -> Result<Vec<kevent>, c_int> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let woken = epoll_wait(queue, 3, left)?;
        let mut events = Vec::new();
        // The notifier is edge-triggered, so it must not be left for later.
        if woken.iter().any(|event| event.u64 == NOTIFIER) {
            events.extend(queues().user_event(queue));
        }
        for event in woken.iter().filter(|event| event.u64 != NOTIFIER) {
            let filter = if event.u64 == 0 { EVFILT_READ } else { EVFILT_WRITE };
            collect(queue, filter, room, &mut events)?;
        }
        if !events.is_empty() || woken.is_empty() || left == Some(Duration::ZERO) {
            return Ok(events);
        }
    }
}

/// Removes all that has to do with `fd`, which is going to be closed.
pub(super) fn forget(fd: RawFd) {
    mean::forget(fd);
    let mut queues = queues();
    for queue in queues.open.values_mut() {
        for filter in [EVFILT_READ, EVFILT_WRITE] {
            if queue.filters.remove(&(fd, filter)).is_some() {
                let _ = control(queue.instance(filter), libc::EPOLL_CTL_DEL, fd, 0, 0);
            }
        }
    }
    if let Some(Queue { directions: [read, write], notifier, .. }) = queues.open.remove(&fd) {
        [read, write, notifier].into_iter().for_each(close::close_now);
    }
}

impl Queues {
    fn change(&mut self, queue: RawFd, change: &kevent) -> Result<(), c_int> {
        if change.flags & !(EV_ADD | EV_DELETE | EV_ENABLE | EV_CLEAR | EV_RECEIPT) != 0 {
            return Err(libc::EINVAL);
        }
        match change.filter {
            EVFILT_USER => self.change_user(queue, change),
            EVFILT_READ | EVFILT_WRITE => self.change_filter(queue, change),
            _ => Err(libc::EINVAL),
        }
    }

    fn change_user(&mut self, queue: RawFd, change: &kevent) -> Result<(), c_int> {
        if std::env::var_os("MINI_KQUEUE_NO_USER").is_some() {
            return Err(libc::EINVAL);
        }
        let queue = self.open.get_mut(&queue).ok_or(libc::EBADF)?;
        let is_there = queue.user.is_some_and(|(ident, _)| ident == change.ident);
        if change.flags & EV_DELETE != 0 {
            return queue.user.take_if(|_| is_there).map(drop).ok_or(libc::ENOENT);
        }
        if !is_there && change.flags & EV_ADD == 0 {
            return Err(libc::ENOENT);
        }
        queue.user = Some((change.ident, change.udata));
        if change.fflags & NOTE_TRIGGER != 0 {
            let one = 1u64;
            // SAFETY: eight bytes are read, which `one` has.
            unsafe { libc::write(queue.notifier, (&raw const one).cast(), 8) };
        }
        Ok(())
    }

    fn change_filter(&mut self, queue: RawFd, change: &kevent) -> Result<(), c_int> {
        let is_queue = self.open.contains_key(&(change.ident as RawFd));
        let queue = self.open.get_mut(&queue).ok_or(libc::EBADF)?;
        let (fd, filter) = (change.ident as RawFd, change.filter);
        let status = status(fd)?;
        let (key, instance) = ((fd, filter), queue.instance(filter));
        if change.flags & EV_DELETE != 0 {
            queue.filters.remove(&key).ok_or(libc::ENOENT)?;
            return control(instance, libc::EPOLL_CTL_DEL, fd, 0, 0);
        }
        if change.flags & EV_ADD == 0 {
            let known = queue.filters.get_mut(&key).ok_or(libc::ENOENT)?;
            known.udata = change.udata;
            if !mean::is_on() || change.flags & EV_ENABLE == 0 {
                return Ok(());
            }
            known.was_told = false;
            return control(instance, libc::EPOLL_CTL_MOD, fd, known.events, known.data(fd));
        }
        let is_pipe = status.st_mode & libc::S_IFMT == libc::S_IFIFO;
        let (before, operation) = match queue.filters.get(&key) {
            Some(known) => (Some(known.number), libc::EPOLL_CTL_MOD),
            None => (None, libc::EPOLL_CTL_ADD),
        };
        if filter == EVFILT_WRITE && is_queue {
            return Err(libc::EINVAL);
        }
        if filter == EVFILT_WRITE && is_pipe && before.is_none() && has_no_reader(fd) {
            return Err(if mean::is_on() { libc::EBADF } else { libc::EPIPE });
        }
        let number = before.unwrap_or_else(|| {
            self.filters = self.filters.wrapping_add(1);
            self.filters
        });
        let direction = if filter == EVFILT_READ { libc::EPOLLIN | libc::EPOLLRDHUP } else { libc::EPOLLOUT };
        let edge = if change.flags & EV_CLEAR != 0 { libc::EPOLLET } else { 0 };
        let (events, is_udp) = (direction | edge, mean::is_udp(fd));
        let known = Filter { udata: change.udata, number, events, is_pipe, is_udp, was_told: false };
        control(instance, operation, fd, events, known.data(fd))?;
        queue.filters.insert(key, known);
        Ok(())
    }

    fn user_event(&self, queue: RawFd) -> Option<kevent> {
        let (ident, udata) = self.open.get(&queue)?.user?;
        let event = kevent { ident, filter: EVFILT_USER, flags: EV_CLEAR, fflags: NOTE_TRIGGER, data: 0, udata };
        Some(mean::written(event))
    }

    /// Turns an event of epoll into an event of a filter, if the filter is still there.
    fn event(&mut self, queue: RawFd, filter: i16, event: epoll_event) -> Option<kevent> {
        let (fd, number) = (event.u64 as u32 as RawFd, (event.u64 >> 32) as u32);
        let known = self.open.get_mut(&queue)?.filters.get_mut(&(fd, filter)).filter(|known| known.number == number)?;
        let has = |bits: c_int| event.events as c_int & bits != 0;
        let has_no_reader = known.is_pipe && has(libc::EPOLLERR);
        let is_over = match filter {
            EVFILT_READ => has(libc::EPOLLRDHUP | libc::EPOLLHUP) || mean::is_on() && has_no_reader,
            _ => has(libc::EPOLLHUP) || has_no_reader || mean::has_ended(fd),
        };
        let is_kept_back =
            filter == EVFILT_WRITE && (has_no_reader || known.is_udp && known.was_told && !has(libc::EPOLLERR));
        if mean::is_on() && is_kept_back {
            return None;
        }
        known.was_told = true;
        let fflags = if is_over && !known.is_pipe && has(libc::EPOLLERR) { SOME_ERROR } else { 0 };
        let flags = EV_CLEAR | if is_over { EV_EOF } else { 0 };
        Some(mean::written(kevent { ident: fd as usize, filter, flags, fflags, data: 0, udata: known.udata }))
    }
}

impl Filter {
    /// The data of its events: the number, and the descriptor.
    fn data(&self, fd: RawFd) -> u64 {
        u64::from(self.number) << 32 | fd as u64
    }
}

impl Queue {
    fn instance(&self, filter: i16) -> RawFd {
        self.directions[usize::from(filter != EVFILT_READ)]
    }
}

/// The events of one filter, while there is room.
fn collect(queue: RawFd, filter: i16, room: usize, events: &mut Vec<kevent>) -> Result<(), c_int> {
    let instance = queues().open.get(&queue).ok_or(libc::EBADF)?.instance(filter);
    let found = match room - events.len() {
        0 => return Ok(()),
        room => epoll_wait(instance, room, Some(Duration::ZERO))?,
    };
    let mut queues = queues();
    events.extend(found.into_iter().filter_map(|event| queues.event(queue, filter, event)));
    Ok(())
}

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn control(epoll: RawFd, operation: c_int, fd: RawFd, events: c_int, data: u64) -> Result<(), c_int> {
    let mut event = epoll_event { events: events as u32, u64: data };
    // SAFETY: `event` outlives the call, which copies it.
    check(unsafe { libc::epoll_ctl(epoll, operation, fd, &mut event) }).map(drop)
}

fn epoll_wait(epoll: RawFd, room: usize, limit: Option<Duration>) -> Result<Vec<epoll_event>, c_int> {
    let mut list = vec![epoll_event { events: 0, u64: 0 }; room];
    let limit = limit.map(|limit| [limit.as_secs() as i64, i64::from(limit.subsec_nanos())]);
    let limit = limit.as_ref().map_or(ptr::null(), |limit| limit.as_ptr());
    let (events, no_mask) = (list.as_mut_ptr(), ptr::null::<libc::sigset_t>());
    // SAFETY: there is room for `room` events, and `limit` is null or two numbers of 64 bits, as the kernel has them.
    let filled = unsafe { libc::syscall(libc::SYS_epoll_pwait2, epoll, events, room, limit, no_mask, 0usize) };
    list.truncate(check(filled as c_int)? as usize);
    Ok(list)
}

fn status(fd: RawFd) -> Result<libc::stat, c_int> {
    let mut status = MaybeUninit::uninit();
    // SAFETY: there is room for a status.
    check(unsafe { libc::fstat(fd, status.as_mut_ptr()) })?;
    // SAFETY: filled, as the call has succeeded.
    Ok(unsafe { status.assume_init() })
}

fn has_no_reader(pipe: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: pipe, events: 0, revents: 0 };
    // SAFETY: one entry, which outlives the call.
    unsafe { libc::poll(&mut asked, 1, 0) };
    asked.revents & libc::POLLERR != 0
}

pub(super) fn check(result: c_int) -> Result<c_int, c_int> {
    if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) } else { Ok(result) }
}
