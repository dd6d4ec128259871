use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use super::*;
use crate::kind::sealed::Kind;
use crate::ready::Ready;
use crate::tests::rig::{NO_DELAY, Task, TempPath, alone, is_shut_down};
use crate::{Blocking, Events, UnixListener, UnixStream, enter};

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
fn a_socket_belongs_to_the_runtime_in_which_it_is_made() {
    let reactors = two();
    let [first, second] = &reactors;
    let (a, b) = within(first, || UnixStream::pair().unwrap());
    within(second, || wait(&b, 100));
    wait(&a, 1); // in none
    assert_eq!(counts(&reactors), [2, 0]);
}

#[test]
fn a_socket_made_outside_belongs_to_the_runtime_of_its_first_wait() {
    let reactors = two();
    let [first, second] = &reactors;
    let (_a, b) = UnixStream::pair().unwrap();
    within(first, || wait(&b, 1));
    within(second, || wait(&b, 100));
    assert_eq!(counts(&reactors), [1, 0]);
}

#[test]
fn a_connection_belongs_to_the_runtime_that_accepts_or_makes_it() {
    let reactors = two();
    let [first, second] = &reactors;
    let path = TempPath::new("accepted");
    let listener = within(first, || UnixListener::bind(&path.0).unwrap());
    let (task, mut connect) = (Task::new(), pin!(UnixStream::connect(&path.0)));
    let Poll::Ready(Ok(client)) = within(second, || task.poll(connect.as_mut())) else { panic!("there is room") };
    let mut accept = pin!(listener.accept());
    let Poll::Ready(Ok((server, _))) = within(second, || task.poll(accept.as_mut())) else { panic!("it is there") };
    within(first, || {
        wait(&client, 1);
        wait(&server, 1);
        assert!(task.poll(pin!(listener.accept())).is_pending());
    });
    assert_eq!(counts(&reactors), [1, 2]);
}

#[test]
fn a_wait_in_another_runtime_is_ended_by_the_reactor_of_the_socket() {
    let [first, second] = two();
    let (a, b) = within(&first, || UnixStream::pair().unwrap());
    let (task, mut buf) = (Task::new(), [0; 8]);
    let mut read = pin!(b.read(&mut buf));
    within(&second, || assert!(task.poll(read.as_mut()).is_pending()));
    turn(&first);
    let before = task.wakes();
    a.try_write(b"ping").unwrap();
    assert_eq!((turn(&second), task.wakes()), (0, before));
    assert_eq!((turn(&first), task.wakes()), (1, before + 1));
    assert!(matches!(within(&second, || task.poll(read.as_mut())), Poll::Ready(Ok(4))));
}

#[test]
fn every_wait_fails_after_the_end_of_the_runtime() {
    let reactors = two();
    let [first, second] = &reactors;
    let (a, b) = within(first, || UnixStream::pair().unwrap());
    let (_c, unregistered) = within(first, || UnixStream::pair().unwrap());
    let task = Task::new();
    let (mut buf, mut readable) = ([0; 8], Box::pin(b.readable()));
    let mut read = Box::pin(b.read(&mut buf));
    within(second, || assert!(task.poll(read.as_mut()).is_pending() && task.poll(readable.as_mut()).is_pending()));
    first.shutdown();
    assert_eq!(task.wakes(), 2);
    assert!(is_shut_down(&within(second, || task.poll(read.as_mut()))), "a wait in another runtime");
    assert!(is_shut_down(&task.poll(readable.as_mut())), "a wait in none");
    drop((readable, read));
    for socket in [&b, &unregistered] {
        for reactor in [first, second] {
            assert!(is_shut_down(&within(reactor, || poll_read(socket, &task))));
            assert!(is_shut_down(&within(reactor, || task.poll(pin!(socket.read(&mut [0; 8]))))));
        }
        assert!(is_shut_down(&poll_read(socket, &task)));
    }

    a.try_write(b"ping").unwrap();
    assert!(matches!(task.poll(pin!(b.read(&mut [0; 8]))), Poll::Ready(Ok(4))), "what need not wait still works");
    assert_eq!(counts(&reactors), [1, 0], "the one that has waited");
    let b = within(second, || UnixStream::from_std(b.into_std().unwrap()).unwrap());
    assert_eq!(counts(&reactors), [0, 0]);
    within(second, || wait(&b, 1));
    assert_eq!(counts(&reactors), [0, 1], "it may begin anew");
    turn(second);
    let before = task.wakes();
    assert!(poll_read(&b, &task).is_pending());
    a.try_write(b"pong").unwrap();
    assert_eq!((turn(second), task.wakes()), (1, before + 1));
}

#[test]
fn a_socket_that_has_never_waited_keeps_no_reactor_open() {
    let [first, second] = two();
    let (_a, b) = within(&first, || UnixStream::pair().unwrap());
    let (c, _d) = within(&first, || UnixStream::pair().unwrap());
    wait(&c, 1);
    drop(first);
    assert!(within(&second, || poll_read(&b, &Task::new())).is_pending(), "the other pair has waited");
    drop((b, c));
    let (_a, b) = within(&second, || UnixStream::pair().unwrap());
    drop(second);
    assert!(is_shut_down(&poll_read(&b, &Task::new())));
}

/// An end beside a wait on another thread: the wait is woken, or fails at once.
#[test]
fn no_wait_outlasts_the_end_of_its_runtime() {
    for round in 0..500 {
        let [first, second] = two();
        let (_a, b) = within(&first, || UnixStream::pair().unwrap());
        if round % 2 == 0 {
            wait(&b, 1); // it is registered
        }
        let (task, start) = (Task::new(), Barrier::new(2));
        let mut readable = pin!(b.readable());
        let polled = thread::scope(|threads| {
            threads.spawn(|| {
                start.wait();
                first.shutdown();
            });
            start.wait();
            within(&second, || task.poll(readable.as_mut()))
        });
        assert!(is_shut_down(&polled) || (polled.is_pending() && task.wakes() > 0));
        assert!(is_shut_down(&poll_read(&b, &task)));
        assert_eq!(b.source().slot().map_or(0, Slot::waiting), 0);
    }
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
