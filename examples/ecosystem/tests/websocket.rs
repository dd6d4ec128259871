//! WebSockets over mini's streams: async-tungstenite with itself, plain and over TLS, with the bytes of RFC 6455, and
//! with peers that misbehave.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{WebSocketStream, accept_async, accept_async_with_config, client_async};
use futures_lite::StreamExt;
use futures_lite::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use futures_rustls::{TlsAcceptor, TlsConnector};
use mini::net::{TcpListener, TcpStream};
use mini_ecosystem::certificate::Identity;
use mini_tests::net_support::tcp_pair;
use mini_tests::{LIMIT, within};

#[path = "../websocket.rs"]
#[allow(dead_code)]
mod example;
#[path = "support/scenarios.rs"]
mod scenarios;

type Socket<S> = WebSocketStream<S>;

/// Whether an error is the one that is expected.
type IsMeant = fn(&ProtocolError) -> bool;

/// Both ends of a connection after the handshake.
async fn pair() -> (Socket<TcpStream>, Socket<TcpStream>) {
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(accept_async(server));
    let (client, _) = client_async("ws://localhost/", client).await.expect("a handshake");
    (client, server.await.expect("no panic").expect("a handshake"))
}

/// Sends back all messages; returns how the connection ends.
async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut socket: Socket<S>) -> Result<(), Error> {
    while let Some(message) = socket.next().await.transpose()? {
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(socket.into_inner().close().await?) // over TLS the end has to be announced
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut client: Socket<S>) {
    // Lengths on both sides of where the head of a frame grows (RFC 6455, section 5.2).
    for length in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
        let message = Message::binary(vec![length as u8; length]);
        client.send(message.clone()).await.expect("room");
        assert_eq!(client.next().await.expect("an answer").expect("a message"), message, "{length} bytes");
    }
    client.send(Message::Ping("are you there?".into())).await.expect("room");
    let pong = client.next().await.expect("an answer").expect("a message");
    assert_eq!(pong, Message::Pong("are you there?".into()));
    let reason = CloseFrame { code: CloseCode::Normal, reason: "done".into() };
    client.close(Some(reason.clone())).await.expect("room");
    assert_eq!(client.next().await.expect("an answer").expect("a message"), Message::Close(Some(reason)));
    assert!(client.next().await.is_none());
}

async fn an_echo() {
    let (client, server) = pair().await;
    let server = mini::spawn(echo(server));
    converse(client).await;
    server.await.expect("no panic").expect("a proper end");
}

async fn an_echo_over_tls() {
    let identity = Identity::new(&["localhost"]).expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(identity.server().expect("a key")));
    let connector = TlsConnector::from(Arc::new(identity.client().expect("a certificate")));
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(async move {
        let stream = acceptor.accept(server).await.expect("a TLS handshake");
        echo(accept_async(stream).await.expect("a handshake")).await
    });
    let stream = connector.connect("localhost".try_into().expect("a name"), client).await.expect("a TLS handshake");
    let (client, _) = client_async("wss://localhost/", stream).await.expect("a handshake");
    converse(client).await;
    server.await.expect("no panic").expect("a proper end");
}

/// A request with the key of RFC 6455, section 1.3.
const REQUEST: &[u8] = b"GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A server, after a handshake with a peer that sends raw bytes, with `limits` of its own.
async fn server_and_bytes(limits: Option<WebSocketConfig>) -> (Socket<TcpStream>, TcpStream) {
    let (client, server) = tcp_pair().await;
    client.write_all(REQUEST).await.expect("room");
    let server = accept_async_with_config(server, limits).await.expect("a handshake");
    let answer = until_empty_line(&client).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}"); // from the same section
    (server, client)
}

/// The head of an HTTP message.
async fn until_empty_line(stream: &TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.expect("the rest of the head");
        head.extend(byte);
    }
    String::from_utf8(head).expect("text")
}

