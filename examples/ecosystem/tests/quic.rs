//! QUIC on mini: quinn with itself, much data, and peers that misbehave, vanish, or are gone.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Waker};
use std::time::Duration;

use mini::net::UdpSocket;
use mini::runtime::Builder;
use mini_ecosystem::certificate::Identity;
use mini_quinn::MiniRuntime;
use mini_tests::net_support::{Words, udp};
use mini_tests::{LIMIT, flavours, until, within};
use quinn::{
    Connection, ConnectionError, Endpoint, EndpointConfig, IdleTimeout, ReadError, RecvStream, Runtime, SendStream,
    TransportConfig, WriteError,
};

#[path = "support/scenarios.rs"]
mod scenarios;

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new(&["localhost"]).expect("a certificate"));

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn transport(idle: Duration) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(idle).expect("not too long")));
    Arc::new(transport)
}

fn endpoint(server: Option<quinn::ServerConfig>) -> Endpoint {
    let socket = std::net::UdpSocket::bind(LOOPBACK).expect("a free port");
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(MiniRuntime)).expect("an endpoint")
}

/// An endpoint that accepts, and one that connects. Each accepts this much silence.
fn ends(idle: Duration) -> (Endpoint, Endpoint) {
    let mut server = IDENTITY.quic_server().expect("a key");
    server.transport_config(transport(idle));
    let mut config = IDENTITY.quic_client().expect("a certificate");
    config.transport_config(transport(idle));
    let mut client = endpoint(None);
    client.set_default_client_config(config);
    (endpoint(Some(server)), client)
}

/// Both ends of a new connection.
async fn connect(server: &Endpoint, client: &Endpoint) -> (Connection, Connection) {
    let addr = server.local_addr().expect("bound");
    connect_by(addr, server, client).await
}

async fn connect_by(addr: SocketAddr, server: &Endpoint, client: &Endpoint) -> (Connection, Connection) {
    let server = server.clone();
    let accepted = mini::spawn(async move { server.accept().await.expect("not closed").await });
    let connected = client.connect(addr, "localhost").expect("a configuration").await.expect("a connection");
    (connected, accepted.await.expect("no panic").expect("a connection"))
}

/// Closes what a test has used. How long an endpoint then stays to answer what was under way depends on how long the
/// handshake took (RFC 9000, section 10.2), so only one test waits for it.
fn close(server: Endpoint, client: Endpoint) {
    client.close(0_u32.into(), b"done");
    server.close(0_u32.into(), b"done");
}

async fn send(mut to: SendStream, seed: u64, total: usize) -> u64 {
    const BLOCK: usize = 16 << 10;
    let (mut words, mut block) = (Words::new(seed), vec![0; BLOCK]);
    for _ in 0..total / BLOCK {
        words.fill(&mut block);
        to.write_all(&block).await.expect("a reader");
    }
    to.finish().expect("still open");
    to.stopped().await.expect("still connected");
    words.sum()
}

async fn receive(mut from: RecvStream) -> (usize, u64) {
    let (mut words, mut count, mut left) = (Words::new(0), 0, Vec::new());
    while let Some(chunk) = from.read_chunk(usize::MAX, true).await.expect("a writer") {
        count += chunk.bytes.len();
        left.extend_from_slice(&chunk.bytes);
        let whole = left.len() / 8 * 8;
        words.add(&left[..whole]);
        left.drain(..whole);
    }
    (count, words.sum())
}

/// `total` bytes each way at the same time.
async fn both_ways(total: usize) {
    let (server, client) = ends(LIMIT);
    let (here, there) = connect(&server, &client).await;
    let echo = mini::spawn(async move {
        let (to, from) = there.accept_bi().await.expect("a stream");
        let sent = mini::spawn(send(to, 2, total));
        (receive(from).await, sent.await.expect("no panic"))
    });
    let (to, from) = here.open_bi().await.expect("a stream");
    let up = mini::spawn(send(to, 1, total));
    let down = receive(from).await;
    let (got, sent) = echo.await.expect("no panic");
    assert_eq!(down, (total, sent));
    assert_eq!(got, (total, up.await.expect("no panic")));
    client.close(0_u32.into(), b"done");
    client.wait_idle().await;
    server.wait_idle().await;
}

