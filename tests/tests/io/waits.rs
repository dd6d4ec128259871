//! Waits that are given up: a leaf future dropped after a poll has lost nothing and leaves no waker behind; timeouts.

use std::fmt::Debug;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::sync::Arc;
use std::time::Duration;

use mini::io::{AsyncFd, Interest};
use mini::net::{TcpListener, TcpStream, UnixDatagram, UnixListener, UnixStream, lookup_host};
use mini::time::timeout;
use mini_tests::net_support::{
    ANY_PORT, ScratchPath, Words, full_listener, in_each_runtime, in_each_world, narrow_tcp_pair, now, tcp_pair,
    udp_pair,
};
use mini_tests::{Counts, poll_with, until};

/// Polls `wait`, which has to wait, drops it, and checks that nothing holds its waker any more.
fn give_up<T: Debug>(mut wait: impl Future<Output = io::Result<T>> + Unpin) -> Arc<Counts> {
    let counts = Counts::new();
    for _ in 0..2 {
        let polled = poll_with(&mut wait, &counts);
        assert!(polled.is_pending(), "{polled:?}");
    }
    drop(wait);
    assert_eq!(Arc::strong_count(&counts), 1, "a waiter was left behind");
    counts
}

#[test]
fn reads_given_up_take_nothing() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let mut buf = [0; 16];
        let given_up = [
            give_up(server.read(&mut buf)),
            give_up(server.read_vectored(&mut [IoSliceMut::new(&mut [0; 8])])),
            give_up(server.peek(&mut [0; 8])),
            give_up(server.readable()),
            give_up(server.ready(Interest::READABLE)),
            give_up(server.async_io(Interest::READABLE, || Err::<(), _>(ErrorKind::WouldBlock.into()))),
            give_up(server.read_exact(&mut [0; 8])),
        ];
        client.write_all(b"ping").await.unwrap();
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"ping");
        assert!(given_up.iter().all(|counts| counts.wakes() == 0));
    });
}

/// `read_exact` documents that it loses the bytes that it had; it loses no others.
#[test]
fn a_read_exact_given_up_midway_keeps_the_rest_in_place() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        client.write_all(b"pi").await.unwrap();
        server.readable().await.unwrap();
        let mut buf = [0; 4];
        give_up(server.read_exact(&mut buf));
        assert_eq!(&buf[..2], b"pi", "what had arrived is in the buffer");
        client.write_all(b"ngpong").await.unwrap();
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"ngpo");
    });
}

#[test]
fn writes_given_up_send_nothing() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut sent = 0;
        while let Ok(written) = a.try_write(&[1; 4 << 10]) {
            sent += written;
        }
        let given_up = [
            give_up(a.write(&[2; 8])),
            give_up(a.write_vectored(&[IoSlice::new(&[2; 8])])),
            give_up(a.writable()),
            give_up(a.write_all(&[2; 8])),
        ];
        let mut buf = vec![0; sent];
        b.read_exact(&mut buf).await.unwrap();
        a.write_all(&[3; 8]).await.unwrap();
        b.read_exact(&mut buf[..8]).await.unwrap();
        assert_eq!(&buf[..8], &[3; 8]);
        assert!(given_up.iter().all(|counts| counts.wakes() == 0));
    });
}

