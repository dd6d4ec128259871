//! Hosts and their addresses: what needs no lookup, what goes to the blocking pool, what is no host, many addresses,
//! none.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::mpsc;

use mini::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket, lookup_host};
use mini_tests::net_support::raw_os_error;
use mini_tests::net_support::{ANY_PORT, in_each_world, kind_of, now, refusing_port, udp};
use mini_tests::{Counts, block_on_elsewhere, caught, on_each_flavour, poll_with};

const NOBODY: &[SocketAddr] = &[];

#[test]
fn a_literal_address_needs_no_lookup_and_no_runtime() {
    fn one(host: impl ToSocketAddrs) -> SocketAddr {
        let addrs: Vec<_> = now(poll_with(&mut lookup_host(host), &Counts::new())).unwrap().collect();
        assert_eq!(addrs.len(), 1);
        addrs[0]
    }
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
    assert_eq!((one("127.0.0.1:80"), one("[::1]:80")), (v4, v6));
    assert_eq!((one(("127.0.0.1", 80)), one(("::1", 80))), (v4, v6));
    assert_eq!((one(String::from("127.0.0.1:80")), one((String::from("::1"), 80))), (v4, v6));
    assert_eq!((one((IpAddr::from(Ipv4Addr::LOCALHOST), 80)), one((Ipv6Addr::LOCALHOST, 80))), (v4, v6));
    assert_eq!((one(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80)), one(&[v6][..])), (v4, v6));
}

#[test]
fn localhost_is_looked_up_on_the_blocking_pool() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let job = mini::spawn_blocking(move || released.recv().is_err());
            let counts = Counts::new();
            let mut lookup = lookup_host("localhost:80");
            assert!(poll_with(&mut lookup, &counts).is_pending(), "the one thread is busy");
            assert_eq!(now(poll_with(&mut lookup_host("127.0.0.1:80"), &counts)).unwrap().count(), 1);
            assert!(poll_with(&mut lookup, &counts).is_pending());
            drop(release);
            assert!(job.await.unwrap());
            let addrs: Vec<_> = lookup.await.unwrap().collect();
            assert!(!addrs.is_empty());
            assert!(addrs.iter().all(|addr| addr.ip().is_loopback() && addr.port() == 80), "{addrs:?}");
        });
    });
}

#[test]
fn every_way_in_takes_a_name() {
    in_each_world(|| async {
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        assert!(addr.ip().is_loopback());
        let client = TcpStream::connect(("localhost", addr.port())).await.unwrap();
        let (_server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());

        let (a, b) = (UdpSocket::bind(("localhost", 0)).await.unwrap(), udp().await);
        assert!(a.local_addr().unwrap().ip().is_loopback());
        let c = udp().await;
        c.connect(format!("localhost:{}", b.local_addr().unwrap().port())).await.unwrap();
        c.send(b"ping").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(b.recv_from(&mut buf).await.unwrap(), (4, c.local_addr().unwrap()));
    });
}

#[test]
fn a_text_that_is_no_address_is_named() {
    in_each_world(|| async {
        for text in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:http", ":80", "", "[::1]"] {
            let error = lookup_host(text).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
            let errors = [
                TcpStream::connect(text).await.unwrap_err(),
                TcpListener::bind(text).await.unwrap_err(),
                UdpSocket::bind(text).await.unwrap_err(),
                udp().await.connect(text).await.unwrap_err(),
                udp().await.send_to(b"ping", text).await.unwrap_err(),
            ];
            for other in errors {
                assert_eq!((other.kind(), other.to_string()), (error.kind(), error.to_string()));
            }
        }
    });
}

#[test]
fn a_host_that_is_not_found_is_an_error() {
    // Longer than a name may be, so no server is asked for it.
    const NOWHERE: &str = concat!(
        "a-label-that-is-longer-than-the-sixty-three-characters-that-it-may-have",
        ".and-so-nobody-can-have-this-name-anywhere"
    );
    in_each_world(|| async {
        assert!(lookup_host((NOWHERE, 80)).await.is_err());
        assert!(udp().await.send_to(b"ping", (NOWHERE, 80)).await.is_err());
        let error = TcpStream::connect(format!("{NOWHERE}:80")).await.unwrap_err();
        assert!(error.to_string().contains(NOWHERE), "{error}");
    });
}

#[test]
fn no_address_is_an_error_of_its_own() {
    in_each_world(|| async {
        assert_eq!(lookup_host(NOBODY).await.unwrap().count(), 0);
        let errors = [
            TcpStream::connect(NOBODY).await.unwrap_err(),
            TcpListener::bind(NOBODY).await.unwrap_err(),
            UdpSocket::bind(NOBODY).await.unwrap_err(),
            udp().await.connect(NOBODY).await.unwrap_err(),
            udp().await.send_to(b"ping", NOBODY).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("no address"), "{error}");
        }
    });
}

#[test]
fn addresses_are_tried_in_order_and_the_last_error_counts() {
    in_each_world(|| async {
        let ((_first, refused), (_second, refused_too)) = (refusing_port(), refusing_port());
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = TcpStream::connect(&[refused, addr, refused_too][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addr);

        let error = TcpStream::connect(&[refused, refused_too][..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(raw_os_error(&error).is_some(), "as the system gave it");

        let free: SocketAddr = ANY_PORT.parse().unwrap();
        let second = TcpListener::bind(&[addr, free][..]).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), addr);
        assert_eq!(kind_of(TcpListener::bind(addr).await), ErrorKind::AddrInUse);
        let socket = udp().await;
        let taken = socket.local_addr().unwrap();
        assert_eq!(kind_of(UdpSocket::bind(&[taken, taken][..]).await), ErrorKind::AddrInUse);
    });
}

#[test]
fn a_lookup_ends_with_its_runtime() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        let (release, released) = mpsc::channel::<()>();
        let job = runtime.spawn_blocking(move || released.recv().is_err());
        let mut lookup = lookup_host("localhost:80");
        runtime.block_on(async {
            assert!(poll_with(&mut lookup, &Counts::new()).is_pending());
        });
        let waiting = std::thread::spawn(move || block_on_elsewhere(lookup));
        runtime.shutdown_background();
        drop(release);
        // The name was looked up just before, or never will be; what matters is that there is an answer.
        match waiting.join().unwrap() {
            Ok(addrs) => assert!(addrs.count() > 0),
            Err(error) => assert!(error.to_string().contains("shut down"), "{error}"),
        }
        drop(job);
    });
}

#[test]
fn a_name_without_a_runtime_names_the_call_and_its_line() {
    let line = line!() + 1;
    let mut connect = TcpStream::connect("localhost:80");
    let panic = caught(|| poll_with(&mut connect, &Counts::new()).is_pending());
    assert!(panic.message.contains("TcpStream::connect"), "{panic:?}");
    assert!(panic.message.contains(&format!("{}:{line}:", file!())), "{panic:?}");
}
