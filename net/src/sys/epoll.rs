//! epoll(7) for Linux and Android.
//!
//! Called by `reactor`. An fd is added once, edge-triggered, for both directions, and never modified. The notifier is
//! an eventfd(2), also edge-triggered, that is never read: every write to it is a new edge, so a notification costs its
//! sender one call and the thread that waits none. Deadlines are an [`Alarm`]'s, or else the timeout of
//! epoll_pwait2(2).
//!
//! Rejected: level-triggered registration (an `epoll_ctl` per blocked operation, or a spin).

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use libc::c_int;

use super::alarm::{self, Alarm};
use super::claims::Claims;
use super::{Custody, Event, FINE_WAITS, Token};
use crate::ready::Ready;

/// The events that every fd is added for.
const ALL: c_int = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLET;

/// The events that the notifier is added for.
const NOTIFIER: c_int = libc::EPOLLIN | libc::EPOLLET;

/// `true` if a read that brings less than was asked for has brought all there is, unless an event has reported urgent
/// data.
pub(crate) const SHORT_READS_TELL: bool = true;

/// A wait that ends a year early is one turn without events: no caller notices, and nothing overflows.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Set once the kernel (older than 5.11) or a sandbox has refused epoll_pwait2(2).
static COARSE: AtomicBool = AtomicBool::new(!FINE_WAITS);

pub(crate) struct Poller {
    epoll: OwnedFd,
    notifier: File,
    alarm: Alarm,
    claims: Claims,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        // SAFETY: takes no pointer; every test that turns a reactor runs it.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: takes no pointer; `a_notification_before_the_wait_ends_it` runs it.
        let notifier = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let notifier = File::from(notifier);
        control(&epoll, libc::EPOLL_CTL_ADD, notifier.as_fd(), NOTIFIER, Token::NOTIFIER)?;
        let alarm = Alarm::new(|fd| control(&epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, Token::ALARM));
        Ok(Poller { epoll, notifier, alarm, claims: Claims::default() })
    }

    /// Makes the kernel report what `fd` is ready for at once, and every later change. Returns no readiness.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: Token, custody: Custody) -> io::Result<Ready> {
        let add = || self.control(libc::EPOLL_CTL_ADD, fd, ALL, token);
        self.claims.add(fd.as_raw_fd(), token, custody, add)?;
        Ok(Ready::EMPTY)
    }

    /// Forgets `fd`, which was added for `token`, unless the number now belongs to another fd. Needed although the fd
    /// is closed next: a duplicate would keep the registration alive.
    pub(crate) fn remove(&self, fd: RawFd, token: Token, custody: Custody) {
        self.claims.remove(fd, token, custody, || self.delete(fd));
    }

    fn delete(&self, fd: RawFd) {
        // SAFETY: EPOLL_CTL_DEL reads no event (epoll_ctl(2)), and a number that names no registered file is refused
        // with an error that nobody needs; `stale_event_does_not_wake_the_next_socket` runs it.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }

    /// Fills `events` with what is ready, after at most `timeout`; `None` waits without limit. Never early.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.filled = 0;
        match timeout {
            None => self.wait_for_ever(events),
            Some(limit) if limit.is_zero() => self.look(events),
            Some(limit) => self.wait_until(events, limit),
        }
    }

    fn look(&self, events: &mut Events) -> io::Result<()> {
        events.filled = self.wait_millis(events, 0)?;
        // Where there is room for one event only, the alarm's may have kept another one out.
        if events.take_alarm() && self.alarm.clear() && events.filled == 0 {
            events.filled = self.wait_millis(events, 0)?;
            events.take_alarm();
        }
        Ok(())
    }

    fn wait_for_ever(&self, events: &mut Events) -> io::Result<()> {
        loop {
            events.filled = self.wait_millis(events, -1)?;
            let has_expired = events.take_alarm();
            let is_for_others = has_expired && !self.alarm.clear();
            if !has_expired || events.filled > 0 {
                return Ok(());
            }
            if is_for_others {
                thread::yield_now(); // one of them is on its way up
            }
        }
    }

    /// Waits with the alarm, or by a timeout while another thread has it or where there is none.
    fn wait_until(&self, events: &mut Events, limit: Duration) -> io::Result<()> {
        let mut now = alarm::now();
        let deadline = now + limit.min(A_YEAR).as_nanos() as u64;
        let mut alarm = None;
        while now < deadline {
            alarm = alarm.or_else(|| self.alarm.claim());
            let is_armed = alarm.as_mut().is_some_and(|alarm| alarm.arm(now, deadline));
            events.filled = match is_armed {
                true => self.wait_millis(events, -1)?,
                false => self.wait_timed(events, Duration::from_nanos(deadline - now))?,
            };
            let has_expired = events.take_alarm();
            if let Some(alarm) = alarm.as_mut().filter(|_| has_expired) {
                alarm.clear();
            }
            if !has_expired || events.filled > 0 {
                return Ok(());
            }
            if alarm.is_none() {
                thread::yield_now(); // the waiter with the claim is on its way up
            }
            now = alarm::now();
        }
        Ok(())
    }

    fn wait_timed(&self, events: &mut Events, limit: Duration) -> io::Result<usize> {
        if !COARSE.load(Relaxed) {
            match self.wait_nanos(events, limit) {
                Err(e) if is_refusal(&e) => COARSE.store(true, Relaxed),
                result => return result,
            }
        }
        self.wait_millis(events, rounded_up(limit))
    }

    /// Makes one wait, the current or else the next one, return.
    pub(crate) fn notify(&self) {
        if (&self.notifier).write(&1u64.to_ne_bytes()).is_err() {
            self.notify_without_write();
        }
    }

    /// Used if the write was refused: by a counter at its limit after 2^64 - 2 notifications, or by a sandbox. An
    /// eventfd at that limit is readable, and one below it is writable. So an `EPOLL_CTL_MOD` that also asks for
    /// `EPOLLOUT` reports it at once.
    fn notify_without_write(&self) {
        // Fails only if the write could not have helped either: the descriptors are not ours any more.
        let _ = self.control(libc::EPOLL_CTL_MOD, self.notifier.as_fd(), NOTIFIER | libc::EPOLLOUT, Token::NOTIFIER);
    }

    /// The epoll fd itself, readable when a wait would find something.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn control(&self, call: c_int, fd: BorrowedFd<'_>, interest: c_int, token: Token) -> io::Result<()> {
        control(&self.epoll, call, fd, interest, token)
    }

    fn wait_millis(&self, events: &mut Events, millis: c_int) -> io::Result<usize> {
        let (list, room) = (events.list.as_mut_ptr(), events.room());
        // SAFETY: `list` points to `room` initialised entries that `events` owns and lends to this call alone;
        // `more_events_than_room_arrive_in_several_turns` runs it.
        let filled = check(unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), list, room, millis) })?;
        Ok(filled as usize)
    }

    /// epoll_pwait2(2), called by number because older C libraries have no wrapper.
    fn wait_nanos(&self, events: &mut Events, limit: Duration) -> io::Result<usize> {
        let limit = KernelTime { seconds: limit.as_secs() as i64, nanos: i64::from(limit.subsec_nanos()) };
        let (list, room) = (events.list.as_mut_ptr(), events.room());
        let no_mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: `list` as in `wait_millis`; `limit` has the kernel's layout and outlives the call, which only reads
        // it; a null mask is "leave the signal mask alone", its size then unread.
        // `a_wait_ends_where_no_alarm_is_to_be_had` runs it.
        let filled = unsafe {
            libc::syscall(libc::SYS_epoll_pwait2, self.epoll.as_raw_fd(), list, room, &raw const limit, no_mask, 0usize)
        };
        Ok(check(filled as c_int)? as usize)
    }
}

