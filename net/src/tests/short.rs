//! A short read means that nothing more is there, unless an end, a message or a mark has cut it short.

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::pin::pin;
use std::task::Poll;

use super::readiness::{ready_of, tcp_pair};
use super::rig::{Rig, Task};
use crate::sys::SHORT_READS_TELL;
use crate::{UnixDatagram, UnixStream};

#[test]
fn a_short_read_waits_without_asking_again_and_more_data_wakes_it() {
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(tcp_pair());
    let (task, mut buf) = (Task::new(), [0; 8]);
    {
        let mut read = pin!(b.read(&mut buf));
        assert!(task.poll(read.as_mut()).is_pending());
        rig.settle();
        a.try_write(b"ping").unwrap();
        rig.turn();
        assert!(matches!(task.poll(read.as_mut()), Poll::Ready(Ok(4))));
    }
    assert_eq!(ready_of(&b).is_readable(), !SHORT_READS_TELL, "a short read has emptied the socket");
    let mut read = pin!(b.read(&mut buf));
    assert!(task.poll(read.as_mut()).is_pending());
    a.try_write(b"pong!").unwrap();
    rig.turn();
    assert!(matches!(task.poll(read.as_mut()), Poll::Ready(Ok(5))));
}

#[test]
fn a_full_read_stays_ready_for_the_rest() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    a.try_write(b"pingpong").unwrap();
    rig.settle();
    let (task, mut buf) = (Task::new(), [0; 4]);
    for _ in 0..2 {
        assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(4))));
        assert!(ready_of(&b).is_readable());
    }
    assert!(task.poll(pin!(b.read(&mut buf))).is_pending());
}

#[test]
fn an_end_that_comes_with_the_data_is_not_missed() {
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(tcp_pair());
    let (task, mut buf) = (Task::new(), [0; 8]);
    assert!(task.poll(pin!(b.read(&mut buf))).is_pending());
    rig.settle();
    a.try_write(b"ping").unwrap();
    a.shutdown(Shutdown::Write).unwrap();
    rig.turn();
    // Both are there; there will be no other edge.
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(4))));
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(0))));
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(0))));
}

#[test]
fn a_read_cut_short_by_a_passed_fd_leaves_the_rest_readable() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    a.try_send_fds(b"ping", &[a.as_fd()]).unwrap();
    a.try_write(b"pong").unwrap();
    rig.settle();
    let (task, mut buf, mut received) = (Task::new(), [0; 16], 0);
    // Linux ends a read at the descriptor; the BSDs do so at the next one, and read all at once.
    while received < 8 {
        let Poll::Ready(Ok(more @ 1..)) = task.poll(pin!(b.read(&mut buf))) else { panic!("{received} of 8 bytes") };
        received += more;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_read_cut_short_by_urgent_data_leaves_the_rest_readable() {
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(tcp_pair());
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    a.try_write(b"ping").unwrap();
    a.sock().send_out_of_band(b"!").unwrap();
    a.try_write(b"pong").unwrap();
    rig.settle();
    let (task, mut buf) = (Task::new(), [0; 16]);
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(4))));
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(4))));
}

#[test]
fn a_short_datagram_says_nothing_about_the_next() {
    let mut rig = Rig::new();
    let (a, b) = UnixDatagram::pair().unwrap();
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    for message in [&b"one"[..], b"", b"three"] {
        a.try_send(message).unwrap();
    }
    rig.settle();
    let (task, mut buf) = (Task::new(), [0; 16]);
    for len in [3, 0, 5] {
        assert!(matches!(task.poll(pin!(b.recv(&mut buf))), Poll::Ready(Ok(n)) if n == len));
    }
    assert!(task.poll(pin!(b.recv(&mut buf))).is_pending());
}

#[test]
fn peeking_leaves_the_socket_readable() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    assert!(Task::new().poll(pin!(b.readable())).is_pending());
    a.try_write(b"ping").unwrap();
    rig.settle();
    let (task, mut buf) = (Task::new(), [0; 16]);
    assert!(matches!(task.poll(pin!(b.peek(&mut buf))), Poll::Ready(Ok(4))));
    assert!(matches!(task.poll(pin!(b.read(&mut buf))), Poll::Ready(Ok(4))));
}
