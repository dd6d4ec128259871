//! `AsyncFd` over pipes, an eventfd and a socket; what cannot be polled, what is there already, what was closed.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mini::io::{AsyncFd, Interest, Ready};
use mini::net::UnixStream;
use mini_tests::net_support::{in_each_runtime, kind_of, now, tcp_pair};
use mini_tests::{Counts, caught, poll_with};
use rustix::event::EventfdFlags;
use rustix::net::SendFlags;
use rustix::pipe::PipeFlags;

/// The end to read from, and the end to write to.
fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    (reader.into(), writer.into())
}

async fn read(fd: &AsyncFd<File>, buf: &mut [u8]) -> std::io::Result<usize> {
    fd.async_io(Interest::READABLE, |mut file| file.read(buf)).await
}

/// A file of sysfs shows an error with each change, although nothing is closed.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_shows_changes_as_errors_can_be_waited_for() {
    in_each_runtime(|| async {
        let Ok(file) = File::open("/sys/kernel/uevent_seqnum") else { return };
        let Ok(fd) = AsyncFd::with_interest(file, Interest::PRIORITY) else { return };
        let counts = Counts::new();
        let mut buf = [0; 64];
        let mut changes = fd.ready(Interest::PRIORITY);
        for _ in 0..100 {
            let Poll::Ready(guard) = poll_with(&mut changes, &counts) else { return };
            let mut guard = guard.unwrap();
            assert!(!guard.ready().is_read_closed());
            std::os::unix::fs::FileExt::read_at(guard.get_inner(), &mut buf, 0).unwrap();
            guard.clear_ready();
            changes = fd.ready(Interest::PRIORITY);
        }
        panic!("it is ready for ever");
    });
}

#[test]
fn an_operation_of_the_users_may_be_interrupted() {
    in_each_runtime(|| async {
        let (reader, mut writer) = pipe();
        let fd = AsyncFd::new(reader).unwrap();
        writer.write_all(b"x").unwrap();
        let interrupted = fd.async_io(Interest::READABLE, |_| Err::<(), _>(ErrorKind::Interrupted.into())).await;
        assert_eq!(kind_of(interrupted), ErrorKind::Interrupted);
        let (client, _server): (mini::net::TcpStream, _) = tcp_pair().await;
        let interrupted = client.async_io(Interest::WRITABLE, || Err::<(), _>(ErrorKind::Interrupted.into())).await;
        assert_eq!(kind_of(interrupted), ErrorKind::Interrupted);
    });
}

#[test]
fn a_pipe_is_read_and_written() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let reader = AsyncFd::with_interest(reader, Interest::READABLE).unwrap();
        let writer = AsyncFd::with_interest(writer, Interest::WRITABLE).unwrap();
        let task = mini::spawn(async move {
            let mut received = Vec::new();
            let mut buf = [0; 1 << 10];
            while let some @ 1.. = read(&reader, &mut buf).await.unwrap() {
                received.extend_from_slice(&buf[..some]);
            }
            received
        });
        let sent: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let written = writer.async_io(Interest::WRITABLE, |mut file| file.write(rest)).await.unwrap();
            rest = &rest[written..];
        }
        drop(writer);
        assert!(task.await.unwrap() == sent, "more than a pipe holds, in order");
    });
}

