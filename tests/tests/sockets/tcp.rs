//! One TCP connection: parts of messages, closing in all ways, peeking, readiness, options, a way out and back in.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::AsyncWriteExt;
use mini::io::Interest;
use mini::net::{TcpListener, TcpSocket, TcpStream};
use mini_tests::net_support::{
    ANY_PORT, Words, in_each_runtime, in_each_world, kind_of, narrow_tcp_pair, tcp_pair, watched,
};
use mini_tests::{Counts, oneshot, poll_with, until};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, socket};

#[test]
fn a_read_takes_what_there_is() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        client.write_all(b"0123456789").await.unwrap();
        let mut buf = [0; 4];
        for expected in [&b"0123"[..], b"4567", b"89"] {
            let received = server.read(&mut buf).await.unwrap();
            assert_eq!(&buf[..received], expected);
        }
        assert_eq!(client.write(b"").await.unwrap(), 0);
        assert_eq!(kind_of(server.try_read(&mut buf)), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_read_without_room_has_nothing_to_wait_for() {
    in_each_world(|| async {
        let (_client, server) = tcp_pair().await;
        assert_eq!(server.read(&mut []).await.unwrap(), 0);
        assert_eq!(server.read_vectored(&mut []).await.unwrap(), 0);
        assert_eq!(server.try_read(&mut []).unwrap(), 0);
        server.read_exact(&mut []).await.unwrap();
    });
}

#[test]
fn read_exact_gathers_pieces() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let sent = Words::new(1).take(1000);
        let expected = sent.clone();
        let writer = mini::spawn(async move {
            client.set_nodelay(true).unwrap();
            for byte in sent.chunks(1) {
                client.write_all(byte).await.unwrap();
            }
            client.write_all(b"the rest").await.unwrap();
        });
        let mut buf = vec![0; 1000];
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(buf, expected);
        writer.await.unwrap();
        assert_eq!(kind_of(server.read_exact(&mut buf[..9]).await), ErrorKind::UnexpectedEof);
        assert_eq!(&buf[..8], b"the rest");
        server.read_exact(&mut []).await.unwrap();
    });
}

#[test]
fn vectored_calls_fill_one_buffer_after_the_other() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let (mut first, mut second) = ([0; 3], [0; 5]);
        let mut into = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let reads = Counts::new();
        let mut read = server.read_vectored(&mut into);
        assert!(poll_with(&mut read, &reads).is_pending());
        let sent = client.write_vectored(&[IoSlice::new(b"pi"), IoSlice::new(b""), IoSlice::new(b"ng!")]).await;
        assert_eq!(sent.unwrap(), 5);
        assert_eq!(read.await.unwrap(), 5);
        assert_eq!((&first, &second[..2]), (b"pin", &b"g!"[..]));
    });
}

#[test]
fn a_vectored_write_takes_no_more_slices_than_a_call_does() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let (long, mut buf) = ([b'x'; 2_000], [0; 2_000]);
        let mut out = vec![IoSlice::new(b""); 1_500];
        (out[0], out[1_400]) = (IoSlice::new(b"ping"), IoSlice::new(&long));
        assert_eq!(client.write_vectored(&out).await.unwrap(), 4);
        assert_eq!(client.try_write_vectored(&vec![IoSlice::new(b"."); 1_500]).unwrap(), 1_024);
        server.read_exact(&mut buf[..1_028]).await.unwrap();
        assert_eq!(&buf[..5], b"ping.");
        assert_eq!(kind_of(server.try_read(&mut buf)), ErrorKind::WouldBlock);
    });
}

