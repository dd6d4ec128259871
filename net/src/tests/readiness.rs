//! When a socket registers, when it waits, and what its readiness is after each operation.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mini_context::rules::CALL;
use mini_context::{BUDGET, ENDLESS, IoKind, Reason, take_notes};

use super::rig::{NO_DELAY, Rig, Task, TempPath, both, is_shut_down};
use crate::kind::sealed::Kind;
use crate::sys::SHORT_READS_TELL;
use crate::sys::socket::for_kernel;
use crate::{Events, Interest, Ready, TcpListener, TcpStream, UnixStream};

/// A connection over TCP, and a Unix one: the rules have to hold for both.
pub(super) async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, server)
}

pub(super) fn ready_of(socket: &impl Kind) -> Ready {
    socket.source().slot().expect("registered").seen().ready()
}

fn waiting_on(socket: &impl Kind) -> usize {
    socket.source().slot().expect("registered").waiting()
}

#[test]
fn an_operation_that_need_not_wait_registers_nothing() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    rig.block_on(async {
        a.write_all(b"ping").await.unwrap();
        b.read_exact(&mut [0; 4]).await.unwrap();
    });
    assert_eq!(rig.reactor.registrations(), 0);
}

#[test]
fn a_lazily_registered_read_is_woken_by_data() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (task, mut buf) = (Task::new(), [0; 8]);
    let mut read = pin!(b.read(&mut buf));
    assert!(task.poll(read.as_mut()).is_pending());
    assert_eq!(rig.reactor.registrations(), 1);
    rig.settle();
    assert_eq!(task.wakes(), 0, "that it can be written to does not concern the reader");
    a.try_write(b"ping").unwrap();
    rig.turn();
    assert_eq!(task.wakes(), 1);
    assert!(matches!(task.poll(read.as_mut()), Poll::Ready(Ok(4))));
}

#[test]
fn edge_between_wouldblock_and_wait_is_not_lost() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    rig.settle();
    a.try_write(b"x").unwrap();
    rig.settle();
    b.try_read(&mut [0; 1]).unwrap();

    let (mut calls, task) = (0, Task::new());
    let mut io = pin!(b.async_io(Interest::READABLE, || {
        calls += 1;
        if calls > 1 {
            return b.try_read(&mut [0; 8]);
        }
        // The edge fires exactly here, and the driver delivers it before the operation is over.
        a.try_write(b"ping").unwrap();
        rig.settle();
        Err(io::ErrorKind::WouldBlock.into())
    }));
    assert!(matches!(task.poll(io.as_mut()), Poll::Ready(Ok(4))));
}

#[test]
fn edge_before_the_registration_is_not_lost() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (mut calls, task) = (0, Task::new());
    let mut io = pin!(b.async_io(Interest::READABLE, || {
        calls += 1;
        if calls > 1 {
            return b.source().recv_into(for_kernel(&mut [0; 8])).map(|(received, _)| received);
        }
        a.try_write(b"ping").unwrap();
        Err(io::ErrorKind::WouldBlock.into())
    }));
    assert!(task.poll(io.as_mut()).is_pending());
    rig.turn();
    assert_eq!(task.wakes(), 1);
    assert!(matches!(task.poll(io.as_mut()), Poll::Ready(Ok(4))));
}

#[test]
fn a_cancelled_waiter_is_removed_and_loses_no_data() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (cancelled, other) = (Task::new(), Task::new());
    let (mut buf, mut other_buf) = ([0; 8], [0; 8]);
    let mut other_read = pin!(b.read(&mut other_buf));
    {
        let mut read = Box::pin(b.read(&mut buf));
        assert!(cancelled.poll(read.as_mut()).is_pending());
        assert!(other.poll(other_read.as_mut()).is_pending());
        assert_eq!(waiting_on(&b), 2);
        drop(read);
        assert_eq!(waiting_on(&b), 1);
    }
    let mut read = Box::pin(b.read(&mut buf));
    assert!(cancelled.poll(read.as_mut()).is_pending());
    a.try_write(b"ping").unwrap();
    rig.turn();
    // Woken, and dropped before it could run: the other one was woken too.
    assert_eq!((cancelled.wakes(), other.wakes()), (1, 1));
    drop(read);
    assert!(matches!(other.poll(other_read.as_mut()), Poll::Ready(Ok(4))));
}

#[test]
fn two_tasks_on_one_socket_register_it_once_and_both_go_on() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (one, two) = (Task::new(), Task::new());
    let (mut one_buf, mut two_buf) = ([0; 4], [0; 4]);
    let mut one_read = pin!(b.read(&mut one_buf));
    let mut two_read = pin!(b.read(&mut two_buf));
    assert!(one.poll(one_read.as_mut()).is_pending());
    assert!(two.poll(two_read.as_mut()).is_pending());
    assert_eq!(rig.reactor.registrations(), 1);
    a.try_write(b"pingpong").unwrap();
    rig.turn();
    assert!(matches!(one.poll(one_read.as_mut()), Poll::Ready(Ok(4))));
    assert!(matches!(two.poll(two_read.as_mut()), Poll::Ready(Ok(4))));
}

