use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::*;
use crate::kind::sealed::Kind;
use crate::ready::Ready;
use crate::tests::rig::{NO_DELAY, Task, alone, is_shut_down};
use crate::{Blocking, Events, Interest, UnixStream, enter};

/// Runs `f` on this thread, which works for `reactor` meanwhile.
fn within<R>(reactor: &Reactor, f: impl FnOnce() -> R) -> R {
    let pool: Blocking = Arc::new(|_| {});
    let _entered = enter(reactor, &pool, NO_DELAY);
    f()
}

/// One poll of a read, which has to wait.
fn wait(stream: &UnixStream, times: usize) {
    for _ in 0..times {
        assert!(poll_read(stream, &Task::new()).is_pending());
    }
}

fn poll_read(stream: &UnixStream, task: &Arc<Task>) -> Poll<io::Result<()>> {
    stream.poll_read_ready(&mut Context::from_waker(&task.waker()))
}

/// How many events there are now.
fn turn(reactor: &Reactor) -> usize {
    reactor.turn(&mut Events::new(), Some(Duration::ZERO)).unwrap()
}

fn two() -> [Reactor; 2] {
    [(); 2].map(|()| Reactor::new().unwrap())
}

fn counts(reactors: &[Reactor; 2]) -> [usize; 2] {
    reactors.each_ref().map(Reactor::registrations)
}

#[test]
fn a_socket_stays_with_its_runtime_while_that_lives() {
    let reactors = two();
    let [old, new] = &reactors;
    let (_a, b) = UnixStream::pair().unwrap();
    within(old, || wait(&b, 1));
    within(new, || wait(&b, 100));
    assert_eq!(counts(&reactors), [1, 0]);
}

#[test]
fn an_event_on_its_way_at_the_old_reactor_comes_again_at_the_new_one() {
    let [old, new] = two();
    let (a, b) = UnixStream::pair().unwrap();
    let registration = old.register(b.as_fd(), Custody::Ours, Ready::EMPTY).unwrap();
    turn(&old);
    let (task, mut woken) = (Task::new(), 0);
    let waker = task.waker();
    let polled = registration.slot().poll_ready(&mut Context::from_waker(&waker), Interest::READABLE, None);
    assert!(polled.is_pending());
    a.try_write(b"x").unwrap();

    // The kernel has reported it to the old reactor, and will not again.
    let mut events = Events::new();
    old.0.poller.wait(&mut events.events, None).unwrap();
    registration.move_to(new.clone(), b.as_fd()).unwrap();
    woken += old.dispatch(&mut events);
    assert_eq!((woken, task.wakes()), (0, 0), "its token is stale");
    assert!(turn(&new) > 0, "an event, or one for each direction");
    assert_eq!(task.wakes(), 1);
    assert!(registration.slot().seen().ready().is_readable());
}

