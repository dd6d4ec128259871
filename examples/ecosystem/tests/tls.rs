//! TLS over mini's streams: futures-rustls with itself, with OpenSSL on either side, and with peers that misbehave.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use futures_lite::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use futures_rustls::{TlsAcceptor, TlsConnector, client, server};
use http_body_util::BodyExt;
use mini::hyper::Executor;
use mini::net::{TcpListener, TcpStream};
use mini::time::timeout;
use mini_ecosystem::certificate::Identity;
use mini_hyper::FuturesIo;
use mini_tests::net_support::{ANY_PORT, ScratchDir, Words, in_each_runtime, tcp_pair};
use rustls::{AlertDescription, CertificateError, Error as TlsError};

#[path = "support/scenarios.rs"]
mod scenarios;

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new(&["localhost"]).expect("a certificate"));

fn acceptor() -> TlsAcceptor {
    static CONFIG: LazyLock<Arc<rustls::ServerConfig>> =
        LazyLock::new(|| Arc::new(IDENTITY.server().expect("a key that fits")));
    CONFIG.clone().into()
}

fn connector() -> TlsConnector {
    static CONFIG: LazyLock<Arc<rustls::ClientConfig>> =
        LazyLock::new(|| Arc::new(IDENTITY.client().expect("a certificate")));
    CONFIG.clone().into()
}

type Client = client::TlsStream<TcpStream>;
type Server = server::TlsStream<TcpStream>;

/// Both ends of a connection after their handshake.
async fn pair() -> (Client, Server) {
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(async move { acceptor().accept(server).await });
    let client = connect(client, "localhost").await.expect("a handshake");
    (client, server.await.expect("no panic").expect("a handshake"))
}

async fn connect(tcp: TcpStream, name: &'static str) -> io::Result<Client> {
    connector().connect(name.try_into().expect("a name"), tcp).await
}

/// What rustls says inside of an I/O error.
fn tls_error(error: io::Error) -> TlsError {
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    *error.into_inner().expect("a reason").downcast().expect("an error of rustls")
}

async fn both_ways_at_once() {
    const TOTAL: usize = 1 << 20;
    let (client, server) = pair().await;
    let (client_read, client_write) = futures_lite::io::split(client);
    let (server_read, server_write) = futures_lite::io::split(server);
    let up = mini::spawn(send(client_write, 1, TOTAL));
    let down = mini::spawn(send(server_write, 2, TOTAL));
    let at_server = mini::spawn(receive(server_read));
    let at_client = receive(client_read).await;
    assert_eq!(at_client, (TOTAL, down.await.expect("sent")));
    assert_eq!(at_server.await.expect("received"), (TOTAL, up.await.expect("sent")));
}

/// Sends `total` bytes and the end; returns their sum.
async fn send(mut to: impl futures_lite::AsyncWrite + Unpin, seed: u64, total: usize) -> u64 {
    let mut words = Words::new(seed);
    for _ in 0..total / 4096 {
        to.write_all(&words.take(4096)).await.expect("a reader");
    }
    to.close().await.expect("a close_notify");
    words.sum()
}

/// Reads to the end; returns how much there was, and its sum.
async fn receive(mut from: impl futures_lite::AsyncRead + Unpin) -> (usize, u64) {
    let mut all = Vec::new();
    from.read_to_end(&mut all).await.expect("a proper end");
    let mut words = Words::new(0);
    words.add(&all);
    (all.len(), words.sum())
}

async fn a_name_that_the_certificate_does_not_have() {
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(async move { acceptor().accept(server).await });
    let error = tls_error(connect(client, "example.org").await.expect_err("another name"));
    assert!(matches!(error, TlsError::InvalidCertificate(CertificateError::NotValidForNameContext { .. })), "{error}");
    let error = server.await.expect("no panic").expect_err("a client that refuses");
    assert_eq!(tls_error(error), TlsError::AlertReceived(AlertDescription::BadCertificate));
}

async fn a_certificate_that_nobody_vouches_for() {
    let stranger = Identity::new(&["localhost"]).expect("a certificate");
    let stranger = TlsAcceptor::from(Arc::new(stranger.server().expect("a key")));
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(async move { stranger.accept(server).await });
    let error = tls_error(connect(client, "localhost").await.expect_err("a stranger"));
    assert!(matches!(error, TlsError::InvalidCertificate(_)), "{error}");
    server.await.expect("no panic").expect_err("a client that refuses");
}

async fn garbage_for_a_handshake() {
    let (client, server) = tcp_pair().await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room");
    let error = acceptor().accept(server).await.expect_err("garbage");
    assert!(matches!(tls_error(error), TlsError::InvalidMessage(_)));
    // The server has said why before it closed: an alert record (RFC 8446, section 5.1), fatal.
    let mut alert = [0; 7];
    client.read_exact(&mut alert).await.expect("an alert");
    assert_eq!((alert[0], alert[5]), (21, 2), "{alert:?}");
}