fn control(epoll: &OwnedFd, call: c_int, fd: BorrowedFd<'_>, interest: c_int, token: Token) -> io::Result<()> {
    let mut event = libc::epoll_event { events: interest as u32, u64: token.to_u64() };
    // SAFETY: both fds are open, as the borrows prove, and `event` outlives the call, which copies it;
    // `a_lazily_registered_read_is_woken_by_data` runs it.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), call, fd.as_raw_fd(), &mut event) })?;
    Ok(())
}

/// The kernel's own `timespec`, 64 bits wide on every machine, unlike the C library's.
#[repr(C)]
struct KernelTime {
    seconds: i64,
    nanos: i64,
}

/// The kernel's answers to one wait.
pub(crate) struct Events {
    list: Box<[libc::epoll_event]>,
    filled: usize,
}

impl Events {
    pub(crate) fn with_capacity(capacity: usize) -> Events {
        let empty = libc::epoll_event { events: 0, u64: 0 };
        let capacity = capacity.clamp(1, 1 << 20);
        Events { list: vec![empty; capacity].into_boxed_slice(), filled: 0 }
    }

    /// Returns the number of answers, with that of the notifier.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// The answer at `at`, or `None` if it is the notifier's.
    pub(crate) fn get(&self, at: usize) -> Option<Event> {
        let libc::epoll_event { events, u64 } = self.list[..self.filled][at];
        let token = Token::from_u64(u64);
        (token != Token::NOTIFIER).then(|| Event { token, ready: translate(events as c_int) })
    }

    /// Removes the alarm's answer; returns whether there was one.
    fn take_alarm(&mut self) -> bool {
        let filled = &self.list[..self.filled];
        let Some(at) = filled.iter().position(|event| Token::from_u64(event.u64) == Token::ALARM) else { return false };
        self.list.copy_within(at + 1..self.filled, at); // the others stay in the order of their arrival
        self.filled -= 1;
        true
    }