async fn the_bytes_of_the_standard() {
    let (mut server, client) = server_and_bytes(None).await;
    // Section 5.7: a masked "Hello", and one in two fragments, which is not masked in the RFC (a mask of 0 masks
    // nothing).
    let frames: [&[u8]; 3] = [
        &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58],
        &[0x01, 0x83, 0, 0, 0, 0, 0x48, 0x65, 0x6c],
        &[0x80, 0x82, 0, 0, 0, 0, 0x6c, 0x6f],
    ];
    for byte in frames.concat() {
        client.write_all(&[byte]).await.expect("room");
    }
    for _ in 0..2 {
        assert_eq!(server.next().await.expect("a message").expect("a good one"), Message::text("Hello"));
    }
    server.send(Message::text("Hello")).await.expect("room");
    let mut frame = [0; 7];
    client.read_exact(&mut frame).await.expect("a frame");
    assert_eq!(frame, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
}

/// What a server makes of `bytes`, which come after the handshake, and of their end.
async fn error_of(bytes: &[u8], limits: Option<WebSocketConfig>) -> Error {
    let (mut server, client) = server_and_bytes(limits).await;
    client.write_all(bytes).await.expect("room");
    client.shutdown(std::net::Shutdown::Write).expect("connected");
    let error = server.next().await.expect("an error").expect_err("an error");
    assert!(server.next().await.is_none(), "after an error there is nothing");
    error
}

async fn a_message_over_the_limit() {
    let limits = || Some(WebSocketConfig::default().max_message_size(Some(1000)).max_frame_size(Some(600)));
    // The head alone decides: the server should not wait for, or make room for, a message that it refuses.
    let huge = [&[0x82, 0xff][..], &(u64::MAX >> 1).to_be_bytes(), &[0; 4]].concat();
    let error = error_of(&huge, limits()).await;
    assert!(matches!(error, Error::Capacity(CapacityError::MessageTooLong { max_size: 600, .. })), "{error:?}");

    let fragment = |head| [&[head, 0xfe, 2, 0, 0, 0, 0, 0][..], &[0; 512]].concat();
    let error = error_of(&[fragment(0x02), fragment(0x80)].concat(), limits()).await;
    assert!(
        matches!(error, Error::Capacity(CapacityError::MessageTooLong { size: 1024, max_size: 1000 })),
        "{error:?}"
    );

    let (mut server, client) = server_and_bytes(limits()).await;
    client.write_all(&fragment(0x82)).await.expect("room");
    assert_eq!(server.next().await.expect("a message").expect("within the limit").len(), 512);
}

async fn frames_that_the_standard_forbids() {
    let cases: [(&str, &[u8], IsMeant); 6] = [
        ("an opcode that is not defined", &[0x83, 0x80, 0, 0, 0, 0], |e| matches!(e, ProtocolError::InvalidOpcode(3))),
        ("the same of control", &[0x8b, 0x80, 0, 0, 0, 0], |e| matches!(e, ProtocolError::InvalidOpcode(11))),
        ("a client's frame without a mask", &[0x81, 0x01, 0x41], |e| {
            matches!(e, ProtocolError::UnmaskedFrameFromClient)
        }),
        ("a bit that is reserved", &[0xc1, 0x80, 0, 0, 0, 0], |e| matches!(e, ProtocolError::NonZeroReservedBits)),
        ("a ping in fragments", &[0x09, 0x80, 0, 0, 0, 0], |e| matches!(e, ProtocolError::FragmentedControlFrame)),
        ("a continuation of nothing", &[0x80, 0x80, 0, 0, 0, 0], |e| {
            matches!(e, ProtocolError::UnexpectedContinueFrame)
        }),
    ];
    for (what, bytes, is_it) in cases {
        match error_of(bytes, None).await {
            Error::Protocol(error) => assert!(is_it(&error), "{what}: {error:?}"),
            error => panic!("{what}: {error:?}"),
        }
    }
    let error = error_of(&[0x81, 0x81, 0, 0, 0, 0, 0xff], None).await;
    assert!(matches!(error, Error::Utf8(_)), "{error:?}");
}