#[test]
fn a_pipe_without_its_other_end_is_ready_and_says_so() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let fd = AsyncFd::new(reader).unwrap();
        let counts = Counts::new();
        let mut wait = fd.readable();
        assert!(poll_with(&mut wait, &counts).is_pending());
        drop(writer);
        let guard = wait.await.unwrap();
        assert!(guard.ready().is_read_closed());
        assert_eq!(read(&fd, &mut [0; 4]).await.unwrap(), 0);

        let (reader, writer) = pipe();
        let fd = AsyncFd::new(writer).unwrap();
        while fd.try_io(Interest::WRITABLE, |mut file| file.write(&[0; 4096])).is_ok() {}
        let mut write = fd.async_io(Interest::WRITABLE, |mut file| file.write(b"ping"));
        assert!(poll_with(&mut write, &counts).is_pending());
        drop(reader);
        assert_eq!(kind_of(write.await), ErrorKind::BrokenPipe);
    });
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn an_eventfd_wakes_and_counts() {
    in_each_runtime(|| async {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        let writer = File::from(eventfd.try_clone().unwrap());
        let counter = Arc::new(AsyncFd::new(File::from(eventfd)).unwrap());
        for round in 1..=3u64 {
            let counts = Counts::new();
            let mut word = [0; 8];
            let mut heard = counter.async_io(Interest::READABLE, |mut file| file.read(&mut word));
            assert!(poll_with(&mut heard, &counts).is_pending());
            for _ in 0..round {
                (&writer).write_all(&1u64.to_ne_bytes()).unwrap();
            }
            assert_eq!(heard.await.unwrap(), 8);
            assert_eq!(u64::from_ne_bytes(word), round);
        }
        let heard = mini::spawn({
            let counter = counter.clone();
            async move { read(&counter, &mut [0; 8]).await }
        });
        (&writer).write_all(&1u64.to_ne_bytes()).unwrap();
        assert_eq!(heard.await.unwrap().unwrap(), 8);
        let mut counter = Arc::into_inner(counter).unwrap();
        counter.get_mut().write_all(&7u64.to_ne_bytes()).unwrap();
        assert_eq!(read(&counter, &mut [0; 8]).await.unwrap(), 8);
    });
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn urgent_data_is_a_readiness_of_its_own() {
    if cfg!(mini_kqueue_shim) {
        return; // kqueue has no such readiness
    }
    in_each_runtime(|| async {
        let (client, server) = tcp_pair().await;
        let server = AsyncFd::new(server.into_std().unwrap()).unwrap();
        let counts = Counts::new();
        assert_eq!(kind_of(server.ready(Interest::PRIORITY).await), ErrorKind::InvalidInput);
        let interest = Interest::PRIORITY | Interest::READABLE;
        let server = AsyncFd::with_interest(server.into_inner(), interest).unwrap();
        let mut urgent = server.ready(Interest::PRIORITY);
        assert!(poll_with(&mut urgent, &counts).is_pending());
        rustix::net::send(&client, b"!", SendFlags::OOB).unwrap();
        assert!(urgent.await.unwrap().ready().is_priority());
    });
}

#[test]
fn what_cannot_be_polled_is_refused() {
    in_each_runtime(|| async {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(kind_of(AsyncFd::new(file)), ErrorKind::PermissionDenied);
    });
    let outside = AsyncFd::new(File::open(std::env::current_exe().unwrap()).unwrap()).unwrap();
    mini::block_on(async {
        let wait = outside.readable().await.map(drop);
        assert_eq!(kind_of(wait), ErrorKind::PermissionDenied, "at the first wait, if not before");
    });
}

#[test]
fn one_descriptor_is_registered_once() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let first = AsyncFd::new(reader.as_fd()).unwrap();
        let error = AsyncFd::new(reader.as_fd()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("already registered"), "{error}");

        // The attempt has not disturbed the registration that is there.
        (&writer).write_all(b"ping").unwrap();
        drop(first.readable().await.unwrap());
        // A duplicate is another descriptor.
        let duplicate = AsyncFd::new(reader.try_clone().unwrap()).unwrap();
        drop(duplicate.readable().await.unwrap());

        drop(first);
        let again = AsyncFd::new(reader.as_fd()).unwrap();
        drop(again.readable().await.unwrap());
        let back = again.into_inner();
        drop(AsyncFd::new(back).unwrap().readable().await.unwrap());
    });
}

/// The kernel keeps a registration while there are duplicates of its descriptor, so mini has to remove it explicitly.
#[test]
fn a_number_that_is_used_again_starts_afresh() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let duplicate = reader.try_clone().unwrap();
        let (number, counts) = (reader.as_raw_fd(), Counts::new());
        let fd = AsyncFd::new(reader).unwrap();
        (&writer).write_all(b"ping").unwrap();
        drop(fd.readable().await.unwrap());
        drop(fd);

        let spares: Vec<_> = (0..16).map(|_| pipe()).collect();
        // Other tests may have taken the number meanwhile; then any will do.
        let at = spares.iter().position(|(reader, _)| reader.as_raw_fd() == number).unwrap_or(0);
        let next = AsyncFd::new(spares[at].0.as_fd()).unwrap();
        assert!(poll_with(&mut next.readable(), &counts).is_pending());
        (&writer).write_all(b"late").unwrap();
        mini::task::yield_now().await;
        let mut wait = next.readable();
        for _ in 0..200 {
            assert!(poll_with(&mut wait, &counts).is_pending(), "that was for the former one");
            mini::task::yield_now().await;
        }
        assert_eq!(counts.wakes(), 0);
        (&spares[at].1).write_all(b"ping").unwrap();
        drop(wait.await.unwrap());
        drop(duplicate);
    });
}