#[test]
fn each_half_closes_alone() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let mut buf = [0; 16];
        client.write_all(b"last words").await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind_of(client.write(b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(server.read(&mut buf).await.unwrap(), 10);
        for _ in 0..3 {
            assert_eq!(server.read(&mut buf).await.unwrap(), 0, "the end stays");
        }

        let answered = Counts::new();
        let mut answer = [0; 6];
        let mut read = client.read_exact(&mut answer);
        assert!(poll_with(&mut read, &answered).is_pending());
        server.write_all(b"answer").await.unwrap();
        read.await.unwrap();
        assert_eq!(&answer, b"answer");
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn the_end_wakes_a_waiting_reader() {
    in_each_world(|| async {
        for drop_it in [false, true] {
            let (client, server) = tcp_pair().await;
            let (waits, waiting) = oneshot();
            let reader = mini::spawn(async move {
                let mut waits = Some(waits);
                watched(server.read(&mut [0; 4]), || waits.take().into_iter().for_each(|it| it.send(()))).await
            });
            waiting.await;
            if drop_it {
                drop(client);
                assert_eq!(reader.await.unwrap().unwrap(), 0);
            } else {
                client.shutdown(Shutdown::Write).unwrap();
                assert_eq!(reader.await.unwrap().unwrap(), 0);
            }
        }
    });
}

#[test]
fn a_shutdown_by_another_task_wakes_the_reader() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let server = Arc::new(server);
        for how in [Shutdown::Read, Shutdown::Both] {
            let (waits, waiting) = oneshot();
            let reader = mini::spawn({
                let server = server.clone();
                async move {
                    let mut waits = Some(waits);
                    watched(server.readable(), || waits.take().into_iter().for_each(|it| it.send(()))).await?;
                    server.read(&mut [0; 4]).await
                }
            });
            if how == Shutdown::Read {
                waiting.await;
            }
            server.shutdown(how).unwrap();
            assert_eq!(reader.await.unwrap().unwrap(), 0);
        }
        assert_eq!(kind_of(server.write(b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
    });
}

#[test]
fn a_reset_is_an_error_for_who_waits_and_who_comes_later() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let (waits, waiting) = oneshot();
        let reader = mini::spawn(async move {
            let mut waits = Some(waits);
            let read = watched(server.read(&mut [0; 4]), || waits.take().into_iter().for_each(|it| it.send(()))).await;
            (read, server)
        });
        waiting.await;
        client.set_linger(Some(Duration::ZERO)).unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
        drop(client);
        let (read, server) = reader.await.unwrap();
        assert_eq!(kind_of(read), ErrorKind::ConnectionReset);
        assert_eq!(kind_of(server.write(b"ping").await), ErrorKind::BrokenPipe);
        assert_eq!(kind_of(server.peer_addr()), ErrorKind::NotConnected);

        let (client, server) = tcp_pair().await;
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(kind_of(server.read_exact(&mut [0; 4]).await), ErrorKind::ConnectionReset);
    });
}

#[test]
fn after_a_reset_writing_has_ended_or_cannot_end() {
    in_each_world(|| async {
        for has_ended in [false, true] {
            let (client, server) = tcp_pair().await;
            if has_ended {
                client.shutdown(Shutdown::Write).unwrap();
            }
            server.set_linger(Some(Duration::ZERO)).unwrap();
            drop(server);
            assert_eq!(kind_of(client.read(&mut [0; 8]).await), ErrorKind::ConnectionReset);
            match has_ended {
                true => client.shutdown(Shutdown::Write).expect("it is not asked of the system again"),
                false => assert_eq!(kind_of(client.shutdown(Shutdown::Write)), ErrorKind::NotConnected),
            }
            (&client).close().await.expect("that the peer is gone is as good");
        }
    });
}

#[test]
fn an_end_of_writing_that_failed_is_tried_again() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let client = TcpStream::from_std(socket.into()).unwrap();
        assert_eq!(kind_of(client.shutdown(Shutdown::Write)), ErrorKind::NotConnected);
        let begun = rustix::net::connect(&client, &listener.local_addr().unwrap());
        assert!(matches!(begun, Ok(()) | Err(rustix::io::Errno::INPROGRESS)), "{begun:?}");
        let (server, _) = listener.accept().await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_reset_wakes_a_waiting_writer() {
    in_each_world(|| async {
        let (client, server) = narrow_tcp_pair().await;
        server.set_linger(Some(Duration::ZERO)).unwrap();
        let (waits, waiting) = oneshot();
        let writer = mini::spawn(async move {
            let mut waits = Some(waits);
            let much = vec![0; 64 << 20];
            watched(client.write_all(&much), || waits.take().into_iter().for_each(|it| it.send(()))).await
        });
        waiting.await;
        drop(server);
        let kind = kind_of(writer.await.unwrap());
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind:?}");
    });
}

