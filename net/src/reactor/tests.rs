use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use super::*;
use crate::UnixStream;
use crate::tests::rig::{Rig, Task, alone};

type Read<'a> = Pin<Box<dyn Future<Output = io::Result<usize>> + 'a>>;

fn read_one(stream: &UnixStream) -> Read<'_> {
    Box::pin(async { stream.read(&mut [0; 1]).await })
}

/// Pairs of streams: a task waits to read the second stream of each.
fn waiting(rig: &mut Rig, pairs: &[(UnixStream, UnixStream)]) -> Vec<Arc<Task>> {
    let tasks = pairs.iter().map(|(_, b)| {
        let task = Task::new();
        assert!(pin!(b.poll_read_ready(&mut std::task::Context::from_waker(&task.waker()))).is_pending());
        task
    });
    let tasks = tasks.collect();
    rig.settle();
    tasks
}

fn pairs(count: usize) -> Vec<(UnixStream, UnixStream)> {
    (0..count).map(|_| UnixStream::pair().unwrap()).collect()
}

#[test]
fn a_notification_before_the_wait_ends_it() {
    let reactor = Reactor::new().unwrap();
    let mut events = Events::new();
    for _ in 0..3 {
        reactor.notify();
        reactor.notify();
        assert_eq!(reactor.turn(&mut events, None).unwrap(), 0);
    }
}

#[test]
fn a_notification_ends_a_blocked_turn() {
    let (reactor, start) = (Reactor::new().unwrap(), Barrier::new(2));
    std::thread::scope(|threads| {
        let turned = threads.spawn(|| {
            start.wait();
            reactor.turn(&mut Events::new(), None)
        });
        start.wait();
        reactor.notify();
        assert_eq!(turned.join().unwrap().unwrap(), 0);
    });
}

#[test]
fn a_turn_waits_at_least_its_timeout() {
    let reactor = Reactor::new().unwrap();
    for micros in [1, 300, 2_500] {
        let (limit, start) = (Duration::from_micros(micros), Instant::now());
        assert_eq!(reactor.turn(&mut Events::new(), Some(limit)).unwrap(), 0);
        assert!(start.elapsed() >= limit, "early by {:?}", limit - start.elapsed());
    }
}

#[test]
fn more_events_than_room_arrive_in_several_turns() {
    let mut rig = Rig::new();
    let pairs = pairs(5);
    let tasks = waiting(&mut rig, &pairs);
    for (a, _) in &pairs {
        a.try_write(b"x").unwrap();
    }
    let mut events = Events::with_capacity(2);
    let counts = [(); 4].map(|()| rig.reactor.turn(&mut events, Some(Duration::ZERO)).unwrap());
    assert_eq!(counts, [2, 2, 1, 0]);
    assert!(tasks.iter().all(|task| task.wakes() == 1));
}