async fn garbage_for_the_answer_of_a_server() {
    let (client, server) = tcp_pair().await;
    server.write_all(&[0x5a; 100]).await.expect("room");
    let error = connect(client, "localhost").await.expect_err("garbage");
    assert!(matches!(tls_error(error), TlsError::InvalidMessage(_)));
    drop(server);
}

/// The first message of a client.
async fn hello() -> Vec<u8> {
    let (client, server) = tcp_pair().await;
    let client = mini::spawn(connect(client, "localhost"));
    let mut hello = vec![0; 5];
    server.read_exact(&mut hello).await.expect("the head of a record");
    hello.resize(5 + usize::from(u16::from_be_bytes([hello[3], hello[4]])), 0);
    server.read_exact(&mut hello[5..]).await.expect("a record");
    drop(server);
    client.await.expect("no panic").expect_err("nobody there");
    hello
}

async fn a_handshake_that_breaks_off() {
    let hello = hello().await;
    for length in [0, 1, 5, hello.len() / 2, hello.len() - 1, hello.len()] {
        let (client, server) = tcp_pair().await;
        client.write_all(&hello[..length]).await.expect("room");
        if length < hello.len() {
            drop(client);
        } else {
            client.shutdown(std::net::Shutdown::Write).expect("connected");
        }
        let error = acceptor().accept(server).await.expect_err("no end of the handshake");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "after {length} bytes");
    }
}

async fn a_handshake_that_stops_is_given_up_and_closed() {
    let hello = hello().await;
    let (client, server) = tcp_pair().await;
    client.write_all(&hello[..hello.len() / 2]).await.expect("room");
    timeout(Duration::from_millis(5), acceptor().accept(server)).await.expect_err("nothing more comes");
    let error = client.read(&mut [0]).await.map_err(|error| error.kind());
    // If the server had unread bytes, the end is an error.
    assert!(matches!(error, Ok(0) | Err(ErrorKind::ConnectionReset)), "{error:?}");
}

async fn an_end_that_is_not_announced_is_an_error() {
    let (mut client, mut server) = pair().await;
    client.write_all(b"half a mess").await.expect("room");
    client.flush().await.expect("room");
    client.into_inner().0.shutdown(std::net::Shutdown::Both).expect("connected");
    let mut buf = Vec::new();
    let error = server.read_to_end(&mut buf).await.expect_err("cut off, perhaps by somebody else");
    assert_eq!((error.kind(), &buf[..]), (ErrorKind::UnexpectedEof, &b"half a mess"[..]));
}

async fn an_announced_end_is_none() {
    let (mut client, mut server) = pair().await;
    client.write_all(b"whole").await.expect("room");
    client.close().await.expect("a close_notify");
    let mut buf = Vec::new();
    server.read_to_end(&mut buf).await.expect("a proper end");
    assert_eq!(buf, b"whole");
    // The other direction goes on (RFC 8446, section 6.1).
    server.close().await.expect("a close_notify");
    assert_eq!(client.read(&mut [0]).await.expect("a proper end"), 0);
}

async fn a_record_that_was_changed_on_its_way() {
    let (mut client, mut server) = pair().await;
    client.write_all(b"first").await.expect("room");
    client.flush().await.expect("room");
    let mut buf = [0; 5];
    server.read_exact(&mut buf).await.expect("a good record");
    // Application data (23) of TLS 1.2 to the eye, as 1.3 has it, that no key has made.
    let forged = [&[23, 3, 3, 0, 32][..], &[9; 32]].concat();
    client.get_ref().0.write_all(&forged).await.expect("room");
    let error = server.read(&mut buf).await.expect_err("forged");
    assert_eq!(tls_error(error), TlsError::DecryptError);
}

async fn a_peer_that_goes_while_data_waits() {
    let (mut client, server) = pair().await;
    let block = vec![7; 64 << 10];
    // Until no more can be sent: then the writer waits for the reader.
    while timeout(Duration::from_millis(20), client.write_all(&block)).await.is_ok() {}
    let writer = mini::spawn(async move { while client.write_all(&block).await.is_ok() {} });
    drop(server);
    writer.await.expect("the writer is told, and ends");
}

mod each {
    use super::scenarios::scenarios;

    scenarios! {
        both_ways_at_once,
        a_name_that_the_certificate_does_not_have,
        a_certificate_that_nobody_vouches_for,
        garbage_for_a_handshake,
        garbage_for_the_answer_of_a_server,
        a_handshake_that_breaks_off,
        a_handshake_that_stops_is_given_up_and_closed,
        an_end_that_is_not_announced_is_an_error,
        an_announced_end_is_none,
        a_record_that_was_changed_on_its_way,
        a_peer_that_goes_while_data_waits,
        a_web_server_and_its_client,
    }
}

/// A program of OpenSSL, which is killed when this is dropped.
struct Openssl(Child);