#[test]
fn an_entry_that_cannot_move_goes_on_where_it_is() {
    let reactors = two();
    let [old, new] = &reactors;
    let (a, b) = UnixStream::pair().unwrap();
    // The same fd under the same number, so that the new reactor refuses it.
    let twin = new.register(b.as_fd(), Custody::Ours, Ready::EMPTY).unwrap();
    let registration = old.register(b.as_fd(), Custody::Ours, Ready::EMPTY).unwrap();
    let refused = registration.move_to(new.clone(), b.as_fd()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let exchanged = registration.move_to(new.clone(), a.as_fd()).unwrap_err();
    assert_eq!(exchanged.kind(), ErrorKind::InvalidInput);
    assert_eq!(counts(&reactors), [1, 1]);
    turn(old);
    a.try_write(b"x").unwrap();
    assert_eq!(turn(old), 1);
    assert!(registration.slot().seen().ready().is_readable());
    drop(twin);
    registration.move_to(new.clone(), b.as_fd()).unwrap();
    assert_eq!(counts(&reactors), [0, 1]);
}

#[test]
fn a_wait_goes_on_in_a_living_runtime_when_that_of_the_socket_ends() {
    let reactors = two();
    let [old, new] = &reactors;
    let (a, b) = UnixStream::pair().unwrap();
    let (task, mut buf) = (Task::new(), [0; 8]);
    let mut read = pin!(b.read(&mut buf));
    within(old, || assert!(task.poll(read.as_mut()).is_pending()));
    old.shutdown();
    assert_eq!(task.wakes(), 1);
    assert!(is_shut_down(&poll_read(&b, &task)), "nobody would tell of anything, outside of a runtime");
    assert!(is_shut_down(&within(old, || poll_read(&b, &task))));
    within(new, || assert!(task.poll(read.as_mut()).is_pending()));
    assert_eq!(counts(&reactors), [0, 1]);
    turn(new);
    a.try_write(b"ping").unwrap();
    let before = task.wakes();
    assert_eq!((turn(new), task.wakes()), (1, before + 1));
    assert!(matches!(task.poll(read.as_mut()), Poll::Ready(Ok(4))));
    // When the second reactor ends too, so do the waits.
    assert_eq!(b.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    within(new, || wait(&b, 1));
    new.shutdown();
    assert!(is_shut_down(&within(new, || poll_read(&b, &task))));
    assert!(is_shut_down(&within(old, || poll_read(&b, &task))));
}

#[test]
fn readiness_without_an_operation_survives_the_end_of_a_runtime() {
    let [old, new] = two();
    let (a, b) = UnixStream::pair().unwrap();
    let task = Task::new();
    let mut readable = pin!(b.readable());
    within(&old, || assert!(task.poll(readable.as_mut()).is_pending()));
    old.shutdown();
    a.try_write(b"x").unwrap();
    within(&new, || assert!(task.poll(readable.as_mut()).is_pending(), "the new one has not been asked yet"));
    assert!(turn(&new) > 0);
    assert!(matches!(task.poll(readable.as_mut()), Poll::Ready(Ok(()))));
}

/// The user closes the fd of an entry, and the next entry, with `custody`, gets its number. Needs a process of its own,
/// where the lowest number is the next.
fn exchanged(reactor: &Reactor, custody: Custody) -> (Registration, Registration, [StdUnixStream; 2]) {
    let (first, _other) = StdUnixStream::pair().unwrap();
    let number = first.as_raw_fd();
    let former = reactor.register(first.as_fd(), Custody::Users, Ready::EMPTY).unwrap();
    drop(first);
    let (a, b) = StdUnixStream::pair().unwrap();
    assert_eq!(a.as_raw_fd(), number);
    let next = reactor.register(a.as_fd(), custody, Ready::EMPTY).unwrap();
    turn(reactor);
    (former, next, [a, b])
}

/// Returns `true` if the reactor reports new data to `registration`.
fn is_told(reactor: &Reactor, registration: &Registration, mut peer: &StdUnixStream) -> bool {
    let slot = registration.slot();
    slot.clear(slot.seen(), Ready::ALL);
    peer.write_all(b"x").unwrap();
    turn(reactor);
    slot.seen().ready().is_readable()
}

#[test]
fn an_entry_that_ends_leaves_alone_who_has_its_number_by_now() {
    let name = "reactor::registration::tests::an_entry_that_ends_leaves_alone_who_has_its_number_by_now";
    alone(name, 256, || {
        for custody in [Custody::Ours, Custody::Users] {
            let reactor = Reactor::new().unwrap();
            let (former, next, [a, b]) = exchanged(&reactor, custody);
            drop(former);
            assert!(is_told(&reactor, &next, &b));
            let refused = reactor.register(a.as_fd(), Custody::Ours, Ready::EMPTY).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
            drop(next);
            let again = reactor.register(a.as_fd(), custody, Ready::EMPTY).unwrap();
            assert!(is_told(&reactor, &again, &b), "the one in between is gone for good");
        }
    });
}

#[test]
fn an_entry_that_moves_leaves_alone_who_has_its_number_by_now() {
    let name = "reactor::registration::tests::an_entry_that_moves_leaves_alone_who_has_its_number_by_now";
    alone(name, 256, || {
        for custody in [Custody::Ours, Custody::Users] {
            let [old, new] = two();
            let (former, next, [a, b]) = exchanged(&old, custody);
            former.move_to(new.clone(), a.as_fd()).unwrap();
            assert!(is_told(&old, &next, &b));
            assert!(is_told(&new, &former, &b), "which is its own fd there");
            drop(former);
            assert!(is_told(&old, &next, &b));
            let again = new.register(a.as_fd(), custody, Ready::EMPTY).unwrap();
            assert!(is_told(&new, &again, &b), "it has left the new one");
        }
    });
}

#[test]
fn who_is_refused_takes_no_number_from_its_owner() {
    let reactor = Reactor::new().unwrap();
    let (a, b) = StdUnixStream::pair().unwrap();
    for custody in [Custody::Ours, Custody::Users] {
        let owner = reactor.register(a.as_fd(), custody, Ready::EMPTY).unwrap();
        for other in [Custody::Ours, Custody::Users] {
            let refused = reactor.register(a.as_fd(), other, Ready::EMPTY).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        }
        assert!(is_told(&reactor, &owner, &b));
        drop(owner);
        assert_eq!(reactor.registrations(), 0);
        assert!(reactor.register(a.as_fd(), custody, Ready::EMPTY).is_ok());
    }
}

/// Moves an entry while one of the two reactors shuts down; returns whether it was moved, and is marked.
///
/// The end comes `delay` loops after the start of the move, or before it: the window that matters is short.
fn move_beside_an_end(ends: usize, is_refused: bool, delay: usize) -> (bool, bool) {
    let reactors = two();
    let [old, new] = &reactors;
    let (_a, b) = StdUnixStream::pair().unwrap();
    let _twin = is_refused.then(|| new.register(b.as_fd(), Custody::Ours, Ready::EMPTY).unwrap());
    let registration = old.register(b.as_fd(), Custody::Ours, Ready::EMPTY).unwrap();
    let here = AtomicUsize::new(0);
    let meet = || {
        here.fetch_add(1, SeqCst);
        for looks in 0.. {
            match here.load(SeqCst) {
                2 => break,
                _ if looks < 1_000 => std::hint::spin_loop(),
                _ => thread::yield_now(), // the other one waits for this processor
            }
        }
    };
    let moved = thread::scope(|threads| {
        threads.spawn(|| {
            meet();
            (0..delay).for_each(|_| std::hint::spin_loop());
            reactors[ends].shutdown();
        });
        meet();
        registration.move_to(new.clone(), b.as_fd())
    });
    (moved.is_ok(), registration.slot().seen().ready().is_shut_down())
}

#[test]
fn an_end_beside_a_move_is_the_end_only_where_the_entry_comes_to_be() {
    for round in 0..1_000 {
        let delay = round % 100;
        assert_eq!(move_beside_an_end(0, false, delay), (true, false), "the new one lives");
        let (is_moved, is_marked) = move_beside_an_end(1, false, delay);
        assert_eq!(is_moved, is_marked, "it is at the old one, which lives, or else shares the end");
        assert_eq!(move_beside_an_end(1, true, delay), (false, false), "the old one lives");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread on a future; other threads turn the reactors.
fn block_on<F: Future>(future: F) -> F::Output {
    const HANG: Duration = Duration::from_secs(20);
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let start = Instant::now();
        thread::park_timeout(HANG);
        if start.elapsed() >= HANG {
            eprintln!("a wake was lost");
            std::process::abort(); // the other threads would go on for ever
        }
    }
}

#[test]
fn no_byte_is_lost_while_a_socket_moves_all_the_time() {
    const LEN: usize = 1 << 20;
    let reactors = two();
    let (a, b) = UnixStream::pair().unwrap();
    let (done, moves) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|threads| {
        for reactor in &reactors {
            threads.spawn(|| {
                let mut events = Events::new();
                while !done.load(SeqCst) {
                    reactor.turn(&mut events, None).unwrap();
                }
            });
        }
        within(&reactors[0], || wait(&b, 1));
        threads.spawn(|| {
            for round in 0.. {
                if done.load(SeqCst) {
                    break;
                }
                b.source().registration().unwrap().move_to(reactors[round % 2].clone(), b.as_fd()).unwrap();
                moves.store(round, SeqCst);
                thread::yield_now();
            }
        });
        threads.spawn(|| {
            // One byte at a time, after the last one is gone: every one is an edge that a task waits for.
            for i in 0..2_000usize {
                within(&reactors[0], || block_on(b.write_all(&[i as u8])).unwrap());
                let mut byte = [!(i as u8)];
                within(&reactors[0], || block_on(b.read_exact(&mut byte)).unwrap());
                assert_eq!(byte, [i as u8]);
            }
            let mut sum = 0;
            let mut buf = [0; 777];
            while sum < LEN {
                sum += within(&reactors[0], || block_on(b.read(&mut buf)).unwrap());
            }
            assert_eq!(sum, LEN);
            done.store(true, SeqCst);
            reactors.iter().for_each(Reactor::notify);
        });
        let mut echo = within(&reactors[1], || a.into_std().unwrap());
        let mut byte = [0];
        for _ in 0..2_000 {
            io::Read::read_exact(&mut echo, &mut byte).unwrap();
            echo.write_all(&byte).unwrap();
        }
        echo.write_all(&vec![7; LEN]).unwrap();
    });
    assert!(moves.load(SeqCst) > 0);
}
