//! A server of hyper on mini against clients that break the protocol, send too much or too slowly, or go away: the
//! error comes out of the connection, the connection is closed, and nothing stays.

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use futures_lite::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use mini::net::UnixStream;
use mini::task::JoinHandle;
use mini_hyper::{Failure, Limits, serve_connection};
use mini_tests::net_support::tcp_pair;
use mini_tests::{LIMIT, within};
use tokio::sync::oneshot;

#[path = "../../../../examples/ecosystem/tests/support/scenarios.rs"]
mod scenarios;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS, with which either side begins (RFC 9113, section 3.4).
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The head of a GET of `http://x/`, from HPACK's static table (RFC 7541, appendix A).
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'x'];

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = [&(payload.len() as u32).to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Answers with the length of the body that came.
async fn count(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::from(body.len().to_string())))
}

/// A connection whose client is the test.
struct Victim {
    client: UnixStream,
    ended: JoinHandle<Result<(), Failure>>,
    _go_on: oneshot::Sender<()>,
}

impl Victim {
    fn new() -> Self {
        let (client, server) = UnixStream::pair().unwrap();
        let (go_on, stop) = oneshot::channel();
        Self {
            client,
            ended: mini::spawn(serve_connection(server, service_fn(count), Limits::default(), async {
                drop(stop.await)
            })),
            _go_on: go_on,
        }
    }

    /// Sends what may be more than the server reads; returns all that comes until the server closes, and its error.
    async fn take(self, bytes: &[u8]) -> (Vec<u8>, Failure) {
        let mut answer = Vec::new();
        let send = async { drop(self.client.write_all(bytes).await) };
        let read = async { drop(self.client.read_to_end(&mut answer).await) };
        futures_lite::future::zip(send, read).await;
        let error = self.ended.await.unwrap().expect_err("a connection that ends in order");
        (answer, error)
    }
}

fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).into_owned()
}

/// The error code of the GOAWAY among the frames of `answer`.
fn goaway(mut answer: &[u8]) -> Option<u32> {
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = answer {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if *kind == 7 {
            return Some(u32::from_be_bytes(rest[4..8].try_into().unwrap()));
        }
        answer = &rest[length.min(rest.len())..];
    }
    None
}

async fn garbage_is_answered_with_400() {
    for garbage in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let (answer, error) = Victim::new().take(garbage).await;
        assert!(text(&answer).starts_with("HTTP/1.1 400"), "{garbage:?}: {}", text(&answer));
        assert!(error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse), "{error:?}");
    }
}

async fn contradictory_lengths_are_answered_with_400() {
    for head in ["Content-Length: 4\r\nContent-Length: 5", "Content-Length: -1", "Transfer-Encoding: gzip"] {
        let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\nbody");
        let (answer, error) = Victim::new().take(request.as_bytes()).await;
        assert!(text(&answer).starts_with("HTTP/1.1 400"), "{head}: {}", text(&answer));
        assert!(error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse), "{error:?}");
    }
}

async fn floods_of_headers_are_answered_with_431() {
    let many = "A: b\r\n".repeat(10_000);
    let long = format!("A: {}\r\n", "b".repeat(1 << 20));
    for headers in [many, long] {
        let (answer, error) = Victim::new().take(format!("GET / HTTP/1.1\r\n{headers}\r\n").as_bytes()).await;
        // The end may come as a reset that discards the answer, as there is more to read.
        assert!(answer.is_empty() || text(&answer).starts_with("HTTP/1.1 431"), "{}", text(&answer));
        assert!(error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse), "{error:?}");
    }
}