async fn a_megabyte_both_ways() {
    both_ways(1 << 20).await;
}

/// 100 MB, or a tenth of them where nothing is optimized.
#[test]
fn much_data_both_ways() {
    const TOTAL: usize = if cfg!(debug_assertions) { 10 << 20 } else { 100 << 20 };
    for (name, builder) in flavours() {
        if !["current_thread", "multi_thread(2)"].contains(&name.as_str()) {
            continue;
        }
        within(LIMIT * 2, move || {
            let runtime = builder.build().expect("a runtime");
            runtime.block_on(both_ways(TOTAL));
        });
    }
}

async fn many_connections_on_one_socket() {
    const COUNT: u64 = 8;
    // No more than the socket's buffer holds for all connections: lost data is sent again, but that takes time.
    const TOTAL: usize = 16 << 10;
    let (server, client) = ends(LIMIT);
    let accepting = server.clone();
    let sums = mini::spawn(async move {
        let mut sums = mini::task::JoinSet::new();
        for _ in 0..COUNT {
            let incoming = accepting.accept().await.expect("not closed");
            sums.spawn(async move {
                let connection = incoming.await.expect("a connection");
                receive(connection.accept_uni().await.expect("a stream")).await
            });
        }
        let mut all = Vec::new();
        while let Some(sum) = sums.join_next().await {
            all.push(sum.expect("no panic"));
        }
        all
    });
    let mut senders = mini::task::JoinSet::new();
    for seed in 0..COUNT {
        let connecting = client.connect(server.local_addr().expect("bound"), "localhost").expect("a configuration");
        senders.spawn(async move {
            let connection = connecting.await.expect("a connection");
            let sum = send(connection.open_uni().await.expect("a stream"), seed, TOTAL).await;
            (TOTAL, sum)
        });
    }
    let (mut got, mut sent) = (sums.await.expect("no panic"), Vec::new());
    while let Some(sum) = senders.join_next().await {
        sent.push(sum.expect("no panic"));
    }
    got.sort_unstable();
    sent.sort_unstable();
    assert_eq!(got, sent);
    close(server, client);
}

async fn garbage_at_the_endpoint_disturbs_nobody() {
    let (server, client) = ends(LIMIT);
    let (here, there) = connect(&server, &client).await;
    let stranger = udp().await;
    let to = server.local_addr().expect("bound");
    let long =
        |version: [u8; 4], length: usize| [&[0xc3][..], &version, &[8], &[7; 8], &[0], &vec![0xa5; length]].concat();
    let datagrams = [
        vec![],
        vec![0],
        vec![0xff; 1200],
        vec![0x40; 64],           // a short head: a connection that never was
        long([0, 0, 0, 1], 1200), // the first packet of version 1, not encrypted with any key
        long([0, 0, 0, 1], 10),   // the same, shorter than RFC 9000, section 14.1 allows
        long([0, 0, 0, 1], 0),
        long([0xfa, 0xce, 0xb0, 0x0c], 1200), // a version that nobody has
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ];
    for datagram in &datagrams {
        stranger.send_to(datagram, to).await.expect("room");
    }
    // RFC 9000, section 6.1: the version that no side has gets an answer, of version 0.
    let mut buf = [0; 1500];
    loop {
        let (length, _) = stranger.recv_from(&mut buf).await.expect("an answer");
        if length > 5 && buf[0] & 0x80 != 0 && buf[1..5] == [0; 4] {
            break;
        }
    }
    let (to, from) = (here.open_uni().await.expect("a stream"), there);
    let sent = mini::spawn(send(to, 3, 64 << 10));
    let got = receive(from.accept_uni().await.expect("a stream")).await;
    assert_eq!(got.1, sent.await.expect("no panic"));
    connect(&server, &client).await;
    close(server, client);
}