#[test]
fn threads_that_register_one_socket_at_the_same_time_do_it_once() {
    for _ in 0..500 {
        let rig = Rig::new();
        let (_a, b) = UnixStream::pair().unwrap();
        let (start, pool) = (std::sync::Barrier::new(4), crate::current::blocking().unwrap());
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let _entered = crate::enter(&rig.reactor, &pool, NO_DELAY);
                    start.wait();
                    assert!(Task::new().poll(pin!(b.read(&mut [0; 1]))).is_pending());
                });
            }
        });
        assert_eq!(rig.reactor.registrations(), 1);
    }
}

#[test]
fn a_report_during_the_registration_brings_no_needless_try() {
    let rig = Rig::new();
    let (reactor, over) = (&rig.reactor, AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut events = Events::new();
            while !over.load(Relaxed) {
                reactor.turn(&mut events, Some(Duration::ZERO)).unwrap();
            }
        });
        let sockets = (0..2_000).map(|_| UnixStream::pair().unwrap());
        let needless = sockets.filter(|(_a, b)| {
            let mut calls = 0;
            let read = pin!(b.async_io(Interest::READABLE, || {
                calls += 1;
                b.source().recv_into(for_kernel(&mut [0; 8])).map(|(received, _)| received)
            }));
            assert!(Task::new().poll(read).is_pending());
            calls > 1
        });
        let needless = needless.count();
        over.store(true, Relaxed);
        assert_eq!(needless, 0, "the kernel has told that they can be written to, and nothing of reading");
    });
}

#[test]
fn readable_on_a_new_socket_waits_for_data() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let task = Task::new();
    let mut readable = pin!(b.readable());
    assert!(task.poll(readable.as_mut()).is_pending());
    rig.settle();
    assert!(task.poll(readable.as_mut()).is_pending());
    a.try_write(b"x").unwrap();
    rig.turn();
    assert!(task.poll(readable.as_mut()).is_ready());
    b.try_read(&mut [0; 8]).unwrap();
    assert_eq!(task.poll(pin!(b.readable())).is_pending(), SHORT_READS_TELL, "a short try_read counts too");
    assert_eq!(b.try_read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let ready = rig.block_on(b.ready(Interest::READABLE | Interest::WRITABLE)).unwrap();
    assert_eq!(ready, Ready::WRITABLE);
}

#[test]
fn both_directions_under_back_pressure_finish() {
    const LEN: usize = 4 << 20;
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(tcp_pair());
    let data: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    let exchange = async |stream: &TcpStream| {
        let mut received = vec![0; LEN];
        let (read, written) = both(stream.read_exact(&mut received), stream.write_all(&data)).await;
        read.unwrap();
        written.unwrap();
        assert!(received == data);
    };
    rig.block_on(both(exchange(&a), exchange(&b)));
}

#[test]
fn shutdown_wakes_all_waiters_with_an_error() {
    let rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let (reader, other) = (Task::new(), Task::new());
    let mut buf = [0; 8];
    let mut read = pin!(b.read(&mut buf));
    let mut readable = pin!(b.readable());
    assert!(reader.poll(read.as_mut()).is_pending());
    assert!(other.poll(readable.as_mut()).is_pending());
    rig.reactor.shutdown();
    assert_eq!((reader.wakes(), other.wakes()), (1, 1));
    assert!(is_shut_down(&reader.poll(read.as_mut())));
    assert!(is_shut_down(&other.poll(readable.as_mut())));
    // A later wait does not hang either, whether the socket was registered or not.
    assert!(is_shut_down(&reader.poll(pin!(b.read(&mut [0; 8])))));
    assert!(is_shut_down(&reader.poll(pin!(a.read(&mut [0; 8])))));
    assert!(is_shut_down(&reader.poll(pin!(a.readable()))));
    // Operations that need not wait still work.
    assert!(matches!(reader.poll(pin!(a.write(b"ping"))), Poll::Ready(Ok(4))));
    assert!(matches!(reader.poll(pin!(b.read(&mut [0; 8]))), Poll::Ready(Ok(4))));
    assert!(is_shut_down(&reader.poll(pin!(b.read(&mut [0; 8])))));
}

#[test]
fn a_pending_leaf_says_where_it_waits() {
    let _rig = Rig::new();
    let (_a, b) = UnixStream::pair().unwrap();
    let mut buf = [0; 8];
    let (line, mut read) = (line!(), Box::pin(b.read(&mut buf)));
    assert!(take_notes().is_empty(), "only waiting leaves a note");
    assert!(Task::new().poll(read.as_mut()).is_pending());
    let note = take_notes().wait.unwrap();
    assert_eq!(note.reason(), Reason::Io(IoKind::Read, b.as_raw_fd()));
    assert_eq!((note.location().file(), note.location().line()), (file!(), line));
    assert!(Task::new().poll(read.as_mut()).is_pending());
    drop(read);
    assert!(take_notes().is_empty(), "it waits no more");
}

