//! Pipes: made here, opened by a path, taken over; their ends, their limits, and permissions.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, OwnedFd};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use mini::io::Interest;
use mini::net::UnixStream;
use mini::net::unix::pipe::{self, OpenOptions, Receiver, Sender};
use mini_tests::net_support::{ScratchPath, Words, in_each_world, kind_of, now, open_files};
use mini_tests::{Counts, LIMIT, in_child, poll_with};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, mknodat};
use rustix::io::{FdFlags, fcntl_getfd};

fn fifo(name: &str) -> ScratchPath {
    let path = ScratchPath::new(name);
    mknodat(CWD, path.as_ref(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn what_goes_in_comes_out_until_the_end() {
    in_each_world(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let writing = mini::spawn(async move {
            let mut words = Words::new(2);
            for _ in 0..64 {
                sender.write_all(&words.take(8192)).await.unwrap();
            }
            words.sum()
        });
        let (mut heard, mut buf) = (Words::new(2), [0; 8192]);
        for _ in 0..64 {
            receiver.read_exact(&mut buf).await.unwrap();
            heard.add(&buf);
        }
        assert_eq!(heard.sum(), writing.await.unwrap());
        for _ in 0..2 {
            assert_eq!(receiver.read(&mut buf).await.unwrap(), 0);
        }
        assert_eq!(kind_of(receiver.read_exact(&mut buf).await), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn both_ends_are_nonblocking_and_not_inherited() {
    in_each_world(|| async {
        let path = fifo("flags");
        let (sender, receiver) = pipe::pipe().unwrap();
        let opened = OpenOptions::new().open_receiver(&path).unwrap();
        let other = OpenOptions::new().open_sender(&path).unwrap();
        for fd in [sender.as_fd(), receiver.as_fd(), opened.as_fd(), other.as_fd()] {
            assert!(fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
        assert!(!fcntl_getfl(sender.into_blocking_fd().unwrap()).unwrap().contains(OFlags::NONBLOCK));
        assert!(fcntl_getfl(receiver.into_nonblocking_fd()).unwrap().contains(OFlags::NONBLOCK));
    });
}

#[test]
fn every_method_reads_or_writes() {
    in_each_world(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let mut buf = [0; 16];
        assert_eq!(kind_of(receiver.try_read(&mut buf)), ErrorKind::WouldBlock);
        assert_eq!(kind_of(receiver.try_read_vectored(&mut [IoSliceMut::new(&mut buf)])), ErrorKind::WouldBlock);
        assert!(sender.ready(Interest::WRITABLE).await.unwrap().is_writable());
        sender.writable().await.unwrap();
        std::future::poll_fn(|cx| sender.poll_write_ready(cx)).await.unwrap();
        assert_eq!(sender.write(b"a").await.unwrap(), 1);
        assert_eq!(sender.try_write(b"b").unwrap(), 1);
        assert_eq!(sender.write_vectored(&[IoSlice::new(b"c"), IoSlice::new(b"d")]).await.unwrap(), 2);
        assert_eq!(sender.try_write_vectored(&[IoSlice::new(b"e"), IoSlice::new(b"f")]).unwrap(), 2);
        receiver.readable().await.unwrap();
        std::future::poll_fn(|cx| receiver.poll_read_ready(cx)).await.unwrap();
        assert!(receiver.ready(Interest::READABLE).await.unwrap().is_readable());
        assert_eq!(receiver.read(&mut buf[..1]).await.unwrap(), 1);
        assert_eq!(receiver.try_read(&mut buf[1..2]).unwrap(), 1);
        let (mut first, mut second) = ([0; 1], [0; 1]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(receiver.read_vectored(&mut bufs).await.unwrap(), 2);
        assert_eq!(receiver.try_read_vectored(&mut bufs).unwrap(), 2);
        assert_eq!((&buf[..2], &first, &second), (&b"ab"[..], b"e", b"f"));
        assert_eq!(receiver.read(&mut []).await.unwrap(), 0);
    });
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    mini::time::timeout(LIMIT, future).await.expect("it has nothing to wait for")
}

#[test]
fn nothing_to_read_or_write_waits_for_nothing() {
    in_each_world(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let counts = Counts::new();
        assert!(poll_with(&mut receiver.read(&mut [0]), &counts).is_pending());
        while sender.try_write(&[7; 4096]).is_ok() {}
        assert!(poll_with(&mut sender.write(b"more"), &counts).is_pending());
        let (reader, writer) = UnixStream::pair().unwrap();
        assert!(poll_with(&mut reader.read(&mut [0]), &counts).is_pending());
        while writer.try_write(&[7; 4096]).is_ok() {}
        while reader.try_read(&mut [0; 4096]).is_ok() {}
        while writer.try_write(&[7; 4096]).is_ok() {}
        assert!(poll_with(&mut writer.write(b"more"), &counts).is_pending());
        let (idle, _other) = UnixStream::pair().unwrap();
        assert!(poll_with(&mut idle.read(&mut [0]), &counts).is_pending());

        assert_eq!(within(receiver.read(&mut [])).await.unwrap(), 0);
        assert_eq!(within(sender.write(&[])).await.unwrap(), 0);
        assert_eq!(within(idle.read(&mut [])).await.unwrap(), 0);
        assert_eq!(within(idle.read_vectored(&mut [IoSliceMut::new(&mut [])])).await.unwrap(), 0);
        assert_eq!(within(writer.write(&[])).await.unwrap(), 0);
        assert_eq!(within(writer.write_vectored(&[IoSlice::new(&[])])).await.unwrap(), 0);
    });
}

#[test]
fn empty_buffers_in_front_are_not_taken_for_the_end() {
    in_each_world(|| async {
        let mut out: Vec<_> = (0..2000).map(|_| IoSlice::new(&[])).collect();
        out.push(IoSlice::new(b"hello"));
        let mut buf = [0; 5];
        let (sender, receiver) = pipe::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!(sender.write_vectored(&out).await.unwrap(), 5);
        assert_eq!(one.write_vectored(&out).await.unwrap(), 5);
        for round in 0..2 {
            buf.fill(0);
            let mut into: Vec<_> = (0..2000).map(|_| IoSliceMut::new(&mut [])).collect();
            into.push(IoSliceMut::new(&mut buf));
            let read = match round {
                0 => receiver.read_vectored(&mut into).await,
                _ => other.read_vectored(&mut into).await,
            };
            assert_eq!((read.unwrap(), &buf), (5, b"hello"));
        }
    });
}

#[test]
fn a_full_pipe_stops_the_sender_until_somebody_reads() {
    in_each_world(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let counts = Counts::new();
        let mut filled = 0;
        while let Ok(more) = sender.try_write(&[7; 4096]) {
            filled += more;
        }
        let mut waiting = sender.write(b"more");
        assert!(poll_with(&mut waiting, &counts).is_pending());
        assert!(poll_with(&mut sender.write(b"nobody wants this"), &counts).is_pending());
        let mut buf = vec![0; filled];
        receiver.read_exact(&mut buf).await.unwrap();
        assert_eq!(waiting.await.unwrap(), 4);
        assert_eq!(receiver.read(&mut buf).await.unwrap(), 4);
    });
}

#[test]
fn a_pipe_without_a_reader_is_broken() {
    in_each_world(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let counts = Counts::new();
        while sender.try_write(&[7; 4096]).is_ok() {}
        let mut waiting = sender.write(b"more");
        assert!(poll_with(&mut waiting, &counts).is_pending());
        drop(receiver);
        assert_eq!(kind_of(waiting.await), ErrorKind::BrokenPipe);
        assert_eq!(kind_of(sender.write_all(b"more").await), ErrorKind::BrokenPipe);
        assert!(sender.ready(Interest::WRITABLE).await.unwrap().is_write_closed());
    });
}

#[test]
fn a_receiver_of_a_fifo_waits_for_the_first_to_come() {
    in_each_world(|| async {
        let path = fifo("first");
        let error = OpenOptions::new().open_sender(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NXIO.raw_os_error()));
        let receiver = OpenOptions::new().open_receiver(&path).unwrap();
        let counts = Counts::new();
        let mut buf = [0; 16];
        assert!(poll_with(&mut receiver.read(&mut buf), &counts).is_pending(), "nobody has come, which is no end");
        let reading = mini::spawn(async move {
            let received = receiver.read(&mut buf).await.unwrap();
            (received, receiver.read(&mut buf).await.unwrap(), receiver)
        });
        let sender = OpenOptions::new().open_sender(&path).unwrap();
        sender.write_all(b"ping").await.unwrap();
        drop(sender);
        let (received, end, receiver) = reading.await.unwrap();
        assert_eq!((received, end), (4, 0), "when the last has gone it is");

        // The next one may come.
        let sender = OpenOptions::new().open_sender(&path).unwrap();
        let mut buf = [0; 16];
        let mut waiting = receiver.read(&mut buf);
        assert!(poll_with(&mut waiting, &counts).is_pending());
        sender.write_all(b"again").await.unwrap();
        assert_eq!(waiting.await.unwrap(), 5);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn opened_both_ways_a_fifo_never_ends() {
    in_each_world(|| async {
        let path = fifo("both");
        let receiver = OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        let sender = OpenOptions::new().read_write(true).open_sender(&path).unwrap();
        sender.write_all(b"ping").await.unwrap();
        drop(sender);
        let mut buf = [0; 16];
        assert_eq!(receiver.read(&mut buf).await.unwrap(), 4);
        assert!(poll_with(&mut receiver.read(&mut buf), &Counts::new()).is_pending());
    });
}

#[test]
fn what_is_no_pipe_is_refused_with_its_path() {
    in_each_world(|| async {
        let path = ScratchPath::new("plain");
        assert_eq!(kind_of(OpenOptions::new().open_receiver(&path)), ErrorKind::NotFound);
        std::fs::write(&path, b"plain").unwrap();
        for error in [
            OpenOptions::new().open_receiver(&path).map(drop).unwrap_err(),
            OpenOptions::new().open_sender(&path).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(path.as_ref().to_str().unwrap()), "{error}");
        }
        assert_eq!(kind_of(Receiver::from_file(File::open(&path).unwrap())), ErrorKind::InvalidInput);
        let unchecked = OpenOptions::new().unchecked(true).open_receiver(&path).unwrap();
        assert_eq!(unchecked.try_read(&mut [0; 8]).unwrap(), 5);
        // A plain file can't be waited for, and says so.
        assert_eq!(kind_of(unchecked.readable().await), ErrorKind::PermissionDenied);
        let unchecked = Receiver::from_file_unchecked(File::open(&path).unwrap()).unwrap();
        assert_eq!(unchecked.try_read(&mut [0; 8]).unwrap(), 5);
        let wrong = Sender::from_file_unchecked(File::open(&path).unwrap()).unwrap();
        assert_eq!(wrong.try_write(b"x").unwrap_err().raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
        let socket = std::os::unix::net::UnixStream::pair().unwrap().0;
        assert_eq!(kind_of(Sender::from_owned_fd(socket.into())), ErrorKind::InvalidInput);
    });
}

#[test]
fn an_end_is_checked_for_its_direction() {
    in_each_world(|| async {
        let (reader, writer) = std::io::pipe().unwrap();
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        let error = Sender::from_owned_fd(reader.try_clone().unwrap()).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::InvalidInput, "the pipe is not open for writing")
        );
        let error = Receiver::from_owned_fd(writer.try_clone().unwrap()).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::InvalidInput, "the pipe is not open for reading")
        );

        let sender = Sender::from_file(File::from(writer)).unwrap();
        let receiver = Receiver::from_file(File::from(reader)).unwrap();
        let mut buf = [0; 8];
        let mut waiting = receiver.read(&mut buf);
        assert!(poll_with(&mut waiting, &Counts::new()).is_pending(), "the check has neither written nor taken a byte");
        sender.write_all(b"ping").await.unwrap();
        assert_eq!(waiting.await.unwrap(), 4);
        let unchecked = Receiver::from_owned_fd_unchecked(sender.into_nonblocking_fd()).unwrap();
        assert!(unchecked.try_read(&mut buf).is_err());
    });
}

#[test]
fn a_refused_end_stays_blocking() {
    in_each_world(|| async {
        let (reader, writer) = std::io::pipe().unwrap();
        Sender::from_owned_fd(reader.try_clone().unwrap().into()).unwrap_err();
        Receiver::from_owned_fd(writer.try_clone().unwrap().into()).unwrap_err();
        assert!(!fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
        assert!(!fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_of_packets_is_read_packet_by_packet() {
    use rustix::pipe::{PipeFlags, pipe_with};
    in_each_world(|| async {
        let (reader, writer) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
        let receiver = Receiver::from_owned_fd(reader).unwrap();
        let mut writer = File::from(writer);
        let mut buf = [0; 64];
        for packets in [&[b"one", b"two"][..], &[b"new"]] {
            for packet in packets {
                writer.write_all(*packet).unwrap();
            }
            for packet in packets {
                // A short read is not the end of what has come.
                assert_eq!(receiver.read(&mut buf).await.unwrap(), 3);
                assert_eq!(&buf[..3], *packet);
            }
        }
    });
}

#[test]
fn an_end_taken_over_sees_what_came_before() {
    in_each_world(|| async {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        let receiver = Receiver::from_owned_fd(reader.into()).unwrap();
        assert_eq!(receiver.read(&mut [0; 8]).await.unwrap(), 0, "its writer has been there, and gone");

        let (sender, receiver) = pipe::pipe().unwrap();
        sender.write_all(b"ping").await.unwrap();
        let receiver = Receiver::from_owned_fd(receiver.into_blocking_fd().unwrap()).unwrap();
        assert_eq!(receiver.read(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn pipes_have_the_traits_of_streams() {
    in_each_world(|| async {
        let (mut sender, mut receiver) = pipe::pipe().unwrap();
        AsyncWriteExt::write_all(&mut sender, b"by value, ").await.unwrap();
        AsyncWriteExt::write_all(&mut &sender, b"by reference").await.unwrap();
        AsyncWriteExt::flush(&mut sender).await.unwrap();
        AsyncWriteExt::close(&mut sender).await.unwrap();
        drop(sender);
        let (mut first, mut second) = ([0; 10], String::new());
        AsyncReadExt::read_exact(&mut &receiver, &mut first).await.unwrap();
        receiver.read_to_string(&mut second).await.unwrap();
        assert_eq!((&first, second.as_str()), (b"by value, ", "by reference"));
    });
}

#[test]
fn a_dropped_wait_leaves_nobody_behind_and_no_file_open() {
    in_child("a_dropped_wait_leaves_nobody_behind_and_no_file_open", || {
        mini::block_on(async {
            let before = open_files();
            for _ in 0..8 {
                let (sender, receiver) = pipe::pipe().unwrap();
                let counts = Counts::new();
                let mut buf = [0; 8];
                assert!(poll_with(&mut receiver.read(&mut buf), &counts).is_pending());
                assert!(poll_with(&mut receiver.readable(), &counts).is_pending());
                sender.write_all(b"ping").await.unwrap();
                receiver.readable().await.unwrap();
                assert_eq!(counts.wakes(), 0);
                assert_eq!(now(poll_with(&mut receiver.read(&mut buf), &counts)).unwrap(), 4);
            }
            assert_eq!(open_files(), before);
        });
    });
}

#[test]
fn a_wait_without_a_runtime_names_the_call() {
    let (_sender, receiver) = pipe::pipe().unwrap();
    let panic = mini_tests::caught(|| poll_with(&mut receiver.read(&mut [0; 8]), &Counts::new()));
    assert!(panic.message.contains("Receiver::read"), "{}", panic.message);
}