#[test]
fn a_peek_leaves_what_it_saw() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let counts = Counts::new();
        let (mut short, mut buf) = ([0; 2], [0; 16]);
        let mut peek = server.peek(&mut short);
        assert!(poll_with(&mut peek, &counts).is_pending());
        client.write_all(b"ping").await.unwrap();
        assert_eq!(peek.await.unwrap(), 2);
        for _ in 0..3 {
            assert_eq!(server.peek(&mut buf).await.unwrap(), 4);
            assert_eq!(&buf[..4], b"ping");
        }
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        assert!(poll_with(&mut server.peek(&mut buf), &counts).is_pending());
        drop(client);
        assert_eq!(server.peek(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn readiness_comes_and_goes() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let counts = Counts::new();
        let both = Interest::READABLE | Interest::WRITABLE;
        let mut buf = [0; 16];

        server.writable().await.unwrap();
        let ready = server.ready(both).await.unwrap();
        assert!(ready.is_writable() && !ready.is_readable());
        assert!(poll_with(&mut server.readable(), &counts).is_pending());
        assert_eq!(kind_of(server.try_read(&mut buf)), ErrorKind::WouldBlock);

        assert_eq!(client.try_write(b"ping").unwrap(), 4);
        server.readable().await.unwrap();
        assert!(server.ready(both).await.unwrap().is_readable());
        assert_eq!(server.try_read(&mut buf[..3]).unwrap(), 3);
        server.readable().await.unwrap();
        assert_eq!(server.try_read_vectored(&mut [IoSliceMut::new(&mut buf)]).unwrap(), 1);
        if cfg!(any(mini_kqueue_shim, not(any(target_os = "linux", target_os = "android")))) {
            // A short read says nothing there.
            assert_eq!(kind_of(server.try_read(&mut buf)), ErrorKind::WouldBlock);
        }
        assert!(poll_with(&mut server.readable(), &counts).is_pending());

        assert_eq!(client.try_write_vectored(&[IoSlice::new(b"po"), IoSlice::new(b"ng")]).unwrap(), 4);
        client.shutdown(Shutdown::Write).unwrap();
        until(|| {
            matches!(poll_with(&mut server.ready(Interest::READABLE), &counts),
            std::task::Poll::Ready(Ok(ready)) if ready.is_readable() && ready.is_read_closed())
        })
        .await;
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        assert_eq!(server.try_read(&mut buf).unwrap(), 0);
        server.readable().await.unwrap();
    });
}

#[test]
fn a_full_buffer_is_not_writable_until_somebody_reads() {
    in_each_world(|| async {
        let (client, server) = narrow_tcp_pair().await;
        let (counts, block) = (Counts::new(), [7; 8 << 10]);
        let mut sent = 0;
        // Bytes that leave the buffer make room once more; in the end there is none.
        while client.try_write(&block).inspect(|written| sent += written).is_ok()
            || poll_with(&mut client.writable(), &counts).is_ready()
        {
            assert!(sent < 64 << 20, "the buffer has no end");
        }
        let reader = mini::spawn(async move {
            let (mut buf, mut received) = ([0; 1 << 10], 0);
            while let read @ 1.. = server.read(&mut buf).await.unwrap() {
                received += read;
            }
            received
        });
        client.writable().await.unwrap();
        let more = client.write(&block).await.unwrap();
        assert!(more > 0);
        drop(client);
        assert_eq!(reader.await.unwrap(), sent + more);
    });
}

// Not in simulations: a descriptor stands for nothing in a simulation.
#[test]
fn operations_of_ones_own_wait_like_the_others() {
    in_each_runtime(|| async {
        let (client, server) = tcp_pair().await;
        let counts = Counts::new();
        let mut buf = [0; 4];
        let mut calls = 0;
        let recv = |buf: &mut [u8]| Ok(rustix::net::recv(&server, buf, RecvFlags::empty())?.0);
        assert_eq!(kind_of(server.try_io(Interest::READABLE, || recv(&mut buf))), ErrorKind::WouldBlock);

        let mut received = server.async_io(Interest::READABLE, || {
            calls += 1;
            recv(&mut buf)
        });
        assert!(poll_with(&mut received, &counts).is_pending());
        assert!(poll_with(&mut received, &counts).is_pending());
        let send = || Ok(rustix::net::send(&client, b"ping", SendFlags::NOSIGNAL)?);
        assert_eq!(client.async_io(Interest::WRITABLE, send).await.unwrap(), 4);
        assert_eq!(received.await.unwrap(), 4);
        assert_eq!((calls, &buf), (2, b"ping"), "not called while there was nothing new");
    });
}