impl Openssl {
    /// `None`, and a line that says so, where it is not installed.
    fn start(args: &[&str]) -> Option<Self> {
        let mut command = Command::new("openssl");
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("MINI_TEST_SERVERS").is_none() => {
                println!("skipped: no openssl here");
                None
            }
            child => Some(Self(child.expect("openssl starts"))),
        }
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A body larger than a record, over both versions of HTTP, with the same adapter at both ends.
async fn a_web_server_and_its_client() {
    let body: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
    let sent = Bytes::from(body);
    let answer = sent.clone();
    let router = Router::new().route("/", axum::routing::get(async move || answer));
    let listener = TcpListener::bind(ANY_PORT).await.expect("a free port");
    let addr = listener.local_addr().expect("bound");
    let mut config = IDENTITY.server().expect("a key that fits");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = mini_hyper::serve(listener, router).handshake(move |tcp: TcpStream| {
        let accepting = acceptor.accept(tcp);
        async move { accepting.await.map(FuturesIo::new) }
    });
    let server = mini::spawn(server.into_future());
    for protocol in ["h2", "http/1.1"] {
        let mut config = IDENTITY.client().expect("a certificate");
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let tcp = TcpStream::connect(addr).await.expect("somebody listens");
        let tls = TlsConnector::from(Arc::new(config));
        let tls = tls.connect("localhost".try_into().expect("a name"), tcp).await.expect("a handshake");
        assert_eq!(tls.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let request = hyper::Request::get("https://localhost/").header("host", "localhost").body(String::new());
        let request = request.expect("a request");
        let response = if protocol == "h2" {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(Executor::new(), FuturesIo::new(tls)).await.expect("HTTP/2");
            mini::spawn(connection);
            sender.send_request(request).await
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(FuturesIo::new(tls)).await.expect("HTTP/1");
            mini::spawn(connection);
            sender.send_request(request).await
        };
        let received = response.expect("an answer").into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(received, sent, "{protocol}");
    }
    server.cancel().await.expect_err("it serves for ever");
}

#[test]
fn openssl_is_our_client() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.expect("a free port");
        let addr = listener.local_addr().expect("bound").to_string();
        let dir = ScratchDir::new("tls");
        let pem = dir.path().join("cert.pem");
        std::fs::write(&pem, &IDENTITY.pem).expect("a new file");
        let pem = pem.to_str().expect("a path in UTF-8");
        for version in ["-tls1_2", "-tls1_3"] {
            let verify = ["-verify_return_error", "-verify_hostname", "localhost", "-CAfile", pem];
            let args = [&["s_client", "-quiet", version, "-connect", &addr], &verify[..]].concat();
            let Some(mut openssl) = Openssl::start(&args) else { return };
            let mut stdin = openssl.0.stdin.take().expect("a pipe");
            stdin.write_all(b"hello from openssl\n").expect("room");
            let (tcp, _) = listener.accept().await.expect("a connection");
            let mut stream = BufReader::new(acceptor().accept(tcp).await.expect("a handshake"));
            let mut line = String::new();
            stream.read_line(&mut line).await.expect("a line");
            assert_eq!(line, "hello from openssl\n", "{version}");
            stream.write_all(b"hello from mini\n").await.expect("room");
            stream.close().await.expect("a close_notify");
            let mut stdout = openssl.0.stdout.take().expect("a pipe");
            let said = mini::spawn_blocking(move || io::read_to_string(&mut stdout)).await.expect("no panic");
            assert_eq!(said.expect("text"), "hello from mini\n", "{version}");
        }
    });
}

/// The address that `openssl s_server` prints, and the rest of its output, which must be read so that it can go on.
async fn addr_of(openssl: &mut Openssl) -> (SocketAddr, impl Send) {
    let stdout = openssl.0.stdout.take().expect("a pipe");
    let said = mini::spawn_blocking(move || {
        let mut lines = io::BufRead::lines(io::BufReader::new(stdout)).map_while(Result::ok);
        let addr = lines.find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok());
        (addr.expect("an address"), lines)
    });
    said.await.expect("an address")
}

#[test]
fn openssl_is_our_server() {
    in_each_runtime(|| async {
        let dir = ScratchDir::new("tls");
        let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        std::fs::write(&cert, &IDENTITY.pem).expect("a new file");
        std::fs::write(&key, &IDENTITY.key_pem).expect("a new file");
        let [cert, key] = [&cert, &key].map(|path| path.to_str().expect("a path in UTF-8"));
        for version in ["-tls1_2", "-tls1_3"] {
            let args = ["s_server", "-accept", ANY_PORT, "-cert", cert, "-key", key, "-rev", version];
            let Some(mut openssl) = Openssl::start(&args) else { return };
            let (addr, _more) = addr_of(&mut openssl).await;
            let tcp = TcpStream::connect(addr).await.expect("somebody listens");
            let mut stream = BufReader::new(connect(tcp, "localhost").await.expect("a handshake"));
            stream.write_all(b"stressed\n").await.expect("room");
            stream.flush().await.expect("room");
            let mut line = String::new();
            stream.read_line(&mut line).await.expect("a line");
            assert_eq!(line, "desserts\n", "{version}");
        }
    });
}