/// `fd` under a number that no other test uses.
fn at_number(fd: impl AsFd, number: i32) -> StdStream {
    let fd = rustix::io::fcntl_dupfd_cloexec(fd, number).unwrap();
    assert_eq!(fd.as_raw_fd(), number);
    fd.into()
}

/// Safe code may close an fd that is registered; the next fd gets its number.
#[test]
fn an_exchanged_descriptor_leaves_alone_who_has_its_number_by_now() {
    const NUMBER: i32 = 600;
    in_each_runtime(|| async {
        let ways: [fn(AsyncFd<StdStream>); 2] = [drop, |fd| drop(fd.into_inner())];
        for (way, by_hand) in ways.into_iter().zip([true, false]) {
            let (first, _peer) = StdStream::pair().unwrap();
            let (other, _peer) = StdStream::pair().unwrap();
            let mut fd = AsyncFd::new(at_number(first, NUMBER)).unwrap();
            *fd.get_mut() = other;

            let (next, peer) = UnixStream::pair().unwrap();
            let next = at_number(next, NUMBER);
            next.set_nonblocking(true).unwrap();
            let (counts, mut buf) = (Counts::new(), [0; 8]);
            if by_hand {
                let next = AsyncFd::new(next).unwrap();
                let mut read = next.async_io(Interest::READABLE, |mut next| next.read(&mut buf));
                assert!(poll_with(&mut read, &counts).is_pending());
                way(fd);
                peer.write_all(b"ping").await.unwrap();
                assert_eq!(read.await.unwrap(), 4);
            } else {
                let next = UnixStream::from_std(next).unwrap();
                let mut read = next.read(&mut buf);
                assert!(poll_with(&mut read, &counts).is_pending());
                way(fd);
                peer.write_all(b"ping").await.unwrap();
                assert_eq!(read.await.unwrap(), 4);
            }
        }
    });
}

#[test]
fn a_guard_takes_readiness_back_only_if_told() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let (fd, counts) = (AsyncFd::new(reader).unwrap(), Counts::new());
        let mut buf = [0; 4];
        (&writer).write_all(b"pingpong").unwrap();
        fd.readable().await.unwrap().retain_ready();

        let mut guard = fd.readable().await.unwrap();
        assert_eq!(guard.try_io(|fd| fd.get_ref().read(&mut buf)).unwrap().unwrap(), 4);
        assert_eq!(guard.try_io(|fd| fd.get_ref().read(&mut buf)).unwrap().unwrap(), 4);
        assert_eq!(&buf, b"pong");
        drop(guard);
        // No call has found the pipe empty, so this is the guess that `try_io` corrects.
        let mut guard = now(poll_with(&mut fd.readable(), &counts)).unwrap();
        let refused = guard.try_io(|fd| fd.get_ref().read(&mut buf)).unwrap_err();
        assert_eq!(refused.to_string(), "the operation would have blocked");
        assert!(poll_with(&mut fd.readable(), &counts).is_pending());

        (&writer).write_all(b"ping").unwrap();
        let mut guard = fd.readable().await.unwrap();
        guard.clear_ready_matching(Ready::WRITABLE);
        guard = now(poll_with(&mut fd.readable(), &counts)).unwrap();
        assert_eq!(guard.get_inner().as_raw_fd(), fd.as_raw_fd());
        guard.clear_ready();
        assert!(poll_with(&mut fd.readable(), &counts).is_pending(), "it was told that it is used up");
        assert_eq!(fd.try_io(Interest::READABLE, |mut file| file.read(&mut buf)).unwrap(), 4);
    });
}