async fn errors_of_http2_are_told_by_their_code() {
    const PROTOCOL_ERROR: u32 = 1;
    const FLOW_CONTROL_ERROR: u32 = 3;
    const FRAME_SIZE_ERROR: u32 = 6;
    let wrong = [
        ("data of no stream", frame(0, 0, 0, b"data"), PROTOCOL_ERROR),
        ("a stream of even number", frame(1, 5, 2, GET), PROTOCOL_ERROR),
        ("a continuation of nothing", frame(9, 4, 1, GET), PROTOCOL_ERROR),
        ("a window that grows by nothing", frame(8, 0, 0, &[0; 4]), PROTOCOL_ERROR),
        ("a window beyond 2^31", frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), FLOW_CONTROL_ERROR),
        ("settings of a stream", frame(4, 0, 1, &[]), PROTOCOL_ERROR),
        ("a frame over the limit", frame(0, 0, 1, &[0; 16_385]), FRAME_SIZE_ERROR),
        // The code is h2's choice.
        ("an index that HPACK does not have", frame(1, 5, 1, &[0xff, 0xff, 0xff, 0x0f]), PROTOCOL_ERROR),
    ];
    for (what, bytes, code) in wrong {
        let (answer, error) = Victim::new().take(&[PREFACE, SETTINGS, &bytes].concat()).await;
        assert_eq!(goaway(&answer), Some(code), "{what}: {error:?}, {answer:?}");
        assert!(error.downcast_ref::<hyper::Error>().is_some(), "{what}: {error:?}");
    }
}

async fn floods_of_http2_end_the_connection() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let header = [&[0, 1, b'a', 100][..], &[b'b'; 100]].concat().repeat(100);
    let head = frame(1, 1, 1, GET);
    let continued = [head, frame(9, 0, 1, &header).repeat(1000)].concat();
    let resets = |id: u32| [frame(1, 5, 2 * id + 1, GET), frame(3, 0, 2 * id + 1, &[0, 0, 0, 8])].concat();
    let reset: Vec<u8> = (0..10_000).flat_map(resets).collect();
    for (what, bytes) in [("continuations", continued), ("resets", reset)] {
        let (answer, error) = Victim::new().take(&[PREFACE, SETTINGS, &bytes].concat()).await;
        assert!(matches!(goaway(&answer), Some(ENHANCE_YOUR_CALM) | None), "{what}: {:?}", goaway(&answer));
        assert!(error.downcast_ref::<hyper::Error>().is_some(), "{what}: {error:?}");
    }
}

async fn a_client_that_goes_in_the_middle_of_a_body_is_an_error() {
    let half = frame(1, 4, 1, &[&[0x83], &GET[1..]].concat());
    let http2 = [PREFACE, SETTINGS, &half, &frame(0, 0, 1, b"half")].concat();
    let http1 = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf".to_vec();
    for bytes in [http1, chunked] {
        let Victim { client, ended, _go_on } = Victim::new();
        client.write_all(&bytes).await.unwrap();
        drop(client);
        assert!(ended.await.unwrap().is_err());
    }
    // A connection of HTTP/2 has ended in order; only the request gets the error.
    let Victim { client, ended, _go_on } = Victim::new();
    client.write_all(&http2).await.unwrap();
    drop(client);
    let _ = ended.await.unwrap();
}

async fn a_client_that_goes_in_the_middle_of_an_answer_is_an_error() {
    let (client, server) = UnixStream::pair().unwrap();
    let endless = service_fn(async |_: Request<Incoming>| {
        let parts =
            stream::repeat(Bytes::from_static(&[b'x'; 4096])).map(|part| Ok::<_, Infallible>(Frame::data(part)));
        Ok::<_, Infallible>(Response::new(StreamBody::new(parts)))
    });
    let ended = mini::spawn(serve_connection(server, endless, Limits::default(), pending()));
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    client.read_exact(&mut vec![0; 100_000]).await.unwrap();
    drop(client);
    let error = ended.await.unwrap().unwrap_err();
    let cause = error.downcast_ref::<hyper::Error>().and_then(std::error::Error::source).expect("a cause");
    let kind = cause.downcast_ref::<std::io::Error>().expect("an error of the system").kind();
    assert!(matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{kind:?}");
}

/// A connection of HTTP/2 whose client has had the answer to its request.
async fn answered<I>(client: impl AsyncRead + AsyncWrite + Unpin, server: I) -> JoinHandle<Result<(), Failure>>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut client = client;
    let ended = mini::spawn(serve_connection(server, service_fn(count), Limits::default(), pending()));
    client.write_all(&[PREFACE, SETTINGS, &frame(1, 5, 1, GET)].concat()).await.unwrap();
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        let [a, b, c, _, flags, _, _, _, stream] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        client.read_exact(&mut payload).await.unwrap();
        if stream == 1 && flags & 1 == 1 {
            return ended; // after END_STREAM
        }
    }
}