#[test]
fn options_are_kept_by_what_the_socket_becomes() {
    in_each_world(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        for on in [false, true] {
            socket.set_reuseaddr(on).unwrap();
            socket.set_reuseport(on).unwrap();
            socket.set_keepalive(on).unwrap();
            socket.set_nodelay(on).unwrap();
            let told = (socket.reuseaddr(), socket.reuseport(), socket.keepalive(), socket.nodelay());
            assert_eq!((told.0.unwrap(), told.1.unwrap(), told.2.unwrap(), told.3.unwrap()), (on, on, on, on));
        }
        socket.set_send_buffer_size(32 << 10).unwrap();
        socket.set_recv_buffer_size(32 << 10).unwrap();
        assert!(socket.send_buffer_size().unwrap() >= 32 << 10);
        assert!(socket.recv_buffer_size().unwrap() >= 32 << 10);
        socket.bind(ANY_PORT.parse().unwrap()).unwrap();
        let addr = socket.local_addr().unwrap();
        let listener = socket.listen(8).unwrap();
        assert_eq!(listener.local_addr().unwrap(), addr);

        let other = TcpSocket::new_v4().unwrap();
        assert_eq!(kind_of(other.bind(addr)), ErrorKind::AddrInUse);
        other.set_reuseport(true).unwrap();
        other.bind(addr).expect("both have asked to share");
        drop(other);

        let socket = TcpSocket::new_v4().unwrap();
        socket.set_nodelay(true).unwrap();
        let client = socket.connect(addr).await.unwrap();
        assert!(client.nodelay().unwrap());
        client.set_nodelay(false).unwrap();
        assert!(!client.nodelay().unwrap());
        client.set_ttl(17).unwrap();
        assert_eq!(client.ttl().unwrap(), 17);
        assert_eq!(client.linger().unwrap(), None);
        assert!(client.take_error().unwrap().is_none());
        assert_eq!(client.peer_addr().unwrap(), addr);
        assert!(format!("{client:?}").contains(&addr.to_string()));
    });
}

// Not in simulations: a simulated socket cannot leave.
#[test]
fn a_stream_leaves_and_comes_back_with_data_on_its_way() {
    in_each_runtime(|| async {
        let (client, mut server) = tcp_pair().await;
        let counts = Counts::new();
        let mut buf = [0; 4];
        for round in 0..3 {
            assert!(poll_with(&mut server.read(&mut buf), &counts).is_pending(), "it has joined the runtime");
            client.write_all(b"pingpong").await.unwrap();
            if round == 1 {
                server.readable().await.unwrap();
            }
            let mut outside: std::net::TcpStream = server.into_std().unwrap();
            outside.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, b"ping");
            outside.write_all(b"hello").unwrap();
            server = TcpStream::from_std(outside).unwrap();
            server.read_exact(&mut buf).await.unwrap();
            assert_eq!(&buf, b"pong");
            let mut answer = [0; 5];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"hello");
        }
    });
}

// Not in simulations: a socket of the system is not in the simulated network.
#[test]
fn a_socket_made_elsewhere_connects_here() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let plain = || rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let fd = plain();
        assert!(!fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
        let socket = TcpSocket::from_std_stream(fd.into()).unwrap();
        assert!(fcntl_getfl(&socket).unwrap().contains(OFlags::NONBLOCK));
        let client = socket.connect(addr).await.unwrap();
        let (_server, from) = listener.accept().await.unwrap();
        assert_eq!(client.local_addr().unwrap(), from);

        let socket = TcpSocket::from_std_stream(plain().into()).unwrap();
        assert_eq!(kind_of(socket.bind(addr)), ErrorKind::AddrInUse);
    });
}

// Not in simulations: a socket of the system is not in the simulated network.
#[test]
fn sockets_come_from_the_standard_library_and_go_there() {
    in_each_runtime(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener: TcpListener = listener.try_into().unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let client = TcpStream::try_from(client).unwrap();
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"hello").await.unwrap();
        let mut server = std::net::TcpStream::try_from(server).unwrap();
        let mut buf = [0; 5];
        std::io::Read::read_exact(&mut server, &mut buf).unwrap();
        assert_eq!(&buf, b"hello");
    });
}