async fn a_peer_that_goes_in_the_middle_of_a_frame() {
    for bytes in [&[][..], &[0x82], &[0x82, 0x85, 1, 2], &[0x82, 0x85, 1, 2, 3, 4, 5]] {
        let error = error_of(bytes, None).await;
        assert!(matches!(error, Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)), "{bytes:?}: {error:?}");
    }
}

async fn a_peer_that_resets_the_connection() {
    let (mut server, client) = server_and_bytes(None).await;
    server.send(Message::text("unread")).await.expect("room");
    client.readable().await.expect("connected");
    drop(client); // with data unread, this is a reset (RFC 9293, section 3.6.1)
    match server.next().await.expect("an error").expect_err("an error") {
        Error::Io(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        error => panic!("{error:?}"),
    }
}

async fn a_request_that_asks_for_no_upgrade() {
    let (client, server) = tcp_pair().await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room");
    let error = accept_async(server).await.expect_err("a page was asked for");
    assert!(matches!(error, Error::Protocol(_)), "{error:?}");
}

async fn garbage_for_a_request() {
    for garbage in [&[0x16, 3, 1, 2, 0][..], b"\r\n\r\n\r\n", b"GET / HTTP/1.1\r\n: \r\n\r\n", &[0; 1 << 16]] {
        let (client, server) = tcp_pair().await;
        let sender = mini::spawn(async move {
            // The server may refuse it in the middle.
            let _ = client.write_all(garbage).await;
            let _ = client.shutdown(std::net::Shutdown::Write);
            client
        });
        accept_async(server).await.expect_err("garbage");
        sender.await.expect("no panic");
    }
}

/// What a client makes of a server that answers its request with `answer`.
async fn answered(answer: &'static [u8]) -> Error {
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(async move {
        until_empty_line(&server).await;
        server.write_all(answer).await.expect("room");
    });
    let error = client_async("ws://localhost/", client).await.expect_err("no upgrade");
    server.await.expect("no panic");
    error
}

async fn servers_that_do_not_upgrade() {
    match answered(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").await {
        Error::Http(response) => assert_eq!(response.status(), 404),
        error => panic!("{error:?}"),
    }
    let wrong_key = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let error = answered(wrong_key).await;
    assert!(matches!(error, Error::Protocol(ProtocolError::SecWebSocketAcceptKeyMismatch)), "{error:?}");
    let error = answered(b"220 mail.example.org ESMTP\r\n\r\n").await;
    assert!(matches!(error, Error::HttpFormat(_) | Error::Protocol(_)), "{error:?}");
    answered(b"HTTP/1.1 101 Switching").await;
}

async fn a_handshake_that_is_dropped_closes_the_connection() {
    let (client, server) = tcp_pair().await;
    let handshake = mini::spawn(async move { drop(client_async("ws://localhost/", client).await) });
    until_empty_line(&server).await;
    handshake.cancel().await.expect_err("not done");
    assert_eq!(server.read(&mut [0]).await.expect("an end"), 0);
}

mod each {
    use super::scenarios::scenarios;

    scenarios! {
        an_echo,
        an_echo_over_tls,
        the_bytes_of_the_standard,
        a_message_over_the_limit,
        frames_that_the_standard_forbids,
        a_peer_that_goes_in_the_middle_of_a_frame,
        a_peer_that_resets_the_connection,
        a_request_that_asks_for_no_upgrade,
        garbage_for_a_request,
        servers_that_do_not_upgrade,
        a_handshake_that_is_dropped_closes_the_connection,
    }
}

#[test]
fn a_client_that_never_ends_its_handshake_is_let_go() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.set_nodelay(true).unwrap(); // real time does not pass
            mini::spawn(example::serve(listener, None));
            client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            let trickle = async {
                while client.write_all(b"A: b\r\n").await.is_ok() {
                    mini::time::sleep(Duration::from_secs(3)).await;
                }
            };
            mini::time::timeout(Duration::from_secs(60), trickle).await.expect("the server closes");
        });
    });
}