#[test]
fn waiting_without_a_runtime_panics_with_the_call_and_the_place() {
    let (_a, b) = UnixStream::pair().unwrap();
    let mut buf = [0; 8];
    let (line, mut read) = (line!(), pin!(b.read(&mut buf)));
    let poll = std::panic::AssertUnwindSafe(|| read.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    let panic = std::panic::catch_unwind(poll).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    let place = format!("{}:{line}", file!());
    for part in ["`UnixStream::read`", place.as_str(), "#[mini::main]", "Runtime::enter"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_always_ready_socket_yields_when_the_budget_is_spent() {
    let rig = Rig::new();
    let (a, _b) = UnixStream::pair().unwrap();
    let task = Task::new();
    for _ in 0..2 {
        mini_context::begin_poll(7);
        for _ in 0..BUDGET / CALL {
            assert!(task.poll(pin!(a.peek_nothing())).is_ready());
        }
        let woken = task.wakes();
        while task.poll(pin!(a.peek_nothing())).is_ready() {}
        assert_eq!(task.wakes(), woken + 1, "it wakes itself");
        mini_context::end_poll();
    }
    drop(rig);
}

/// How many calls `operation`, which is ready at once, spends from the budget.
fn calls_of<F: Future>(operation: F) -> u8 {
    mini_context::begin_poll(0);
    assert!(Task::new().poll(pin!(operation)).is_ready());
    (BUDGET - mini_context::swap_budget(ENDLESS)) / CALL
}

#[test]
fn much_data_and_new_sockets_cost_more_of_the_budget() {
    let rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let mut buf = vec![0; 64 << 10];
    socket2::SockRef::from(&a).set_send_buffer_size(4 * buf.len()).unwrap();
    socket2::SockRef::from(&b).set_recv_buffer_size(4 * buf.len()).unwrap();
    assert_eq!(calls_of(a.write(&buf[..100])), 1);
    assert_eq!(calls_of(b.read(&mut buf)), 1, "by what has come, not by what there is room for");
    assert_eq!(calls_of(a.write(&buf)), 5);
    assert_eq!(calls_of(b.read(&mut buf)), 5);
    let path = TempPath::new("budget");
    let listener = crate::UnixListener::bind(&path.0).unwrap();
    assert_eq!(calls_of(UnixStream::connect(&path.0)), 4);
    assert_eq!(calls_of(listener.accept()), 4);
    drop(rig);
}

impl UnixStream {
    /// An operation that is always ready.
    fn peek_nothing(&self) -> impl Future<Output = io::Result<usize>> {
        self.async_io(Interest::READABLE, || Ok(0))
    }
}

#[test]
fn a_dead_udp_peer_is_one_error_and_then_a_wait() {
    let mut rig = Rig::new();
    rig.block_on(async {
        let socket = crate::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let gone = crate::UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        socket.connect(gone).await.unwrap();
        let mut buf = [0; 8];
        let (task, mut recv) = (Task::new(), Box::pin(socket.recv(&mut buf)));
        assert!(task.poll(recv.as_mut()).is_pending());
        drop(recv);
        socket.send(b"ping").await.unwrap();
        let error = socket.recv(&mut buf).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        // The hang-up that epoll reported was not one.
        assert!(task.poll(pin!(socket.recv(&mut buf))).is_pending());
        assert!(!ready_of(&socket).is_read_closed());
    });
}

#[test]
fn a_socket_may_outlive_its_runtime() {
    let rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    assert!(Task::new().poll(pin!(b.read(&mut [0; 1]))).is_pending());
    drop(rig);
    a.try_write(b"ping").unwrap();
    assert_eq!(b.try_read(&mut [0; 8]).unwrap(), 4);
    drop(b.into_std().unwrap());
}

#[test]
fn conversions_set_the_mode_both_ways() {
    let blocks = |fd: std::os::fd::BorrowedFd<'_>| !socket2::SockRef::from(&fd).nonblocking().unwrap();
    let (std, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(blocks(std.as_fd()));
    let stream = UnixStream::from_std(std).unwrap();
    assert!(!blocks(stream.as_fd()));
    assert!(blocks(stream.into_std().unwrap().as_fd()));
    assert!(!blocks(UnixStream::pair().unwrap().0.as_fd()));
}

#[test]
fn no_operation_is_tried_while_the_kernel_has_nothing_to_tell() {
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(tcp_pair());
    let (task, calls) = (Task::new(), std::cell::Cell::new(0));
    let mut read = pin!(b.async_io(Interest::READABLE, || {
        calls.set(calls.get() + 1);
        b.source().recv_into(for_kernel(&mut [0; 8])).map(|(received, _)| received)
    }));
    for _ in 0..4 {
        assert!(task.poll(read.as_mut()).is_pending());
        rig.settle();
    }
    assert_eq!(calls.get(), 1);
    a.try_write(b"ping").unwrap();
    rig.turn();
    assert!(matches!(task.poll(read.as_mut()), Poll::Ready(Ok(4))));
    assert_eq!(calls.get(), 2);
}