    fn room(&self) -> c_int {
        self.list.len() as c_int
    }
}

/// Errors and hang-ups are shown as readable and writable too: the owner learns the cause from its own system call. An
/// error alone does not mean that nothing more will come: a file of sysfs shows one with each change.
fn translate(events: c_int) -> Ready {
    let table = [
        (libc::EPOLLIN, Ready::READABLE),
        (libc::EPOLLOUT, Ready::WRITABLE),
        (libc::EPOLLPRI, Ready::PRIORITY),
        (libc::EPOLLRDHUP, Ready::READABLE | Ready::READ_CLOSED),
        (libc::EPOLLHUP, Ready::CLOSED),
        (libc::EPOLLERR, Ready::READABLE | Ready::WRITABLE | Ready::WRITE_CLOSED | Ready::ERROR),
    ];
    let mut ready = Ready::EMPTY;
    for (bit, means) in table {
        if events & bit != 0 {
            ready |= means;
        }
    }
    ready
}

fn rounded_up(limit: Duration) -> c_int {
    let millis = limit.as_nanos().div_ceil(1_000_000);
    c_int::try_from(millis).unwrap_or(c_int::MAX)
}

/// Old container sandboxes answer EPERM, not ENOSYS, to a call that they have never heard of.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn owned(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just made this fd, so nobody else owns it; `a_dropped_reactor_closes_its_fds` checks that
    // it is closed once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn millis_are_rounded_up_and_saturate() {
        assert_eq!(rounded_up(Duration::from_nanos(1)), 1);
        assert_eq!(rounded_up(Duration::from_millis(7)), 7);
        assert_eq!(rounded_up(Duration::from_micros(7_001)), 8);
        assert_eq!(rounded_up(Duration::MAX), c_int::MAX);
    }

    #[test]
    fn the_coarse_wait_works_where_the_fine_one_is_refused() {
        let poller = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        poller.notify();
        assert_eq!(poller.wait_millis(&mut events, rounded_up(Duration::from_secs(60))).unwrap(), 1);
        assert!(is_refusal(&io::Error::from_raw_os_error(libc::ENOSYS)));
        assert!(!is_refusal(&io::Error::from_raw_os_error(libc::EINTR)));
    }

    #[test]
    fn an_endless_limit_is_one_the_kernel_takes() {
        let poller = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        poller.notify();
        poller.wait(&mut events, Some(Duration::MAX)).unwrap();
        assert_eq!((events.len(), events.get(0)), (1, None));
    }

    /// Waits after a notification, which ends the wait at once: so the alarm stays armed.
    fn notify_and_wait(poller: &Poller, events: &mut Events, limit: Duration) {
        poller.notify();
        poller.wait(events, Some(limit)).unwrap();
        assert_eq!((events.len(), events.get(0)), (1, None));
    }

    #[test]
    fn an_alarm_that_expires_before_the_deadline_is_left_alone() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::with_capacity(4));
        let mut expires_at = |secs| {
            notify_and_wait(&poller, &mut events, Duration::from_secs(secs));
            poller.alarm.expires_at().unwrap()
        };
        let first = expires_at(60);
        assert_eq!(expires_at(3_600), first);
        assert!(expires_at(30) < first);
    }

    #[test]
    fn an_early_expiration_does_not_end_a_wait() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::with_capacity(4));
        for _ in 0..20 {
            notify_and_wait(&poller, &mut events, Duration::from_micros(100));
            let (start, limit) = (Instant::now(), Duration::from_millis(2));
            poller.wait(&mut events, Some(limit)).unwrap();
            assert!(start.elapsed() >= limit);
            assert_eq!(events.len(), 0);
        }
    }

    #[test]
    fn an_early_expiration_does_not_end_a_wait_without_limit() {
        let poller = Poller::new().unwrap();
        notify_and_wait(&poller, &mut Events::with_capacity(4), Duration::from_millis(1));
        let is_notified = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                let mut events = Events::with_capacity(4);
                poller.wait(&mut events, None).unwrap();
                assert!(is_notified.load(Relaxed));
                assert_eq!((events.len(), events.get(0)), (1, None));
            });
            while poller.alarm.expires_at().is_some() {
                thread::yield_now();
            }
            is_notified.store(true, Relaxed);
            poller.notify();
        });
    }

    #[test]
    fn a_look_does_not_take_the_expiration_from_a_waiter() {
        let poller = Poller::new().unwrap();
        let limit = Some(Duration::from_micros(200));
        for _ in 0..100 {
            thread::scope(|threads| {
                let waiter = threads.spawn(|| poller.wait(&mut Events::with_capacity(4), limit).unwrap());
                let mut events = Events::with_capacity(4);
                while !waiter.is_finished() {
                    poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
                    assert_eq!(events.len(), 0);
                }
            });
        }
    }

    #[test]
    fn each_of_several_waiters_waits_until_its_deadline() {
        let poller = Poller::new().unwrap();
        thread::scope(|threads| {
            for micros in [300, 5_000, 1_000, 3_000] {
                let poller = &poller;
                threads.spawn(move || {
                    let (mut events, limit) = (Events::with_capacity(4), Duration::from_micros(micros));
                    for _ in 0..10 {
                        let start = Instant::now();
                        poller.wait(&mut events, Some(limit)).unwrap();
                        assert!(start.elapsed() >= limit);
                        assert_eq!(events.len(), 0);
                    }
                });
            }
        });
    }

    #[test]
    fn a_waiter_claims_the_alarm_when_it_sees_the_expiration_of_one_that_has_left() {
        let poller = Poller::new().unwrap();
        thread::scope(|threads| {
            let mut claim = poller.alarm.claim().unwrap();
            let waiter = threads.spawn(|| {
                poller.wait(&mut Events::with_capacity(4), Some(Duration::from_secs(60))).unwrap();
            });
            let due = alarm::now() + 1_000_000;
            while alarm::now() < due {
                thread::yield_now(); // most of the time it waits by then, without the claim
            }
            assert!(claim.arm(0, due));
            drop(claim);
            while let Some(free) = poller.alarm.claim() {
                drop(free);
                thread::yield_now();
            }
            poller.notify();
            waiter.join().unwrap();
        });
    }

    #[test]
    fn an_expiration_is_cleared() {
        let poller = Poller::new().unwrap();
        poller.wait(&mut Events::with_capacity(4), Some(Duration::from_micros(100))).unwrap();
        let mut events = Events::with_capacity(4);
        assert_eq!(poller.wait_millis(&mut events, 0).unwrap(), 0);
    }

    #[test]
    fn an_expiration_does_not_keep_an_event_out() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::with_capacity(1));
        let mut claim = poller.alarm.claim().unwrap();
        assert!(claim.arm(0, 1), "a deadline long ago");
        drop(claim);
        poller.notify();
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!((events.len(), events.get(0)), (1, None));
        assert_eq!(poller.wait_millis(&mut events, 0).unwrap(), 0, "a look clears the expiration, too");
    }

    #[test]
    fn a_wait_ends_where_no_alarm_is_to_be_had() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::with_capacity(4));
        poller.alarm.take();
        let (start, limit) = (Instant::now(), Duration::from_millis(2));
        poller.wait(&mut events, Some(limit)).unwrap();
        assert!(start.elapsed() >= limit && events.len() == 0);
        poller.notify();
        poller.wait(&mut events, Some(Duration::MAX)).unwrap();
        assert_eq!((events.len(), events.get(0)), (1, None));
    }

    #[test]
    fn the_alarm_is_taken_out_of_the_events() {
        let mut events = Events::with_capacity(4);
        for (at, token) in [Token::NOTIFIER, Token::ALARM, Token { index: 7, generation: 0 }].into_iter().enumerate() {
            events.list[at] = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token.to_u64() };
        }
        events.filled = 3;
        assert!(events.take_alarm());
        assert_eq!((events.len(), events.get(0)), (2, None));
        assert_eq!(events.get(1).unwrap().token.index, 7);
        assert!(!events.take_alarm());
    }

    #[test]
    fn a_notifier_that_cannot_be_written_ends_a_wait() {
        let poller = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        let mut wait = |limit| {
            poller.wait(&mut events, Some(limit)).unwrap();
            (events.len(), (events.len() == 1).then(|| events.get(0)))
        };
        for _ in 0..3 {
            poller.notify_without_write();
            assert_eq!(wait(Duration::from_secs(60)), (1, Some(None)));
            assert_eq!(wait(Duration::ZERO), (0, None), "and once");
            poller.notify();
            assert_eq!(wait(Duration::from_secs(60)), (1, Some(None)), "the usual way goes on");
        }
    }

    #[test]
    fn a_full_notifier_ends_a_wait() {
        let poller = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        (&poller.notifier).write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        poller.wait(&mut events, None).unwrap();
        poller.notify();
        poller.wait(&mut events, None).unwrap();
        assert_eq!((events.len(), events.get(0)), (1, None));
    }

    #[test]
    fn a_hang_up_is_readable_and_writable() {
        let ready = translate(libc::EPOLLHUP);
        assert!(ready.is_readable() && ready.is_writable());
        assert!(ready.is_read_closed() && ready.is_write_closed());
        assert!(!translate(libc::EPOLLIN | libc::EPOLLRDHUP).is_write_closed());
    }
}
