//! `AsyncFd`: guards, refusals, and fds that are no sockets.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::Poll;

use super::rig::{Rig, Task, is_shut_down};
use crate::{AsyncFd, Interest, Ready};

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

#[test]
fn an_fd_that_cannot_be_polled_is_refused() {
    let _rig = Rig::new();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let result = AsyncFd::new(file);
    if cfg!(any(target_os = "linux", target_os = "android")) {
        assert_eq!(result.err().unwrap().raw_os_error(), Some(libc::EPERM));
    }
}

#[test]
fn an_fd_that_is_registered_already_is_refused() {
    use std::os::fd::AsFd;

    let rig = Rig::new();
    let (a, _b) = pair();
    let first = AsyncFd::new(a.as_fd()).unwrap();
    let error = AsyncFd::new(a.as_fd()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("already registered"), "{error}");
    assert_eq!(rig.reactor.registrations(), 1);
    drop(first);
    drop(AsyncFd::new(a.as_fd()).unwrap());
}

#[test]
fn without_a_runtime_it_registers_at_the_first_wait() {
    let (mut a, b) = pair();
    let fd = AsyncFd::new(b).unwrap();
    let mut rig = Rig::new();
    assert_eq!(rig.reactor.registrations(), 0);
    a.write_all(b"ping").unwrap();
    rig.block_on(async {
        assert!(fd.readable().await.unwrap().ready().is_readable());
        let mut buf = [0; 8];
        assert_eq!(fd.async_io(Interest::READABLE, |mut b| b.read(&mut buf)).await.unwrap(), 4);
    });
    assert_eq!(rig.reactor.registrations(), 1);
    let mut b = fd.into_inner();
    assert_eq!(rig.reactor.registrations(), 0);
    assert_eq!(b.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_guard_keeps_the_readiness_until_it_is_taken_back() {
    let mut rig = Rig::new();
    let (mut a, b) = pair();
    let fd = AsyncFd::new(b).unwrap();
    a.write_all(b"ping").unwrap();
    rig.settle();
    let task = Task::new();
    let guard = || match task.poll(pin!(fd.readable())) {
        Poll::Ready(guard) => Some(guard.unwrap()),
        Poll::Pending => None,
    };
    let mut buf = [0; 8];
    guard().unwrap().retain_ready();
    let read = guard().unwrap().try_io(|fd| fd.get_ref().read(&mut buf));
    assert_eq!(read.unwrap().unwrap(), 4);
    let read = guard().unwrap().try_io(|fd| fd.get_ref().read(&mut buf));
    assert!(read.is_err(), "it would block");
    assert!(guard().is_none());

    a.write_all(b"ping").unwrap();
    rig.settle();
    guard().unwrap().clear_ready_matching(Ready::WRITABLE);
    let mut stale = guard().unwrap();
    a.write_all(b"ping").unwrap();
    rig.settle();
    stale.clear_ready();
    // More data came in between, so that cleared nothing.
    guard().unwrap().clear_ready();
    assert!(guard().is_none());
}

#[test]
fn a_wait_that_was_not_asked_for_is_an_error() {
    let mut rig = Rig::new();
    let (a, _b) = pair();
    let fd = AsyncFd::with_interest(a, Interest::READABLE).unwrap();
    rig.block_on(async {
        let both = Interest::READABLE | Interest::WRITABLE;
        assert_eq!(fd.ready(both).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let io = fd.async_io(Interest::WRITABLE, |_| Ok(()));
        assert_eq!(io.await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let io = fd.try_io(Interest::WRITABLE, |_| Ok(()));
        assert_eq!(io.unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_closed_side_is_seen_and_stays() {
    let mut rig = Rig::new();
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe().unwrap();
    let fd = AsyncFd::with_interest(writer, Interest::WRITABLE).unwrap();
    drop(reader);
    rig.settle();
    rig.block_on(async {
        for _ in 0..2 {
            let mut guard = fd.writable().await.unwrap();
            assert!(guard.ready().is_write_closed());
            guard.clear_ready();
        }
        let io = fd.async_io(Interest::WRITABLE, |mut writer| writer.write(b"x"));
        assert_eq!(io.await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

/// Some systems refuse to add such a writer, and so would never tell.
#[test]
fn a_side_that_was_closed_before_it_was_registered_is_seen() {
    let mut rig = Rig::new();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let fd = AsyncFd::with_interest(writer, Interest::WRITABLE).unwrap();
    rig.block_on(async { assert!(fd.writable().await.unwrap().ready().is_write_closed()) });
    assert_eq!(rig.reactor.registrations(), 1);
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)))]
#[test]
fn out_of_band_data_is_a_priority() {
    let mut rig = Rig::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let a = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (b, _) = listener.accept().unwrap();
    let fd = AsyncFd::with_interest(b, Interest::PRIORITY).unwrap();
    let task = Task::new();
    let mut urgent = pin!(fd.ready(Interest::PRIORITY));
    assert!(task.poll(urgent.as_mut()).is_pending());
    rig.settle();
    socket2::SockRef::from(&a).send_out_of_band(b"!").unwrap();
    rig.turn();
    assert_eq!(task.wakes(), 1);
    assert!(matches!(task.poll(urgent.as_mut()), Poll::Ready(Ok(g)) if g.ready().is_priority()));
}

#[test]
fn shutdown_ends_the_waits() {
    let rig = Rig::new();
    let (a, _b) = pair();
    let fd = AsyncFd::new(a).unwrap();
    let task = Task::new();
    let mut readable = pin!(fd.readable());
    assert!(task.poll(readable.as_mut()).is_pending());
    rig.reactor.shutdown();
    assert_eq!(task.wakes(), 1);
    assert!(is_shut_down(&task.poll(readable.as_mut())));
}
