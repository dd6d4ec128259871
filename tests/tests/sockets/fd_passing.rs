//! Open files that travel over Unix sockets: they arrive once, whole, not inherited, and none is left open.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mini::net::{UnixDatagram, UnixStream};
use mini_tests::net_support::{in_each_world, kind_of, open_files};
use mini_tests::{Counts, in_child, poll_with};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The file that is sent here, again and again.
fn null() -> File {
    File::open("/dev/null").unwrap()
}

#[test]
fn descriptors_travel_with_the_message() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let null = null();
        assert_eq!(a.send_fds(b"two", &[writer.as_fd(), null.as_fd()]).await.unwrap(), 3);
        drop(writer);
        let mut buf = [0; 16];
        let (received, fds) = b.recv_fds(&mut buf, 8).await.unwrap();
        assert_eq!((&buf[..received], fds.len()), (&b"two"[..], 2));
        for fd in &fds {
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
        let mut fds = fds.into_iter();
        File::from(fds.next().unwrap()).write_all(b"ping").unwrap();
        let mut heard = String::new();
        reader.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "ping", "it was the last open for writing");
    });
}

#[test]
fn messages_do_not_mix_their_descriptors() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let null = null();
        a.send_fds(b"one", &[null.as_fd()]).await.unwrap();
        a.write_all(b"plain").await.unwrap();
        a.send_fds(b"two", &[null.as_fd(), null.as_fd()]).await.unwrap();
        a.send_fds(b"none", &[]).await.unwrap();
        drop(a);
        let (mut bytes, mut counts) = (Vec::new(), Vec::new());
        let mut buf = [0; 64];
        loop {
            let (received, fds) = b.recv_fds(&mut buf, 8).await.unwrap();
            if received == 0 {
                break;
            }
            bytes.extend_from_slice(&buf[..received]);
            if !fds.is_empty() {
                counts.push(fds.len());
            }
        }
        assert_eq!((bytes.as_slice(), counts.as_slice()), (&b"oneplaintwonone"[..], &[1, 2][..]));
    });
}

#[test]
fn each_kind_of_unix_socket_sends_them() {
    in_each_world(|| async {
        let null = null();
        let (a, b) = UnixDatagram::pair().unwrap();
        assert_eq!(a.send_fds(b"", &[null.as_fd()]).await.unwrap(), 0, "a message may be empty");
        let (received, fds) = b.recv_fds(&mut [0; 8], 1).await.unwrap();
        assert_eq!((received, fds.len()), (0, 1));
        #[cfg(target_os = "linux")]
        {
            let (a, b) = mini::net::UnixSeqpacket::pair().unwrap();
            assert_eq!(a.try_send_fds(b"ping", &[null.as_fd(); 3]).unwrap(), 4);
            let (received, fds) = b.try_recv_fds(&mut [0; 8], 3).unwrap();
            assert_eq!((received, fds.len()), (4, 3));
        }
    });
}

#[test]
fn a_receiver_waits_and_a_dropped_one_takes_nothing() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (counts, null) = (Counts::new(), null());
        assert_eq!(kind_of(b.try_recv_fds(&mut [0; 8], 1)), ErrorKind::WouldBlock);
        let mut buf = [0; 8];
        assert!(poll_with(&mut b.recv_fds(&mut buf, 1), &counts).is_pending());
        let mut waiting = b.recv_fds(&mut buf, 1);
        assert!(poll_with(&mut waiting, &counts).is_pending());
        a.send_fds(b"ping", &[null.as_fd()]).await.unwrap();
        let (received, fds) = waiting.await.unwrap();
        assert_eq!((received, fds.len()), (4, 1));
    });
}

#[test]
fn a_sender_waits_for_room_and_a_dropped_one_sends_nothing() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (counts, null) = (Counts::new(), null());
        let mut filled = 0;
        while let Ok(more) = a.try_write(&[7; 4096]) {
            filled += more;
        }
        assert_eq!(kind_of(a.try_send_fds(b"!", &[null.as_fd()])), ErrorKind::WouldBlock);
        assert!(poll_with(&mut a.send_fds(b"dropped", &[null.as_fd()]), &counts).is_pending());
        let fds = [null.as_fd()];
        let mut waiting = a.send_fds(b"ping", &fds);
        assert!(poll_with(&mut waiting, &counts).is_pending());
        let mut buf = vec![0; filled];
        b.read_exact(&mut buf).await.unwrap();
        assert_eq!(waiting.await.unwrap(), 4);
        let (received, fds) = b.recv_fds(&mut buf, 8).await.unwrap();
        assert_eq!((&buf[..received], fds.len()), (&b"ping"[..], 1));
    });
}