/// Passes datagrams on between `server` and the peer that sends to `front`.
async fn relay(front: UdpSocket, server: SocketAddr) {
    let (front, back) = (Arc::new(front), Arc::new(udp().await));
    let (mut up, mut down) = ([0; 2048], [0; 2048]);
    let mut client = None;
    loop {
        let from_client = async { (true, front.recv_from(&mut up).await.expect("a datagram")) };
        let from_server = async { (false, back.recv_from(&mut down).await.expect("a datagram")) };
        match futures_lite::future::or(from_client, from_server).await {
            (true, (length, from)) => {
                client = Some(from);
                back.send_to(&up[..length], server).await.expect("room");
            }
            (false, (length, _)) => {
                front.send_to(&down[..length], client.expect("a client")).await.expect("room");
            }
        }
    }
}

async fn a_relay_that_ends() {
    let (server, client) = ends(LIMIT);
    let front = udp().await;
    let addr = front.local_addr().expect("bound");
    let relay = mini::spawn(relay(front, server.local_addr().expect("bound")));
    let (here, there) = connect_by(addr, &server, &client).await;
    let mut to = here.open_uni().await.expect("a stream");
    to.write_all(b"are you").await.expect("room");
    let mut from = there.accept_uni().await.expect("a stream");
    assert_eq!(from.read(&mut [0; 16]).await.expect("connected"), Some(7));

    let reader = mini::spawn(async move { from.read(&mut [0; 16]).await });
    relay.cancel().await.expect_err("a relay never ends");
    to.write_all(b" there?").await.expect("room");
    assert_eq!(here.closed().await, ConnectionError::TimedOut);
    assert_eq!(there.closed().await, ConnectionError::TimedOut);
    let read = reader.await.expect("no panic");
    assert_eq!(read, Err(ReadError::ConnectionLost(ConnectionError::TimedOut)));
    assert_eq!(to.write(b"!").await, Err(WriteError::ConnectionLost(ConnectionError::TimedOut)));
    close(server, client);
}

async fn an_address_that_nobody_has() {
    let (server, client) = ends(LIMIT);
    let addr = server.local_addr().expect("bound");
    server.close(0_u32.into(), b"");
    server.wait_idle().await;
    drop(server);
    until(|| std::net::UdpSocket::bind(addr).is_ok()).await;
    let connecting = client.connect(addr, "localhost").expect("a configuration");
    assert_eq!(connecting.await.expect_err("nobody there"), ConnectionError::TimedOut);
}

async fn a_name_that_the_certificate_does_not_have() {
    let (server, client) = ends(LIMIT);
    let addr = server.local_addr().expect("bound");
    let accepting = server.clone();
    let accepted = mini::spawn(async move { accepting.accept().await.expect("not closed").await });
    let refused = client.connect(addr, "example.org").expect("a configuration").await.expect_err("another name");
    assert!(matches!(refused, ConnectionError::TransportError(_)), "{refused:?}");
    let told = accepted.await.expect("no panic").expect_err("a client that refuses");
    assert!(matches!(told, ConnectionError::ConnectionClosed(_)), "{told:?}");
    close(server, client);
}

async fn a_stream_that_is_reset_and_one_that_is_stopped() {
    let (server, client) = ends(LIMIT);
    let (here, there) = connect(&server, &client).await;
    let mut to = here.open_uni().await.expect("a stream");
    to.write_all(b"half a mess").await.expect("room");
    let mut from = there.accept_uni().await.expect("a stream");
    to.reset(7_u32.into()).expect("still open");
    let error = loop {
        match from.read(&mut [0; 64]).await {
            Ok(Some(_)) => {}
            other => break other.expect_err("a reset"),
        }
    };
    assert_eq!(error, ReadError::Reset(7_u32.into()));

    let mut to = here.open_uni().await.expect("a stream");
    to.write_all(b"unwanted").await.expect("room");
    there.accept_uni().await.expect("a stream").stop(9_u32.into()).expect("still open");
    assert_eq!(to.stopped().await.expect("connected"), Some(9_u32.into()));
    assert_eq!(to.write_all(b"more").await, Err(WriteError::Stopped(9_u32.into())));
    close(server, client);
}