async fn a_client_of_http2_that_leaves_between_requests_is_no_error() {
    const GOAWAY: u8 = 7;
    // The client says so, and does not hear the answer to that.
    let (client, server) = UnixStream::pair().unwrap();
    let ended = answered(&client, server).await;
    client.shutdown(Shutdown::Read).unwrap();
    client.write_all(&frame(GOAWAY, 0, 0, &[0; 8])).await.unwrap();
    ended.await.unwrap().unwrap();
    // The client just goes, and the server sees a reset.
    let (client, server) = tcp_pair().await;
    let ended = answered(&client, server).await;
    client.set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    ended.await.unwrap().unwrap();
}

mod tests {
    crate::scenarios::scenarios! {
        garbage_is_answered_with_400,
        contradictory_lengths_are_answered_with_400,
        floods_of_headers_are_answered_with_431,
        errors_of_http2_are_told_by_their_code,
        floods_of_http2_end_the_connection,
        a_client_that_goes_in_the_middle_of_a_body_is_an_error,
        a_client_that_goes_in_the_middle_of_an_answer_is_an_error,
        a_client_of_http2_that_leaves_between_requests_is_no_error,
    }
}

#[test]
fn who_sends_a_little_at_a_time_gets_no_more_time() {
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let post = |header: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n");
    let slow = [
        ("blank lines", String::new(), "\r\n"),
        ("blank lines after a request", request.to_owned(), "\r\n"),
        ("header lines", "GET / HTTP/1.1\r\n".to_owned(), "A: b\r\n"),
        ("a body", post("Content-Length: 1000"), "x"),
        ("chunks of a body", post("Transfer-Encoding: chunked"), "1\r\nx\r\n"),
    ];
    within(LIMIT, || {
        mini::block_on(async move {
            mini::time::pause();
            for (what, first, piece) in slow {
                let Victim { client, ended, _go_on } = Victim::new();
                client.write_all(first.as_bytes()).await.unwrap();
                let trickle = async {
                    while client.write_all(piece.as_bytes()).await.is_ok() {
                        mini::time::sleep(Duration::from_secs(3)).await;
                    }
                };
                let end = mini::time::timeout(Duration::from_secs(60), futures_lite::future::zip(trickle, ended)).await;
                let ended = end.unwrap_or_else(|_| panic!("{what}: the server bears it")).1.unwrap();
                println!("{what}: {ended:?}");
            }
        });
    });
}

#[test]
fn slow_clients_run_out_of_time() {
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let http2 = [PREFACE, SETTINGS, &frame(1, 5, 1, GET)].concat();
    let slow: [(&str, Vec<u8>); 6] = [
        ("nothing", Vec::new()),
        ("half of a line", b"GET / HT".to_vec()),
        ("half of HTTP/2's first bytes", b"PRI * HTTP/2".to_vec()),
        ("HTTP/2 without a request", [PREFACE, SETTINGS].concat()),
        ("a request and half of the next", [&request[..], b"GET / HT"].concat()),
        ("HTTP/2 without answers to pings", http2),
    ];
    within(LIMIT, || {
        mini::block_on(async move {
            mini::time::pause();
            for (what, bytes) in slow {
                let start = mini::time::Instant::now();
                let victim = Victim::new();
                let error = victim.take(&bytes).await.1;
                let took = start.elapsed();
                assert!(
                    took >= Duration::from_secs(9) && took < Duration::from_secs(60),
                    "{what}: {took:?}, {error:?}"
                );
            }
        });
    });
}
