//! Unix sockets: by path, by abstract name, in pairs; their errors, and what happens when a queue is full.

#![allow(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mini::net::{UnixDatagram, UnixListener, UnixStream, lookup_host};
use mini::time::{Duration, Instant, pause, sleep, timeout};
use mini_tests::net_support::{ScratchPath, in_each_runtime, in_each_world, kind_of, open_files};
use mini_tests::{Counts, LIMIT, block_on_elsewhere, in_child, on_each_flavour, poll_with, until, within};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};

/// std has no address for a name that fills all of its place. A peer may have one.
#[cfg(target_os = "linux")]
#[test]
fn a_peer_whose_path_fills_its_place_is_served_as_one_without_a_name() {
    use std::os::fd::{AsRawFd, OwnedFd};

    fn bind_long(socket: &OwnedFd, long: &str) {
        let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as _, sun_path: [0; 108] };
        assert_eq!(long.len(), address.sun_path.len());
        for (to, from) in address.sun_path.iter_mut().zip(long.bytes()) {
            *to = from as _;
        }
        let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: the pointer and the length are those of `address`. Test: this one.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    in_each_runtime(|| async {
        let (path, long) = (ScratchPath::new("listener"), ScratchPath::new("long"));
        let long = format!("{:x<108}", long.as_ref().display());
        for kind in [SocketType::STREAM, SocketType::DGRAM] {
            let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap();
            bind_long(&socket, &long);
            let server = SocketAddrUnix::new(path.as_ref()).unwrap();
            if kind == SocketType::STREAM {
                let listener = UnixListener::bind(&path).unwrap();
                rustix::net::connect(&socket, &server).unwrap();
                let (stream, from) = listener.accept().await.unwrap();
                assert!(from.is_unnamed() && stream.peer_addr().unwrap().is_unnamed());
            } else {
                let datagrams = UnixDatagram::bind(&path).unwrap();
                rustix::net::sendto(&socket, b"ping", SendFlags::empty(), &server).unwrap();
                let mut buf = [0; 8];
                let (length, from) = datagrams.recv_from(&mut buf).await.unwrap();
                assert!(from.is_unnamed() && &buf[..length] == b"ping");
            }
            std::fs::remove_file(&path).unwrap();
            std::fs::remove_file(&long).unwrap();
        }
    });
}

// Not in simulations: a path is no file there.
#[test]
fn a_listener_has_a_path_that_outlives_it() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("listener");
        assert_eq!(kind_of(UnixStream::connect(&path).await), ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_ref()));
        assert_eq!(kind_of(UnixListener::bind(&path)), ErrorKind::AddrInUse);

        let client = UnixStream::connect(&path).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed());
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_ref()));
        client.write_all(b"ping").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);

        drop(listener);
        assert!(path.as_ref().exists());
        assert_eq!(kind_of(UnixStream::connect(&path).await), ErrorKind::ConnectionRefused);
        assert_eq!(kind_of(UnixListener::bind(&path)), ErrorKind::AddrInUse);
        server.write_all(b"pong").await.expect("connections outlive the listener too");
        assert_eq!(client.read(&mut buf).await.unwrap(), 4);
        std::fs::remove_file(&path).unwrap();
        UnixListener::bind(&path).unwrap();
    });
}

