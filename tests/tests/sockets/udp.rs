//! UDP: messages stay whole, any number of tasks may share a socket, errors of the network reach the caller.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;

use mini::io::Interest;
use mini::net::UdpSocket;
use mini_tests::net_support::{in_each_runtime, in_each_world, kind_of, udp, udp_pair};
use mini_tests::{Counts, poll_with};

#[test]
fn messages_keep_their_boundaries() {
    in_each_world(|| async {
        let (a, b) = (udp().await, udp().await);
        let to = b.local_addr().unwrap();
        for message in [&b"first"[..], b"", b"third!"] {
            assert_eq!(a.send_to(message, to).await.unwrap(), message.len());
        }
        let mut buf = [0; 16];
        for expected in [&b"first"[..], b"", b"third!"] {
            let (received, from) = b.recv_from(&mut buf).await.unwrap();
            assert_eq!((&buf[..received], from), (expected, a.local_addr().unwrap()));
        }
        assert_eq!(kind_of(b.try_recv_from(&mut buf)), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_message_longer_than_the_buffer_is_cut_and_the_next_is_whole() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        a.send(b"0123456789").await.unwrap();
        a.send(b"next").await.unwrap();
        let mut buf = [0; 4];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf, b"0123");
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf, b"next");
    });
}

/// As with tokio, and as the documentation says: a `poll_` function has one place per direction, a future one of its
/// own.
#[test]
fn of_the_tasks_that_poll_a_socket_the_last_one_is_woken() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let (former, last, future) = (Counts::new(), Counts::new(), Counts::new());
        let mut buf = [0; 8];
        for counts in [&former, &last] {
            assert!(poll_with(&mut poll_fn(|cx| b.poll_recv(cx, &mut buf)), counts).is_pending());
        }
        let (mut waits, mut buf) = (b.readable(), [0; 8]);
        assert!(poll_with(&mut waits, &future).is_pending());
        let mut received = b.recv(&mut buf);
        assert!(poll_with(&mut received, &future).is_pending());
        a.send(b"ping").await.unwrap();
        assert_eq!(received.await.unwrap(), 4);
        assert_eq!((former.wakes(), last.wakes()), (0, 1));
        waits.await.unwrap();
    });
}