#[test]
fn a_receive_that_is_given_up_takes_nothing() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let mut buf = [0; 8];
        give_up(b.recv(&mut buf));
        give_up(b.recv_from(&mut buf));
        give_up(b.peek_from(&mut buf));
        a.send(b"ping").await.unwrap();
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue is an error there")]
fn datagrams_for_a_full_queue_that_are_given_up_are_not_sent() {
    in_each_world(|| async {
        let mut buf = [0; 8];
        let path = ScratchPath::new("given-up");
        let (from, to) = (UnixDatagram::unbound().unwrap(), UnixDatagram::bind(&path).unwrap());
        from.connect(&path).unwrap();
        let mut sent = 0;
        while from.try_send(b"one").is_ok() {
            sent += 1;
        }
        give_up(from.send(b"two"));
        give_up(from.send_to(b"two", &path));
        for _ in 0..sent {
            assert_eq!(to.recv(&mut buf).await.unwrap(), 3);
            assert_eq!(&buf[..3], b"one");
        }
        assert_eq!(to.try_recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn an_accept_given_up_leaves_the_connection_to_the_next() {
    in_each_world(|| async {
        let path = ScratchPath::new("accept");
        let (tcp, unix) = (TcpListener::bind(ANY_PORT).await.unwrap(), UnixListener::bind(&path).unwrap());
        let counts = [give_up(tcp.accept()), give_up(unix.accept())];
        let client = TcpStream::connect(tcp.local_addr().unwrap()).await.unwrap();
        let (_server, from) = tcp.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        let _client = UnixStream::connect(&path).await.unwrap();
        unix.accept().await.unwrap();
        assert!(counts.iter().all(|counts| counts.wakes() == 0));
    });
}

#[test]
fn waits_for_descriptors_and_lookups_are_given_up_too() {
    in_each_world(|| async {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        reader.set_nonblocking(true).unwrap();
        let fd = AsyncFd::new(reader).unwrap();
        give_up(fd.readable());
        give_up(fd.async_io(Interest::READABLE, |mut io| io.read(&mut [0; 8])));
        drop(writer);
        assert_eq!(fd.async_io(Interest::READABLE, |mut io| io.read(&mut [0; 8])).await.unwrap(), 0);

        // The job may still be under way, and lets the waker go when it ends.
        let counts = Counts::new();
        drop(poll_with(&mut lookup_host("localhost:80"), &counts));
        drop(poll_with(&mut TcpStream::connect("localhost:1"), &counts));
        until(|| Arc::strong_count(&counts) == 1).await;
    });
}

#[test]
fn a_connect_given_up_leaves_the_queue_to_the_others() {
    in_each_world(|| async {
        let (listener, in_queue) = full_listener().await;
        let counts = Counts::new();
        let mut waiting = TcpStream::connect(listener.local_addr().unwrap());
        assert!(poll_with(&mut waiting, &counts).is_pending());
        assert!(poll_with(&mut waiting, &counts).is_pending());
        drop(waiting);
        assert_eq!(Arc::strong_count(&counts), 1, "a waiter was left behind");
        for client in in_queue {
            let (_server, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
        }
    });
}

// Not in simulations: a poll may be told to yield at any operation.
#[test]
fn who_stays_is_woken_when_another_gives_up() {
    in_each_runtime(|| async {
        let (client, server) = tcp_pair().await;
        let (counts, others) = (Counts::new(), Counts::new());
        let (mut mine, mut theirs) = ([0; 8], [0; 8]);
        let mut stays = server.read(&mut mine);
        let mut goes = server.read(&mut theirs);
        assert!(poll_with(&mut goes, &others).is_pending());
        assert!(poll_with(&mut stays, &counts).is_pending());
        client.write_all(b"ping").await.unwrap();
        until(|| others.wakes() == 1 && counts.wakes() == 1).await;
        // The wait that was woken first is dropped before it has looked.
        drop(goes);
        assert_eq!(now(poll_with(&mut stays, &counts)).unwrap(), 4);
    });
}

#[test]
fn a_future_that_moves_to_another_task_wakes_that() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let (before, mut buf) = (Counts::new(), [0; 8]);
        let mut read = server.read(&mut buf);
        assert!(poll_with(&mut read, &before).is_pending());
        let after = Counts::new();
        assert!(poll_with(&mut read, &after).is_pending());
        assert_eq!(Arc::strong_count(&before), 1, "the former waker was let go");
        client.write_all(b"ping").await.unwrap();
        until(|| after.wakes() == 1).await;
        assert_eq!((before.wakes(), read.await.unwrap()), (0, 4));
    });
}

#[test]
fn a_timeout_around_a_read_ends_it_and_keeps_the_data() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let mut buf = [0; 8];
        assert!(timeout(Duration::from_millis(1), server.read(&mut buf)).await.is_err());
        assert!(timeout(Duration::ZERO, server.read(&mut buf)).await.is_err());
        client.write_all(b"ping").await.unwrap();
        let read = timeout(Duration::from_secs(3600), server.read(&mut buf)).await;
        assert_eq!(read.expect("in time").unwrap(), 4);
    });
}

/// Timeouts that race with the data, at every offset: whichever wins, the stream has no hole.
#[test]
fn timeouts_that_race_with_data_lose_none() {
    const WORDS: usize = 400;
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let writer = mini::spawn(async move {
            let mut words = Words::new(5);
            for word in 0..WORDS {
                client.write_all(&words.take(8)).await.unwrap();
                mini::time::sleep(Duration::from_micros((word as u64 * 37) % 400)).await;
            }
            words.sum()
        });
        let (mut received, mut buf) = (Vec::new(), [0; 64]);
        loop {
            match timeout(Duration::from_micros(100), server.read(&mut buf)).await.map(Result::unwrap) {
                Ok(0) => break,
                Ok(read) => received.extend_from_slice(&buf[..read]),
                Err(_) => {}
            }
        }
        let mut words = Words::new(0);
        words.add(&received);
        assert_eq!((received.len(), words.sum()), (WORDS * 8, writer.await.unwrap()));
    });
}

#[test]
fn a_write_all_given_up_midway_leaves_a_stream_that_works() {
    in_each_world(|| async {
        let (client, server) = narrow_tcp_pair().await;
        let much = vec![7; 16 << 20];
        give_up(client.write_all(&much));
        drop(client);
        let (mut buf, mut received) = (vec![0; 64 << 10], 0);
        while let read @ 1.. = server.read(&mut buf).await.unwrap() {
            assert!(buf[..read].iter().all(|&byte| byte == 7));
            received += read;
        }
        assert!(received > 0 && received < much.len());
    });
}
