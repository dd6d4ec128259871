//! Socket options: each is read back as it was set, on every socket that has it, and impossible values are refused.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mini::io::Interest;
use mini::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use mini::task::yield_now;
use mini_tests::net_support::{ANY_PORT, in_each_runtime, in_each_world, kind_of, tcp_pair, udp};
use mini_tests::{Counts, poll_with};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Sets an option to each value and asks for it.
macro_rules! kept {
    ($socket:expr, $get:ident / $set:ident: $($value:expr),*) => { $(
        $socket.$set($value).unwrap();
        assert_eq!($socket.$get().unwrap(), $value, stringify!($set));
    )* };
}

/// Whether this machine has IPv6.
fn has_ipv6() -> bool {
    std::net::UdpSocket::bind("[::1]:0").is_ok()
}

#[test]
fn every_tcp_socket_has_the_options_of_tcp() {
    in_each_world(|| async {
        macro_rules! check {
            ($socket:expr) => {
                let socket = $socket;
                kept!(socket, nodelay / set_nodelay: true, false);
                kept!(socket, linger / set_linger: Some(Duration::from_secs(3)), Some(Duration::ZERO), None);
                socket.set_linger(Some(Duration::from_millis(1))).unwrap();
                assert_eq!(socket.linger().unwrap(), Some(Duration::from_secs(1)), "not zero, which resets");
                kept!(socket, keepalive / set_keepalive: true, false);
                kept!(socket, keepalive_time / set_keepalive_time: Duration::from_secs(77));
                kept!(socket, keepalive_interval / set_keepalive_interval: Duration::from_secs(7));
                kept!(socket, keepalive_retries / set_keepalive_retries: 5);
                assert!(socket.keepalive().unwrap(), "its times turn it on");
                assert_eq!(kind_of(socket.set_keepalive_time(Duration::ZERO)), ErrorKind::InvalidInput);
                assert_eq!(kind_of(socket.set_keepalive_retries(0)), ErrorKind::InvalidInput);
                kept!(socket, tos_v4 / set_tos_v4: 0x10, 0);
                kept!(socket, ttl / set_ttl: 9, 64);
                assert_eq!(kind_of(socket.set_ttl(256)), ErrorKind::InvalidInput);
            };
        }
        let (client, server) = tcp_pair().await;
        check!(TcpSocket::new_v4().unwrap());
        check!(TcpListener::bind(ANY_PORT).await.unwrap());
        check!(client);
        check!(server);
    });
}