#[test]
fn concurrent_turns_deliver_every_event_once() {
    const SOCKETS: usize = 64;
    let mut rig = Rig::new();
    let pairs = pairs(SOCKETS);
    let tasks = waiting(&mut rig, &pairs);
    let (delivered, start) = (AtomicUsize::new(0), Barrier::new(3));
    let turn = || {
        let mut events = Events::with_capacity(4);
        start.wait();
        while delivered.load(SeqCst) < SOCKETS {
            let more = rig.reactor.turn(&mut events, None).unwrap();
            if delivered.fetch_add(more, SeqCst) + more >= SOCKETS {
                // The other thread may be asleep; the notification ends its wait, or its next turn.
                rig.reactor.notify();
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(turn);
        threads.spawn(turn);
        start.wait();
        for (a, _) in &pairs {
            a.try_write(b"x").unwrap();
        }
    });
    assert_eq!(delivered.load(SeqCst), SOCKETS);
    assert!(tasks.iter().all(|task| task.wakes() == 1));
}

/// A thread that delivers holds the table's lock, as this one does here.
#[test]
fn who_delivers_keeps_nobody_else_from_it() {
    let mut rig = Rig::new();
    let pairs = pairs(1);
    let tasks = waiting(&mut rig, &pairs);
    pairs[0].0.try_write(b"x").unwrap();
    let table = rig.reactor.table();
    std::thread::scope(|threads| {
        let other = threads.spawn(|| rig.reactor.turn(&mut Events::with_capacity(1), None));
        assert_eq!(other.join().unwrap().unwrap(), 1);
    });
    drop(table);
    assert_eq!(tasks[0].wakes(), 1);
}

#[test]
fn stale_event_does_not_wake_the_next_socket() {
    let rig = Rig::new();
    let mut events = Events::new();
    let (old, next) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let (first, second) = (Task::new(), Task::new());
    let mut read = read_one(&old.1);
    assert!(first.poll(read.as_mut()).is_pending());
    old.0.try_write(b"x").unwrap();

    // The kernel has reported on the old socket; before the dispatch, its place has gone to the next one.
    rig.reactor.0.poller.wait(&mut events.events, None).unwrap();
    drop(read);
    drop(old.1);
    let mut read = read_one(&next.1);
    assert!(second.poll(read.as_mut()).is_pending());
    assert_eq!(rig.reactor.registrations(), 1);

    assert_eq!(rig.reactor.dispatch(&mut events), 0);
    assert_eq!((first.wakes(), second.wakes()), (0, 0));
}

#[test]
fn dropping_or_converting_a_socket_removes_it() {
    let rig = Rig::new();
    let (dropped, converted) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    for stream in [&dropped.1, &converted.1] {
        assert!(Task::new().poll(read_one(stream).as_mut()).is_pending());
    }
    assert_eq!(rig.reactor.registrations(), 2);
    drop(dropped);
    assert_eq!(rig.reactor.registrations(), 1);
    let std = converted.1.into_std().unwrap();
    assert_eq!(rig.reactor.registrations(), 0);
    drop(std);
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_asleep() {
    struct Bomb(Arc<()>);
    impl std::task::Wake for Bomb {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(self.0.clone());
        }
    }
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (task, payload) = (Task::new(), Arc::new(()));
    for waker in [Waker::from(Arc::new(Bomb(payload.clone()))), task.waker()] {
        assert!(b.poll_read_ready(&mut std::task::Context::from_waker(&waker)).is_pending());
    }
    a.try_write(b"x").unwrap();
    rig.turn();
    assert_eq!(task.wakes(), 1);
    assert_eq!(Arc::strong_count(&payload), 1, "what it panicked with is dropped");
}

#[test]
fn a_waker_that_is_left_behind_may_own_another_socket() {
    struct Owner(#[expect(dead_code, reason = "for its destructor")] UnixStream);
    impl std::task::Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let rig = Rig::new();
    let ((_a, b), (_c, d)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    assert!(Task::new().poll(read_one(&d).as_mut()).is_pending());
    let waker = Waker::from(Arc::new(Owner(d)));
    assert!(b.poll_read_ready(&mut std::task::Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert_eq!(rig.reactor.registrations(), 2);
    drop(b);
    assert_eq!(rig.reactor.registrations(), 0, "and no lock was held meanwhile");
}

#[test]
fn a_dropped_reactor_closes_its_fds() {
    alone("reactor::tests::a_dropped_reactor_closes_its_fds", 256, || {
        let open = || std::fs::read_dir("/dev/fd").unwrap().count();
        let before = open();
        for _ in 0..10 {
            let rig = Rig::new();
            let (_a, b) = UnixStream::pair().unwrap();
            assert!(Task::new().poll(read_one(&b).as_mut()).is_pending());
            assert!(open() > before);
            drop(rig);
        }
        assert_eq!(open(), before);
    });
}

#[test]
fn the_reactor_itself_can_be_waited_for() {
    let mut outer = Rig::new();
    let inner = Reactor::new().unwrap();
    let fd = crate::AsyncFd::with_interest(&inner, crate::Interest::READABLE).unwrap();
    let task = Task::new();
    assert!(task.poll(pin!(fd.readable())).is_pending());
    inner.notify();
    outer.turn();
    assert!(task.poll(pin!(fd.readable())).is_ready());
}