#[test]
fn what_a_guard_has_taken_back_it_no_longer_shows() {
    in_each_runtime(|| async {
        let (_reader, writer) = pipe();
        let fd = AsyncFd::new(writer).unwrap();
        let both = Interest::READABLE | Interest::WRITABLE;
        let mut guard = fd.ready(both).await.unwrap();
        guard.clear_ready_matching(Ready::READABLE);
        assert!(guard.ready().is_writable());
        guard.clear_ready_matching(Ready::WRITABLE);
        assert_eq!(guard.ready(), Ready::EMPTY, "a loop over what is ready comes to its end");

        let (reader, writer) = pipe();
        let fd = AsyncFd::new(reader).unwrap();
        (&writer).write_all(b"x").unwrap();
        let mut guard = fd.readable().await.unwrap();
        assert!(guard.try_io(|fd| fd.get_ref().read(&mut [0; 4])).is_ok());
        assert!(guard.ready().is_readable(), "nobody has said that there is no more");
        assert!(guard.try_io(|fd| fd.get_ref().read(&mut [0; 4])).is_err());
        assert_eq!(guard.ready(), Ready::EMPTY);

        // That a side is closed stays, for the next guard.
        drop(writer);
        let mut guard = fd.readable().await.unwrap();
        guard.clear_ready();
        assert_eq!(guard.ready(), Ready::EMPTY);
        assert!(fd.readable().await.unwrap().ready().is_read_closed());
    });
}

#[test]
fn a_guard_keeps_what_came_after_it() {
    in_each_runtime(|| async {
        let (reader, writer) = pipe();
        let (fd, counts) = (AsyncFd::new(reader).unwrap(), Counts::new());
        (&writer).write_all(b"ping").unwrap();
        let mut guard = fd.readable().await.unwrap();
        assert_eq!(guard.get_inner().read(&mut [0; 8]).unwrap(), 4);
        (&writer).write_all(b"pong").unwrap();
        // Another task waits here, and the event that the guard does not know of tells it of the new data.
        let (other, other_writer) = pipe();
        let other = AsyncFd::new(other).unwrap();
        let mut wait = other.readable();
        assert!(poll_with(&mut wait, &counts).is_pending());
        (&other_writer).write_all(b"ping").unwrap();
        drop(wait.await.unwrap());
        guard.clear_ready();
        drop(fd.readable().await.unwrap());
        assert_eq!(read(&fd, &mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn only_what_was_asked_for_can_be_waited_for() {
    in_each_runtime(|| async {
        let (reader, _writer) = pipe();
        let fd = AsyncFd::with_interest(reader, Interest::READABLE).unwrap();
        let counts = Counts::new();
        let both = Interest::READABLE | Interest::WRITABLE;
        assert_eq!(kind_of(fd.writable().await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(fd.ready(both).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(fd.async_io(Interest::WRITABLE, |_| Ok(())).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(fd.try_io(Interest::WRITABLE, |_| Ok(()))), ErrorKind::InvalidInput);
        assert!(poll_with(&mut fd.readable(), &counts).is_pending());
    });
}

/// The system reports errors for every fd, whatever it is watched for.
#[test]
fn an_error_can_be_waited_for_whatever_was_asked_for() {
    in_each_runtime(|| async {
        for interest in [None, Some(Interest::READABLE), Some(Interest::ERROR)] {
            let (client, server) = tcp_pair().await;
            let server = server.into_std().unwrap();
            server.set_nonblocking(true).unwrap();
            let server = match interest {
                Some(interest) => AsyncFd::with_interest(server, interest),
                None => AsyncFd::new(server),
            };
            let (server, counts) = (server.unwrap(), Counts::new());
            let mut failed = server.ready(Interest::ERROR);
            assert!(poll_with(&mut failed, &counts).is_pending());
            client.set_linger(Some(Duration::ZERO)).unwrap(); // so that the end is a reset
            drop(client);
            assert!(failed.await.unwrap().ready().is_error());
        }
    });
}

#[test]
fn a_wait_without_a_runtime_names_the_call_and_its_line() {
    let (reader, _writer) = pipe();
    let fd = AsyncFd::new(OwnedFd::from(reader)).unwrap();
    let line = line!() + 1;
    let mut wait = fd.readable();
    let panic = caught(|| poll_with(&mut wait, &Counts::new()).is_pending());
    assert!(panic.message.contains("AsyncFd::readable"), "{panic:?}");
    assert!(panic.message.contains(&format!("{}:{line}:", file!())), "{panic:?}");
    drop(wait);
    let counts = Counts::new();
    mini::block_on(async { assert!(poll_with(&mut fd.readable(), &counts).is_pending(), "it may still join one") });
}