#[test]
fn every_socket_of_the_internet_has_its_options() {
    in_each_world(|| async {
        macro_rules! check {
            ($socket:expr) => {
                let socket = $socket;
                kept!(socket, reuseaddr / set_reuseaddr: true, false);
                kept!(socket, reuseport / set_reuseport: true, false);
                socket.set_send_buffer_size(32 << 10).unwrap();
                socket.set_recv_buffer_size(32 << 10).unwrap();
                assert!(socket.send_buffer_size().unwrap() >= 32 << 10);
                assert!(socket.recv_buffer_size().unwrap() >= 32 << 10);
            };
        }
        let (client, _server) = tcp_pair().await;
        check!(client);
        check!(TcpSocket::new_v4().unwrap());
        check!(TcpListener::bind(ANY_PORT).await.unwrap());
        check!(udp().await);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_lingering_without_end_is_as_long_as_can_be_said() {
    in_each_world(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_linger(Some(Duration::MAX)).unwrap();
        assert_eq!(socket.linger().unwrap(), Some(Duration::from_secs(i32::MAX as u64)));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn linux_has_devices_and_quick_acknowledgements() {
    in_each_world(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        assert_eq!(socket.device().unwrap(), None);
        // Without the right to, which not every machine gives, it is an error that says so.
        match socket.bind_device(Some(b"lo")) {
            Ok(()) => assert_eq!(socket.device().unwrap().as_deref(), Some(&b"lo"[..])),
            Err(e) => assert_eq!(e.kind(), ErrorKind::PermissionDenied),
        }
        assert!(socket.bind_device(Some(b"no such device")).unwrap_err().raw_os_error().is_some());
        // None of these is cut to an existing name, or taken for "no device".
        for missing in [&b""[..], b"lo\0", b"lo\0and-more", &[b'x'; 16]] {
            let error = socket.bind_device(Some(missing)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::NODEV.raw_os_error()), "{missing:?}");
        }
        let (client, server) = tcp_pair().await;
        kept!(client, quickack / set_quickack: false, true);
        client.write_all(b"ping").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn sockets_of_ipv6_have_their_own() {
    if !has_ipv6() {
        return;
    }
    in_each_world(|| async {
        let any: SocketAddr = "[::]:0".parse().unwrap();
        let socket = TcpSocket::new_v6().unwrap();
        kept!(socket, only_v6 / set_only_v6: false, true);
        kept!(socket, tclass_v6 / set_tclass_v6: 0x10, 0);
        kept!(socket, ttl / set_ttl: 9);
        socket.bind(any).unwrap();
        // With that, IPv4 may have the same port.
        let port = socket.local_addr().unwrap().port();
        let other = TcpSocket::new_v4().unwrap();
        if let Err(e) = other.bind((Ipv4Addr::UNSPECIFIED, port).into()) {
            assert_eq!(e.kind(), ErrorKind::AddrInUse, "somebody else may have it");
        }
        let socket = UdpSocket::bind(any).await.unwrap();
        kept!(socket, multicast_loop_v6 / set_multicast_loop_v6: false, true);
        kept!(socket, multicast_hops_v6 / set_multicast_hops_v6: 3);
        kept!(socket, multicast_if_v6 / set_multicast_if_v6: 0);
        let v4 = udp().await;
        assert!(v4.tclass_v6().unwrap_err().raw_os_error().is_some());
    });
}

#[test]
fn multicast_leaves_by_the_interface_that_was_chosen() {
    in_each_world(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        for interface in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            socket.set_multicast_if_v4(&interface).unwrap();
            assert_eq!(socket.multicast_if_v4().unwrap(), interface);
        }
        let nobody = Ipv4Addr::new(203, 0, 113, 1);
        assert_eq!(kind_of(socket.set_multicast_if_v4(&nobody)), ErrorKind::AddrNotAvailable);
        kept!(socket, multicast_loop_v4 / set_multicast_loop_v4: false, true);
        kept!(socket, multicast_ttl_v4 / set_multicast_ttl_v4: 3, 1);
        kept!(socket, broadcast / set_broadcast: true, false);
    });
}

#[test]
fn options_are_set_before_a_udp_socket_is_bound() {
    in_each_world(|| async {
        let any = ANY_PORT.parse().unwrap();
        let first = UdpSocket::bind_with(any, |socket| socket.set_reuseport(true)).unwrap();
        let addr = first.local_addr().unwrap();
        assert_eq!(kind_of(UdpSocket::bind_with(addr, |_| Ok(()))), ErrorKind::AddrInUse);
        let second = UdpSocket::bind_with(addr, |socket| socket.set_reuseport(true)).unwrap();
        assert_eq!(second.local_addr().unwrap(), addr);
        let refused = UdpSocket::bind_with(any, |_| Err(ErrorKind::Interrupted.into()));
        assert_eq!(kind_of(refused), ErrorKind::Interrupted);
    });
}

/// What `ready` tells of urgent data on a stream, and how that readiness is cleared.
#[cfg(target_os = "linux")]
// Not in simulations: urgent data is not simulated.
#[test]
fn urgent_data_is_a_priority() {
    if cfg!(mini_kqueue_shim) {
        return; // kqueue has no such readiness
    }
    in_each_runtime(|| async {
        let (client, server): (TcpStream, TcpStream) = tcp_pair().await;
        let counts = Counts::new();
        let mut urgent = server.ready(Interest::PRIORITY);
        assert!(poll_with(&mut urgent, &counts).is_pending());
        client.write_all(b"normal").await.unwrap();
        server.readable().await.unwrap();
        assert!(poll_with(&mut urgent, &counts).is_pending(), "plain data is none");
        rustix::net::send(&client, b"!", SendFlags::OOB).unwrap();
        let ready = urgent.await.unwrap();
        assert!(ready.is_priority() && !ready.is_readable());

        let take = || {
            let mut byte = [0];
            match rustix::net::recv(&server, &mut byte, RecvFlags::OOB) {
                Ok(_) => Ok(byte[0]),
                // There is none, or none any more.
                Err(_) => Err(ErrorKind::WouldBlock.into()),
            }
        };
        assert_eq!(server.async_io(Interest::PRIORITY, take).await.unwrap(), b'!');
        assert_eq!(kind_of(server.try_io(Interest::PRIORITY, take)), ErrorKind::WouldBlock);
        let mut urgent = server.ready(Interest::PRIORITY);
        assert!(poll_with(&mut urgent, &counts).is_pending(), "it was taken back");
        let mut buf = [0; 16];
        assert_eq!(server.read(&mut buf).await.unwrap(), 6);
        assert_eq!(&buf[..6], b"normal");
        drop(client);
        assert!(urgent.await.unwrap().is_read_closed(), "no more of it can come");
    });
}

/// A task looks for urgent data where the end was seen: there is none, which says nothing of the end.
#[test]
fn who_looks_for_urgent_data_takes_the_end_from_nobody() {
    in_each_runtime(|| async {
        let (client, server): (TcpStream, TcpStream) = tcp_pair().await;
        client.write_all(b"last").await.unwrap();
        drop(client);
        let mut buf = [0; 16];
        while !server.ready(Interest::READABLE).await.unwrap().is_read_closed() {
            yield_now().await;
        }
        let none = || Err::<(), _>(ErrorKind::WouldBlock.into());
        assert_eq!(kind_of(server.try_io(Interest::PRIORITY, none)), ErrorKind::WouldBlock);
        assert!(server.ready(Interest::READABLE).await.unwrap().is_read_closed());
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        assert_eq!(kind_of(server.try_io(Interest::PRIORITY, none)), ErrorKind::WouldBlock);
        assert_eq!(server.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn an_error_ends_a_wait_for_one() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let counts = Counts::new();
        let mut error = server.ready(Interest::ERROR);
        assert!(poll_with(&mut error, &counts).is_pending());
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert!(error.await.unwrap().is_error());
        assert_eq!(kind_of(server.read(&mut [0; 8]).await), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_listener_is_tried() {
    in_each_world(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        assert_eq!(kind_of(listener.try_accept()), ErrorKind::WouldBlock);
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert_eq!(kind_of(listener.try_accept()), ErrorKind::WouldBlock);
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        listener.try_accept().unwrap();
    });
}