async fn a_peer_that_closes_in_the_middle() {
    let (server, client) = ends(LIMIT);
    let (here, there) = connect(&server, &client).await;
    let mut to = here.open_uni().await.expect("a stream");
    let writer = mini::spawn(async move {
        let block = vec![7; 64 << 10];
        loop {
            if let Err(error) = to.write_all(&block).await {
                return error;
            }
        }
    });
    let mut from = there.accept_uni().await.expect("a stream");
    from.read(&mut [0; 64]).await.expect("data");
    there.close(5_u32.into(), b"enough");
    match writer.await.expect("no panic") {
        WriteError::ConnectionLost(ConnectionError::ApplicationClosed(close)) => {
            assert_eq!((close.error_code, &close.reason[..]), (5_u32.into(), &b"enough"[..]));
        }
        error => panic!("{error:?}"),
    }
    close(server, client);
}

async fn an_endpoint_that_is_dropped_closes_its_socket() {
    let (server, client) = ends(LIMIT);
    let addrs = [server.local_addr().expect("bound"), client.local_addr().expect("bound")];
    let (here, there) = connect(&server, &client).await;
    drop((here, server, client));
    // The last handle of one side is gone, so that side has closed the connection, and the other side learns it.
    let reason = there.closed().await;
    assert!(matches!(reason, ConnectionError::ApplicationClosed(_)), "{reason:?}");
    drop(there);
    for addr in addrs {
        until(|| std::net::UdpSocket::bind(addr).is_ok()).await;
    }
}

async fn a_socket_is_writable_for_all_who_wait() {
    let socket = std::net::UdpSocket::bind(LOOPBACK).expect("a free port");
    let socket = MiniRuntime.wrap_udp_socket(socket).expect("a socket");
    let mut pollers: Vec<_> = (0..3).map(|_| socket.clone().create_io_poller()).collect();
    for _ in 0..2 {
        for poller in &mut pollers {
            std::future::poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.expect("room");
        }
    }
}

mod each {
    use super::scenarios::scenarios;

    scenarios! {
        a_megabyte_both_ways,
        many_connections_on_one_socket,
        garbage_at_the_endpoint_disturbs_nobody,
        a_name_that_the_certificate_does_not_have,
        a_stream_that_is_reset_and_one_that_is_stopped,
        a_peer_that_closes_in_the_middle,
        an_endpoint_that_is_dropped_closes_its_socket,
        a_socket_is_writable_for_all_who_wait,
    }
}

/// A clock that jumps when there is nothing else to do: waits take no time, and no busy machine is too slow.
fn in_virtual_time<F: Future<Output = ()> + 'static>(scenario: fn() -> F) {
    within(LIMIT, move || {
        let runtime = Builder::new_current_thread().start_paused(true).build().expect("a runtime");
        runtime.block_on(scenario());
    });
}

#[test]
fn a_peer_that_vanishes_ends_the_connection() {
    in_virtual_time(a_relay_that_ends);
}

#[test]
fn nobody_at_the_address() {
    in_virtual_time(an_address_that_nobody_has);
}

#[test]
fn a_runtime_that_is_dropped_in_the_middle_closes_all() {
    for (_, builder) in flavours() {
        within(LIMIT, move || {
            let runtime = builder.build().expect("a runtime");
            let (endpoints, connection, mut sending) = runtime.block_on(async {
                let (server, client) = ends(LIMIT);
                let (here, there) = connect(&server, &client).await;
                let mut to = here.open_uni().await.expect("a stream");
                // This task may see that the endpoint's own task was dropped first.
                let sending = mini::spawn(async move { while to.write_all(&[7; 1000]).await.is_ok() {} });
                let mut from = there.accept_uni().await.expect("a stream");
                from.read(&mut [0; 64]).await.expect("data");
                ([server, client], (here, there, from), sending)
            });
            let addrs = endpoints.each_ref().map(|endpoint| endpoint.local_addr().expect("bound"));
            drop(runtime);
            let ended = Pin::new(&mut sending).poll(&mut Context::from_waker(Waker::noop()));
            assert!(ended.is_ready());
            drop((endpoints, connection));
            for addr in addrs {
                std::net::UdpSocket::bind(addr).expect("nobody has it any more");
            }
        });
    }
}