#[test]
fn what_cannot_be_sent_is_refused() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let null = null();
        assert_eq!(kind_of(a.send_fds(b"", &[null.as_fd()]).await), ErrorKind::InvalidInput);
        let error = a.send_fds(b"!", &[null.as_fd(); 254]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("253"), "{error}");
        assert_eq!(a.send_fds(b"!", &vec![null.as_fd(); 253]).await.unwrap(), 1);
        let (received, fds) = b.recv_fds(&mut [0; 8], usize::MAX).await.unwrap();
        assert_eq!((received, fds.len()), (1, 253));
        // Not by a drop: a child that another test has just forked has the file open too, until it runs its program.
        b.shutdown(Shutdown::Both).unwrap();
        assert_eq!(kind_of(a.send_fds(b"!", &[null.as_fd()]).await), ErrorKind::BrokenPipe);
    });
}

#[test]
fn nothing_stays_open_of_a_message_with_too_many() {
    in_child("nothing_stays_open_of_a_message_with_too_many", || {
        mini::block_on(async {
            let (a, b) = UnixStream::pair().unwrap();
            let null = null();
            let mut buf = [0; 8];
            let before = open_files();
            for (sent, max) in [(1, 0), (2, 1), (3, 2), (4, 1), (253, 252), (253, 0)] {
                a.send_fds(b"!", &vec![null.as_fd(); sent]).await.unwrap();
                assert_eq!(kind_of(b.recv_fds(&mut buf, max).await), ErrorKind::InvalidData);
                assert_eq!(open_files(), before, "{sent} sent, {max} wanted");
                // The connection goes on.
                a.send_fds(b"next", &[null.as_fd()]).await.unwrap();
                let (received, fds) = b.recv_fds(&mut buf, 1).await.unwrap();
                assert_eq!((received, fds.len()), (4, 1));
            }
            // A plain read drops them, and so does closing the socket unread.
            a.send_fds(b"!", &[null.as_fd()]).await.unwrap();
            assert_eq!(b.read(&mut buf).await.unwrap(), 1);
            a.send_fds(b"!", &[null.as_fd()]).await.unwrap();
            drop((a, b));
            assert_eq!(open_files(), before - 2);
        });
    });
}

#[test]
fn a_process_without_room_for_them_gets_none() {
    in_child("a_process_without_room_for_them_gets_none", || {
        mini::block_on(async {
            let (a, b) = UnixStream::pair().unwrap();
            let null = null();
            a.send_fds(b"!", &[null.as_fd(); 8]).await.unwrap();
            // The lowest number that is free, and three more, are allowed.
            let next = null.try_clone().unwrap().as_raw_fd() as u64;
            let before = open_files();
            let limit = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(next + 4), maximum: limit.maximum }).unwrap();
            let received = b.recv_fds(&mut [0; 8], 8).await;
            setrlimit(Resource::Nofile, limit).unwrap();
            assert_eq!(kind_of(received), ErrorKind::InvalidData);
            assert_eq!(open_files(), before);
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn credentials_beside_them_do_not_disturb() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        rustix::net::sockopt::set_socket_passcred(&b, true).unwrap();
        for max in [1, 8] {
            a.send_fds(b"!", &[null().as_fd()]).await.unwrap();
            let (received, fds) = b.recv_fds(&mut [0; 8], max).await.unwrap();
            assert_eq!((received, fds.len()), (1, 1));
        }
    });
}

#[test]
fn descriptors_can_be_kept_and_sent_on() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (c, d) = UnixStream::pair().unwrap();
        // A socket through a socket, and data through that.
        a.send_fds(b"!", &[c.as_fd()]).await.unwrap();
        drop(c);
        let (_, fds): (usize, Vec<OwnedFd>) = b.recv_fds(&mut [0; 8], 1).await.unwrap();
        let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        b.send_fds(b"back", &borrowed).await.unwrap();
        drop(fds);
        let (_, mut fds) = a.recv_fds(&mut [0; 8], 1).await.unwrap();
        let std: std::os::unix::net::UnixStream = fds.remove(0).into();
        let c = UnixStream::from_std(std).unwrap();
        c.write_all(b"ping").await.unwrap();
        assert_eq!(d.read(&mut [0; 8]).await.unwrap(), 4);
    });
}