// Not in simulations: a path is no file there.
#[test]
fn paths_that_cannot_be_are_refused() {
    in_each_runtime(|| async {
        let long = "x".repeat(200);
        for path in [long.as_str(), "with\0zero", ""] {
            assert_eq!(kind_of(UnixListener::bind(path)), ErrorKind::InvalidInput);
            assert_eq!(kind_of(UnixStream::connect(path).await), ErrorKind::InvalidInput);
            assert_eq!(kind_of(UnixDatagram::bind(path)), ErrorKind::InvalidInput);
            let socket = UnixDatagram::unbound().unwrap();
            assert_eq!(kind_of(socket.send_to(b"ping", path).await), ErrorKind::InvalidInput);
            assert_eq!(kind_of(socket.connect(path)), ErrorKind::InvalidInput);
        }
        assert_eq!(kind_of(UnixListener::bind("/there/is/no/such/directory")), ErrorKind::NotFound);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_names_leave_nothing_behind() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    in_each_world(|| async {
        let unique = ScratchPath::new("abstract");
        let name = unique.as_ref().as_os_str().as_encoded_bytes();
        let addr = SocketAddr::from_abstract_name(name).unwrap();
        assert_eq!(kind_of(UnixStream::connect_addr(&addr).await), ErrorKind::ConnectionRefused);
        let listener = UnixListener::bind_addr(&addr).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_abstract_name(), Some(name));
        assert_eq!(kind_of(UnixListener::bind_addr(&addr)), ErrorKind::AddrInUse);
        let client = UnixStream::connect_addr(&addr).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_abstract_name(), Some(name));
        client.write_all(b"ping").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 4);
        drop((listener, server));

        let (a, b) = (UnixDatagram::bind_addr(&addr).unwrap(), UnixDatagram::unbound().unwrap());
        b.connect_addr(&addr).unwrap();
        b.send(b"ping").await.unwrap();
        assert_eq!(a.recv(&mut [0; 8]).await.unwrap(), 4);
        assert!(!unique.as_ref().exists());

        let unnamed = b.local_addr().unwrap();
        assert_eq!(kind_of(UnixListener::bind_addr(&unnamed)), ErrorKind::InvalidInput);
        assert_eq!(kind_of(UnixStream::connect_addr(&unnamed).await), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_pair_closes_in_halves_and_then_altogether() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut buf = [0; 8];
        assert!(a.local_addr().unwrap().is_unnamed());
        a.write_all(b"ping").await.unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        assert_eq!(b.read(&mut buf).await.unwrap(), 4);
        assert_eq!(b.read(&mut buf).await.unwrap(), 0);
        b.write_all(b"pong").await.unwrap();
        assert_eq!(a.read(&mut buf).await.unwrap(), 4);

        let counts = Counts::new();
        let mut read = a.read(&mut buf);
        assert!(poll_with(&mut read, &counts).is_pending());
        drop(b);
        assert_eq!(read.await.unwrap(), 0);
        assert_eq!(kind_of(a.write(b"more").await), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_full_stream_stops_the_writer_and_nothing_is_lost() {
    const BLOCK: usize = 8 << 10;
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let counts = Counts::new();
        let mut sent = 0;
        while let Ok(written) = a.try_write(&[7; BLOCK]) {
            sent += written;
        }
        assert!(sent > 0);
        let mut write = a.write(&[8; BLOCK]);
        assert!(poll_with(&mut write, &counts).is_pending());
        let mut buf = vec![0; sent];
        b.read_exact(&mut buf).await.unwrap();
        assert!(buf.iter().all(|&byte| byte == 7));
        until(|| counts.wakes() == 1).await;
        assert_eq!(write.await.unwrap(), BLOCK);
        b.read_exact(&mut buf[..BLOCK]).await.unwrap();
        assert!(buf[..BLOCK].iter().all(|&byte| byte == 8));
    });
}

#[test]
fn datagrams_keep_their_boundaries_and_their_order() {
    in_each_world(|| async {
        let (to, from) = (ScratchPath::new("to"), ScratchPath::new("from"));
        let (a, b) = (UnixDatagram::bind(&to).unwrap(), UnixDatagram::bind(&from).unwrap());
        let mut buf = [0; 4];
        for message in [&b"0123456789"[..], b"", b"two"] {
            assert_eq!(b.send_to(message, &to).await.unwrap(), message.len());
        }
        for expected in [&b"0123"[..], b"", b"two"] {
            let (received, sender) = a.recv_from(&mut buf).await.unwrap();
            assert_eq!(&buf[..received], expected);
            assert_eq!(sender.as_pathname(), Some(from.as_ref()));
        }
        assert_eq!(kind_of(a.try_recv_from(&mut buf)), ErrorKind::WouldBlock);
        assert_eq!(b.try_send_to(b"more", &to).unwrap(), 4);
        assert_eq!(a.peek(&mut buf).await.unwrap(), 4);
        assert_eq!(a.recv(&mut buf).await.unwrap(), 4);
    });
}

// Not in simulations: a path is no file there.
#[test]
fn datagrams_have_errors_for_nobody_there() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("gone");
        let socket = UnixDatagram::unbound().unwrap();
        assert_eq!(kind_of(socket.send_to(b"ping", &path).await), ErrorKind::NotFound);
        assert_eq!(kind_of(socket.send(b"ping").await), ErrorKind::NotConnected);
        drop(UnixDatagram::bind(&path).unwrap());
        assert_eq!(kind_of(socket.connect(&path)), ErrorKind::ConnectionRefused);
        assert_eq!(kind_of(UnixDatagram::bind(&path)), ErrorKind::AddrInUse);

        let (a, b) = UnixDatagram::pair().unwrap();
        drop(b);
        assert_eq!(kind_of(a.send(b"ping").await), ErrorKind::ConnectionRefused);
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue is an error there")]
fn a_sender_waits_for_room_with_its_peer() {
    in_each_world(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let counts = Counts::new();
        let mut sent = 0u32;
        while a.try_send(&sent.to_ne_bytes()).is_ok() {
            sent += 1;
        }
        let message = sent.to_ne_bytes();
        let mut send = a.send(&message);
        assert!(poll_with(&mut send, &counts).is_pending());
        let mut buf = [0; 4];
        for number in 0..sent {
            b.recv(&mut buf).await.unwrap();
            assert_eq!(u32::from_ne_bytes(buf), number);
        }
        until(|| counts.wakes() == 1).await;
        send.await.unwrap();
        b.recv(&mut buf).await.unwrap();
        assert_eq!(u32::from_ne_bytes(buf), sent);
    });
}

/// The kernel tells of room in a queue only to sockets that are connected to it, or have messages in it. To other
/// senders it says, after each try, that their own buffer has room; so they try again and again, and succeed in the
/// end.
#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue is an error there")]
fn a_sender_waits_for_room_with_somebody_it_is_not_connected_to() {
    in_each_world(|| async {
        let path = ScratchPath::new("full");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let (greedy, late) = (UnixDatagram::unbound().unwrap(), UnixDatagram::unbound().unwrap());
        let mut sent = 0;
        while greedy.try_send_to(b"spam", &path).is_ok() {
            sent += 1;
        }
        let counts = Counts::new();
        let mut send = late.send_to(b"late", &path);
        assert!(poll_with(&mut send, &counts).is_pending());
        let mut wakes = 0;
        // Many times as often as needed to hear of readiness.
        for _ in 0..500 {
            mini::task::yield_now().await;
            if counts.wakes() > wakes {
                wakes = counts.wakes();
                assert!(poll_with(&mut send, &counts).is_pending());
            }
        }
        let mut buf = [0; 8];
        for _ in 0..sent {
            receiver.recv(&mut buf).await.unwrap();
        }
        assert_eq!(send.await.unwrap(), 4);
        assert_eq!(receiver.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"late");
    });
}

/// A listener with room for one connection, which is taken.
async fn full_listener(path: &ScratchPath) -> (UnixListener, UnixStream) {
    let listener = UnixListener::bind(path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let first = UnixStream::connect(path).await.unwrap();
    (listener, first)
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn a_connect_waits_for_room_in_the_queue() {
    in_each_world(|| async {
        let path = ScratchPath::new("queue");
        let (listener, _first) = full_listener(&path).await;
        let counts = Counts::new();
        let mut second = UnixStream::connect(&path);
        assert!(poll_with(&mut second, &counts).is_pending());
        let mut given_up = UnixStream::connect(&path);
        assert!(poll_with(&mut given_up, &counts).is_pending());
        drop(given_up);

        let _server = listener.accept().await.unwrap();
        let second = second.await.unwrap();
        second.write_all(b"ping").await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let mut buf = [0; 4];
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"ping");
    });
}

/// One listener that hangs is no reason for jobs, files and lookups to wait.
#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn connects_that_wait_for_room_leave_the_blocking_pool_to_others() {
    on_each_flavour(|mut builder| {
        builder.max_blocking_threads(1).build().unwrap().block_on(async {
            let path = ScratchPath::new("queue-pool");
            let (listener, _first) = full_listener(&path).await;
            let mut waiting: Vec<_> = (0..3).map(|_| UnixStream::connect(&path)).collect();
            for connect in &mut waiting {
                assert!(poll_with(connect, &Counts::new()).is_pending());
            }
            assert_eq!(mini::spawn_blocking(|| 7).await.unwrap(), 7);
            assert!(mini::fs::canonicalize(&path).await.is_ok());
            assert!(lookup_host("localhost:80").await.is_ok());
            for connect in waiting {
                listener.accept().await.unwrap();
                connect.await.unwrap();
            }
        });
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn a_connect_tries_again_after_delays_that_double_up_to_a_limit() {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            let path = ScratchPath::new("queue-delays");
            let (listener, _first) = full_listener(&path).await;
            let begin = Instant::now();
            let accepted = mini::spawn(async move {
                sleep(Duration::from_millis(250)).await;
                listener.accept().await.unwrap();
                listener
            });
            UnixStream::connect(&path).await.unwrap();
            // At 1, 3, 7, 15, 31, 63 and 127 ms, and then each 100 ms.
            assert_eq!(begin.elapsed().as_millis(), 327);
            let _listener = accepted.await.unwrap();
            assert!(timeout(Duration::from_secs(1), UnixStream::connect(&path)).await.is_err());
        });
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn a_connect_in_a_full_queue_ends_with_its_runtime() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let path = ScratchPath::new("queue-end");
        let mut waiting = UnixStream::connect(&path);
        let counts = Counts::new();
        let _full = runtime.block_on(async {
            let full = full_listener(&path).await;
            assert!(poll_with(&mut waiting, &counts).is_pending());
            full
        });
        let left = runtime.shutdown_timeout(LIMIT / 4);
        assert!(left.is_empty(), "{left}");
        assert_eq!(counts.wakes(), 1);
        let error = block_on_elsewhere(waiting).unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn a_connect_that_is_given_up_leaves_no_descriptor() {
    in_child("a_connect_that_is_given_up_leaves_no_descriptor", || {
        mini::block_on(async {
            let path = ScratchPath::new("queue-given-up");
            let _full = full_listener(&path).await;
            let before = open_files();
            let mut given_up = UnixStream::connect(&path);
            assert!(poll_with(&mut given_up, &Counts::new()).is_pending());
            assert_eq!(open_files(), before + 1);
            drop(given_up);
            assert_eq!(open_files(), before);
        });
    });
}

#[test]
fn a_stream_leaves_and_comes_back_with_data_on_its_way() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let counts = Counts::new();
        let mut buf = [0; 4];
        assert!(poll_with(&mut b.read(&mut buf), &counts).is_pending(), "it has joined the runtime");
        a.write_all(b"pingpong").await.unwrap();
        let mut outside: std::os::unix::net::UnixStream = b.into_std().unwrap();
        outside.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"ping");
        outside.write_all(b"hello").unwrap();
        let b = Arc::new(UnixStream::from_std(outside).unwrap());
        let task = mini::spawn({
            let b = b.clone();
            async move { b.read_exact(&mut [0; 4]).await }
        });
        task.await.unwrap().unwrap();
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 5);
    });
}

// Not in simulations: a path is no file there.
#[test]
fn a_path_is_dropped_when_the_socket_has_been_reached_and_not_before() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("going");
        let name = path.as_ref().to_owned();
        let listener = UnixListener::bind(&name).unwrap();
        let mut connect = UnixStream::connect(path);
        assert!(name.exists());
        let client = (&mut connect).await.unwrap();
        assert!(!name.exists());
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"word").await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();

        let path = ScratchPath::new("going");
        let name = path.as_ref().to_owned();
        let receiver = UnixDatagram::bind(&name).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let mut send = sender.send_to(b"word", path);
        assert!(name.exists());
        assert_eq!((&mut send).await.unwrap(), 4);
        assert!(!name.exists());
        assert_eq!(receiver.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}
