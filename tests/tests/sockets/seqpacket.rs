//! Seqpacket sockets, the addresses of datagrams, and the credentials of the peer of a connection.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use mini::io::Interest;
use mini::net::{UnixDatagram, UnixListener, UnixSeqpacket, UnixSeqpacketListener, UnixStream};
use mini_tests::net_support::{ScratchPath, in_each_runtime, in_each_world, kind_of};
use mini_tests::{Counts, poll_with};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};

#[test]
fn messages_keep_their_boundaries_over_a_connection() {
    in_each_world(|| async {
        let path = ScratchPath::new("seqpacket");
        assert_eq!(kind_of(UnixSeqpacket::connect(&path).await), ErrorKind::NotFound);
        let listener = UnixSeqpacketListener::bind(&path).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_ref()));
        assert_eq!(kind_of(UnixSeqpacketListener::bind(&path)), ErrorKind::AddrInUse);
        assert!(UnixStream::connect(&path).await.is_err(), "a stream is something else");
        assert_eq!(kind_of(listener.try_accept()), ErrorKind::WouldBlock);
        let client = UnixSeqpacket::connect(&path).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed());
        for fd in [&client, &server] {
            assert!(fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_ref()));
        assert_eq!(client.send(b"one").await.unwrap(), 3);
        assert_eq!(client.send(b"three").await.unwrap(), 5);
        assert_eq!(client.try_send(b"").unwrap(), 0);
        let mut buf = [0; 16];
        assert_eq!(server.peek(&mut buf).await.unwrap(), 3);
        assert_eq!(server.recv(&mut buf).await.unwrap(), 3);
        assert_eq!(server.recv(&mut buf[..2]).await.unwrap(), 2, "what is too long is cut");
        assert_eq!(server.recv_from(&mut buf).await.unwrap().0, 0, "a message may be empty");
        assert_eq!(kind_of(server.try_recv(&mut buf)), ErrorKind::WouldBlock);
        drop(listener);
        assert_eq!(kind_of(UnixSeqpacket::connect(&path).await), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn the_end_of_one_side_wakes_the_other() {
    in_each_world(|| async {
        let (a, b) = UnixSeqpacket::pair().unwrap();
        let counts = Counts::new();
        let mut buf = [0; 16];
        let mut waiting = b.recv(&mut buf);
        assert!(poll_with(&mut waiting, &counts).is_pending());
        a.shutdown(Shutdown::Write).unwrap();
        assert_eq!(waiting.await.unwrap(), 0);
        assert!(b.ready(Interest::READABLE).await.unwrap().is_read_closed());
        b.send(b"still").await.unwrap();
        assert_eq!(a.recv(&mut buf).await.unwrap(), 5);
        drop(a);
        assert_eq!(kind_of(b.send(b"nobody").await), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_full_connection_stops_the_sender_and_loses_nothing() {
    in_each_world(|| async {
        let (a, b) = UnixSeqpacket::pair().unwrap();
        let sending = mini::spawn(async move {
            for number in 0..500u16 {
                let mut message = vec![0; 4096];
                message[..2].copy_from_slice(&number.to_ne_bytes());
                // Either the message is sent at once, or the future is dropped while it waits, and nothing is sent.
                drop(poll_with(&mut a.send(b"never"), &Counts::new()));
                a.send(&message).await.unwrap();
            }
        });
        let mut next = 0u16;
        let mut buf = [0; 8192];
        loop {
            match b.recv(&mut buf).await.unwrap() {
                0 => break,
                5 => assert_eq!(&buf[..5], b"never"),
                length => {
                    assert_eq!((length, u16::from_ne_bytes([buf[0], buf[1]])), (4096, next));
                    next += 1;
                }
            }
        }
        assert_eq!(next, 500);
        sending.await.unwrap();
        let (a, _b) = UnixSeqpacket::pair().unwrap();
        let error = a.send(&vec![0; 8 << 20]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()));
    });
}

// Not in simulations: the listener is made elsewhere.
#[test]
fn a_connect_waits_for_room_in_the_queue() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("seqpacket-queue");
        // A listener with room for few, made elsewhere.
        let fd = rustix::net::socket_with(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        rustix::net::bind(&fd, &rustix::net::SocketAddrUnix::new(path.as_ref()).unwrap()).unwrap();
        rustix::net::listen(&fd, 0).unwrap();
        let listener = UnixSeqpacketListener::from_std(fd).unwrap();
        let _first = UnixSeqpacket::connect(&path).await.unwrap();
        let mut second = UnixSeqpacket::connect(&path);
        assert!(poll_with(&mut second, &Counts::new()).is_pending());
        let _accepted = listener.accept().await.unwrap();
        let second = second.await.unwrap();
        second.send(b"ping").await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn a_seqpacket_leaves_and_comes_back() {
    in_each_world(|| async {
        let (a, b) = UnixSeqpacket::pair().unwrap();
        assert!(poll_with(&mut b.recv(&mut [0; 8]), &Counts::new()).is_pending());
        a.send(b"ping").await.unwrap();
        let fd: OwnedFd = b.into_std().unwrap();
        assert!(!fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
        let b = UnixSeqpacket::from_std(fd).unwrap();
        assert_eq!(b.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn abstract_names_serve_every_unix_socket() {
    in_each_world(|| async {
        let unique = ScratchPath::new("abstract-names");
        let addr = SocketAddr::from_abstract_name(unique.as_ref().as_os_str().as_encoded_bytes()).unwrap();
        let listener = UnixSeqpacketListener::bind_addr(&addr).unwrap();
        let client = UnixSeqpacket::connect_addr(&addr).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        client.send(b"ping").await.unwrap();
        assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 4);
        drop((listener, client, server));

        let (a, b) = (UnixDatagram::bind_addr(&addr).unwrap(), UnixDatagram::unbound().unwrap());
        assert_eq!(b.send_to_addr(b"ping", &addr).await.unwrap(), 4);
        assert_eq!(b.try_send_to_addr(b"pong!", &addr).unwrap(), 5);
        let mut buf = [0; 8];
        assert_eq!(a.try_peek_from(&mut buf).unwrap().0, 4);
        assert_eq!(std::future::poll_fn(|cx| a.poll_peek_from(cx, &mut buf)).await.unwrap().0, 4);
        assert_eq!((a.recv(&mut buf).await.unwrap(), a.recv(&mut buf).await.unwrap()), (4, 5));
        let unnamed = b.local_addr().unwrap();
        assert_eq!(kind_of(b.send_to_addr(b"ping", &unnamed).await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(b.try_send_to_addr(b"ping", &unnamed)), ErrorKind::InvalidInput);
        assert!(!unique.as_ref().exists());
    });
}

#[test]
fn a_datagram_is_sent_by_polling() {
    in_each_world(|| async {
        let path = ScratchPath::new("poll-send");
        let (a, b) = (UnixDatagram::bind(&path).unwrap(), UnixDatagram::unbound().unwrap());
        assert_eq!(std::future::poll_fn(|cx| b.poll_send_to(cx, b"ping", &path)).await.unwrap(), 4);
        assert_eq!(a.recv(&mut [0; 8]).await.unwrap(), 4);
        let error = std::future::poll_fn(|cx| b.poll_send_to(cx, b"ping", "with\0zero")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_connection_tells_who_is_at_its_other_end() {
    in_each_world(|| async {
        let path = ScratchPath::new("cred");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let (packet, _other) = UnixSeqpacket::pair().unwrap();
        let myself = i32::try_from(std::process::id()).unwrap();
        for cred in [client.peer_cred(), server.peer_cred(), packet.peer_cred()] {
            let cred = cred.unwrap();
            assert_eq!(cred.uid(), rustix::process::geteuid().as_raw());
            assert_eq!(cred.gid(), rustix::process::getegid().as_raw());
            assert_eq!(cred.pid(), Some(myself));
            assert!(format!("{cred:?}").contains("uid"));
        }
        assert_eq!(client.peer_cred().unwrap(), server.peer_cred().unwrap());
    });
}