#[test]
fn several_messages_of_one_event_are_all_received() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let counts = Counts::new();
        let mut buf = [0; 8];
        let mut first = b.recv(&mut buf);
        assert!(poll_with(&mut first, &counts).is_pending());
        for number in 0..20u8 {
            a.send(&[number]).await.unwrap();
        }
        first.await.unwrap();
        assert_eq!(buf[0], 0);
        for number in 1..20 {
            assert_eq!(b.recv(&mut buf).await.unwrap(), 1);
            assert_eq!(buf[0], number);
        }
        assert!(poll_with(&mut b.recv(&mut buf), &counts).is_pending());
    });
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_socket_goes_on() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let error = a.send(&vec![0; 70_000]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()));
        a.send(b"ping").await.unwrap();
        assert_eq!(b.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn many_tasks_send_on_one_socket_and_many_receive() {
    const SENDERS: u8 = 8;
    // All of them together fit into the receiver's buffer: UDP drops what doesn't.
    const MESSAGES: u8 = 10;
    in_each_world(|| async {
        let (from, to) = (Arc::new(udp().await), Arc::new(udp().await));
        let addr = to.local_addr().unwrap();
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let to = to.clone();
                mini::spawn(async move {
                    let mut received = Vec::new();
                    let mut buf = [0; 8];
                    for _ in 0..u32::from(SENDERS) * u32::from(MESSAGES) / 4 {
                        assert_eq!(to.recv(&mut buf).await.unwrap(), 2);
                        received.push((buf[0], buf[1]));
                    }
                    received
                })
            })
            .collect();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let from = from.clone();
                mini::spawn(async move {
                    for number in 0..MESSAGES {
                        assert_eq!(from.send_to(&[sender, number], addr).await.unwrap(), 2);
                        mini::task::yield_now().await;
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.unwrap();
        }
        let mut received = Vec::new();
        for receiver in receivers {
            received.extend(receiver.await.unwrap());
        }
        received.sort_unstable();
        let all: Vec<_> = (0..SENDERS).flat_map(|sender| (0..MESSAGES).map(move |number| (sender, number))).collect();
        assert_eq!(received, all);
    });
}

#[test]
fn a_connected_socket_hears_its_peer_alone() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let stranger = udp().await;
        let (a_addr, b_addr) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        assert_eq!(a.peer_addr().unwrap(), b_addr);
        assert_eq!(kind_of(stranger.peer_addr()), ErrorKind::NotConnected);
        stranger.send_to(b"spam", a_addr).await.unwrap();
        b.send(b"ham").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(a.recv_from(&mut buf).await.unwrap(), (3, b_addr));
        assert_eq!(kind_of(a.try_recv(&mut buf)), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_refusal_is_an_error_once_and_the_socket_goes_on() {
    in_each_world(|| async {
        let (a, b) = (udp().await, udp().await);
        let counts = Counts::new();
        a.connect(b.local_addr().unwrap()).await.unwrap();
        // `b` listens only to itself, so a message from `a` is refused as if there were no socket.
        b.connect(b.local_addr().unwrap()).await.unwrap();
        let mut buf = [0; 8];
        a.send(b"ping").await.unwrap();
        assert_eq!(kind_of(a.recv(&mut buf).await), ErrorKind::ConnectionRefused);

        for _ in 0..3 {
            let mut recv = a.recv(&mut buf);
            assert!(poll_with(&mut recv, &counts).is_pending(), "the error was told");
            a.send(b"ping").await.unwrap();
            assert_eq!(kind_of(recv.await), ErrorKind::ConnectionRefused);
        }

        b.connect(a.local_addr().unwrap()).await.unwrap();
        let mut recv = a.recv(&mut buf);
        assert!(poll_with(&mut recv, &counts).is_pending());
        b.send(b"pong").await.unwrap();
        assert_eq!(recv.await.unwrap(), 4);
        assert_eq!(&buf[..4], b"pong");
    });
}

#[test]
fn a_peek_leaves_the_message() {
    in_each_world(|| async {
        let (a, b) = udp_pair().await;
        let counts = Counts::new();
        let mut buf = [0; 8];
        let mut peek = b.peek_from(&mut buf);
        assert!(poll_with(&mut peek, &counts).is_pending());
        a.send(b"ping").await.unwrap();
        assert_eq!(peek.await.unwrap(), (4, a.local_addr().unwrap()));
        assert_eq!(b.peek(&mut buf[..2]).await.unwrap(), 2);
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert!(poll_with(&mut b.peek(&mut buf), &counts).is_pending());
    });
}

#[test]
fn readiness_and_tries() {
    in_each_world(|| async {
        let (a, b) = (udp().await, udp().await);
        let counts = Counts::new();
        let mut buf = [0; 8];
        a.writable().await.unwrap();
        assert!(poll_with(&mut b.readable(), &counts).is_pending());
        assert_eq!(kind_of(b.try_recv(&mut buf)), ErrorKind::WouldBlock);
        assert_eq!(a.try_send_to(b"three", b.local_addr().unwrap()).unwrap(), 5);
        a.connect(b.local_addr().unwrap()).await.unwrap();
        assert_eq!(a.try_send(b"one").unwrap(), 3);
        b.readable().await.unwrap();
        assert!(b.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap().is_readable());
        assert_eq!(b.try_recv_from(&mut buf).unwrap(), (5, a.local_addr().unwrap()));
        assert_eq!(b.try_recv(&mut buf).unwrap(), 3);
        assert_eq!(kind_of(b.try_recv(&mut buf)), ErrorKind::WouldBlock);
        assert!(poll_with(&mut b.readable(), &counts).is_pending());
    });
}

#[test]
fn options_are_told_as_they_were_set() {
    in_each_world(|| async {
        let socket = udp().await;
        for on in [true, false] {
            socket.set_broadcast(on).unwrap();
            socket.set_multicast_loop_v4(on).unwrap();
            assert_eq!((socket.broadcast().unwrap(), socket.multicast_loop_v4().unwrap()), (on, on));
        }
        socket.set_ttl(17).unwrap();
        socket.set_multicast_ttl_v4(3).unwrap();
        assert_eq!((socket.ttl().unwrap(), socket.multicast_ttl_v4().unwrap()), (17, 3));
        let error = socket.leave_multicast_v4(Ipv4Addr::new(224, 0, 0, 123), Ipv4Addr::LOCALHOST).unwrap_err();
        assert!(error.raw_os_error().is_some(), "it was not in that group");
    });
}

/// The members of the group get the message, and no other socket; the loopback carries it back.
// Not in simulations: multicast is not simulated.
#[test]
fn a_group_is_heard_by_its_members() {
    in_each_runtime(|| async {
        let (member, sender) = (UdpSocket::bind("0.0.0.0:0").await.unwrap(), udp().await);
        let port = member.local_addr().unwrap().port();
        // A port of its own: Linux gives a socket what comes for the groups of all others too (IP_MULTICAST_ALL in
        // ip(7)).
        let [high, low] = port.to_be_bytes();
        let group = Ipv4Addr::new(239, 255, high, low);
        sender.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        sender.set_multicast_loop_v4(true).unwrap();
        member.join_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(sender.send_to(b"ping", (group, port)).await.unwrap(), 4);
        let mut buf = [0; 8];
        assert_eq!(member.recv_from(&mut buf).await.unwrap(), (4, sender.local_addr().unwrap()));

        member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        sender.send_to(b"nobody", (group, port)).await.unwrap();
        sender.send_to(b"you", (Ipv4Addr::LOCALHOST, port)).await.unwrap();
        assert_eq!(member.recv(&mut buf).await.unwrap(), 3, "what was sent to the group before this has not come");
        let error = member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
    });
}

// Not in simulations: multicast is not simulated.
#[test]
fn a_group_of_ipv6_is_joined_once_and_left_once() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return; // this machine has no IPv6
    }
    in_each_runtime(|| async {
        let socket = UdpSocket::bind("[::]:0").await.unwrap();
        let group = "ff02::123".parse().unwrap();
        match socket.join_multicast_v6(&group, 1) {
            Ok(()) => {
                assert_eq!(kind_of(socket.join_multicast_v6(&group, 1)), ErrorKind::AddrInUse);
                socket.leave_multicast_v6(&group, 1).unwrap();
            }
            // An interface without it.
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
        assert!(socket.leave_multicast_v6(&group, 1).unwrap_err().raw_os_error().is_some());
        assert!(udp().await.join_multicast_v6(&group, 1).unwrap_err().raw_os_error().is_some(), "it has IPv4 alone");
    });
}

#[cfg(target_os = "linux")] // where the loopback carries them
// Not in simulations: broadcasts are not simulated.
#[test]
fn a_broadcast_needs_the_option() {
    in_each_runtime(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let to = (Ipv4Addr::new(127, 255, 255, 255), socket.local_addr().unwrap().port());
        assert_eq!(kind_of(socket.send_to(b"ping", to).await), ErrorKind::PermissionDenied);
        socket.set_broadcast(true).unwrap();
        assert_eq!(socket.send_to(b"ping", to).await.unwrap(), 4);
        assert_eq!(socket.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

// Not in simulations: a simulated socket cannot leave.
#[test]
fn a_socket_leaves_and_comes_back_with_a_message_on_its_way() {
    in_each_runtime(|| async {
        let (a, b) = udp_pair().await;
        let counts = Counts::new();
        let mut buf = [0; 8];
        assert!(poll_with(&mut b.recv(&mut buf), &counts).is_pending(), "it has joined the runtime");
        a.send(b"one").await.unwrap();
        a.send(b"three").await.unwrap();
        let outside: std::net::UdpSocket = b.into_std().unwrap();
        assert_eq!(outside.recv(&mut buf).unwrap(), 3);
        let b = UdpSocket::from_std(outside).unwrap();
        assert_eq!(b.recv(&mut buf).await.unwrap(), 5);
        assert!(poll_with(&mut b.recv(&mut buf), &counts).is_pending());
    });
}
