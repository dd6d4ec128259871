//! tonic over hyper on mini: calls of all kinds, deadlines, cancellation, and peers that break the protocol or go away.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use mini::net::{TcpListener, TcpStream};
use mini::task::JoinHandle;
use mini::time::timeout;
use mini_ecosystem::grpc::sums::sums_client::SumsClient;
use mini_ecosystem::grpc::sums::sums_server::{Sums, SumsServer};
use mini_ecosystem::grpc::{Number, Transport, service};
use mini_hyper::{Failure, Limits, Report, serve, serve_connection};
use mini_tests::net_support::{open_files, refusing_port, tcp_pair};
use mini_tests::{Counts, LIMIT, Token, in_child, multi_thread, on_each_flavour, oneshot, until, within};
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming, async_trait};

#[path = "../tonic.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

/// How long a client waits that gets no answer.
const SOON: Duration = Duration::from_millis(50);

type Numbers = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;
type Client = SumsClient<Transport>;

fn n(value: i64) -> Number {
    Number { value }
}

/// A service that never answers, or never ends its answer. It counts how many calls have begun, and how many were
/// dropped.
#[derive(Clone, Default)]
struct Stuck {
    begun: Arc<AtomicUsize>,
    counts: Arc<Counts>,
}

impl Stuck {
    fn begin(&self) -> Token {
        self.begun.fetch_add(1, SeqCst);
        Token::new(&self.counts)
    }
}

#[async_trait]
impl Sums for Stuck {
    type CountStream = Numbers;
    type TotalStream = Numbers;

    async fn double(&self, _: Request<Number>) -> Result<Response<Number>, Status> {
        let _token = self.begin();
        pending().await
    }

    async fn count(&self, _: Request<Number>) -> Result<Response<Numbers>, Status> {
        let token = self.begin();
        let endless = stream::once(async { Ok(n(1)) }).chain(stream::pending());
        Ok(Response::new(endless.inspect(move |_| _ = &token).boxed()))
    }

    async fn total(&self, request: Request<Streaming<Number>>) -> Result<Response<Numbers>, Status> {
        let token = self.begin();
        let mut numbers = request.into_inner();
        // Fails when the client goes away, also in the middle.
        mini::spawn(async move {
            let _token = token;
            while let Ok(Some(_)) = numbers.message().await {}
        });
        Ok(Response::new(stream::pending().boxed()))
    }
}

async fn server_of(sums: impl Sums) -> (SocketAddr, JoinHandle<io::Result<Report>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = service(Routes::new(SumsServer::new(sums)));
    (address, mini::spawn(serve(listener, service).into_future()))
}

/// Serves one connection to its end, and returns its result.
async fn serve_one(stream: TcpStream, sums: impl Sums) -> Result<(), Failure> {
    serve_connection(stream, service(Routes::new(SumsServer::new(sums))), Limits::default(), pending()).await
}

async fn client_of(address: SocketAddr) -> (Client, JoinHandle<hyper::Result<()>>) {
    let (transport, connection) = Transport::connect(address).await.unwrap();
    (Client::with_origin(transport, format!("http://{address}").parse().unwrap()), connection)
}

#[test]
fn calls_of_all_kinds_share_a_connection_on_each_flavour() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let (address, server) = server_of(example::Adder).await;
            example::call(address).await.unwrap();
            let (client, connection) = client_of(address).await;
            let tasks = (0..100_i64).map(|task| {
                let mut client = client.clone();
                mini::spawn(async move {
                    assert_eq!(client.double(n(task)).await?.into_inner().value, 2 * task);
                    let counted: Vec<Number> = client.count(n(task)).await?.into_inner().try_collect().await?;
                    assert_eq!(counted, (1..=task).map(n).collect::<Vec<_>>());
                    let totals = client.total(stream::iter((0..task).map(n))).await?.into_inner();
                    assert_eq!(totals.try_fold(0, async |_, number| Ok(number.value)).await?, task * (task - 1) / 2);
                    Ok::<_, Status>(())
                })
            });
            try_join_all(tasks).await.unwrap().into_iter().collect::<Result<(), Status>>().unwrap();
            // More than the windows of a stream hold: the reader sets the pace.
            let mut many = client.clone().count(n(100_000)).await.unwrap().into_inner();
            let mut last = 0;
            while let Some(number) = many.message().await.unwrap() {
                assert_eq!(number.value, last + 1);
                last = number.value;
            }
            assert_eq!(last, 100_000);
            drop((client, many));
            connection.await.unwrap().unwrap();
            assert!(server.cancel().await.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn both_sides_of_a_stream_take_turns() {
    within(LIMIT, || {
        mini::block_on(async {
            let (address, _server) = server_of(example::Adder).await;
            let (mut client, _connection) = client_of(address).await;
            let (send, numbers) = async_channel::bounded(1);
            send.send(n(1)).await.unwrap();
            let mut totals = client.total(numbers).await.unwrap().into_inner();
            for value in 1..100 {
                assert_eq!(totals.message().await.unwrap().unwrap().value, value * (value + 1) / 2);
                send.send(n(value + 1)).await.unwrap();
            }
            assert!(totals.message().await.unwrap().is_some());
            drop(send);
            assert!(totals.message().await.unwrap().is_none());
        });
    });
}

#[test]
fn an_error_of_the_handler_is_the_callers() {
    within(LIMIT, || {
        mini::block_on(async {
            let (address, _server) = server_of(example::Adder).await;
            let (mut client, _connection) = client_of(address).await;
            let status = client.double(n(i64::MAX)).await.unwrap_err();
            assert_eq!((status.code(), status.message()), (Code::OutOfRange, "too large"));
            assert_eq!(client.double(n(1)).await.unwrap().into_inner().value, 2);
        });
    });
}

#[test]
fn the_server_minds_the_deadline_that_a_call_brings() {
    within(LIMIT, || {
        mini::block_on(async {
            let stuck = Stuck::default();
            let counts = stuck.counts.clone();
            let (address, _server) = server_of(stuck.clone()).await;
            let (mut client, _connection) = client_of(address).await;
            let mut request = Request::new(n(1));
            request.set_timeout(SOON);
            assert_eq!(client.double(request).await.unwrap_err().code(), Code::DeadlineExceeded);
            until(|| counts.drops() == 1).await;
            // A malformed time limit is ignored, and so are ten thousand years: the call waits until the caller gives
            // it up.
            for wrong in ["", "5", "S", "-1S", "123456789S", "1x", "1\u{b5}", "99999999H"] {
                let mut request = Request::new(n(1));
                let value = tonic::metadata::MetadataValue::try_from(wrong.as_bytes()).unwrap();
                request.metadata_mut().insert("grpc-timeout", value);
                assert!(timeout(Duration::from_millis(5), client.double(request)).await.is_err(), "{wrong}");
            }
        });
    });
}

#[test]
fn a_call_that_the_client_drops_is_dropped_by_the_server() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let stuck = Stuck::default();
            let counts = stuck.counts.clone();
            let (address, _server) = server_of(stuck.clone()).await;
            let (mut client, _connection) = client_of(address).await;
            let given_up = async { drop(client.double(n(1)).await) };
            futures_lite::future::or(given_up, until(|| stuck.begun.load(SeqCst) == 1)).await;
            until(|| counts.drops() == 1).await;
            let mut answers = client.count(n(1)).await.unwrap().into_inner();
            assert_eq!(answers.message().await.unwrap(), Some(n(1)));
            assert!(timeout(SOON, answers.message()).await.is_err());
            drop(answers);
            until(|| counts.drops() == 2).await;
            // A stream of both sides is over when both have dropped it.
            let (send, numbers) = async_channel::bounded(1);
            let answers = client.total(numbers).await.unwrap();
            drop((answers, send));
            until(|| counts.drops() == 3).await;
        });
    });
}

#[test]
fn a_client_that_goes_away_in_the_middle_leaves_nothing_open() {
    in_child("a_client_that_goes_away_in_the_middle_leaves_nothing_open", || {
        mini::block_on(async {
            let stuck = Stuck::default();
            let counts = stuck.counts.clone();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            // Now the runtime has opened all that sockets need.
            drop(tcp_pair().await);
            let before = open_files();
            for number in 1..10 {
                let elsewhere = multi_thread(1).build().unwrap();
                let (send, has_begun) = oneshot();
                elsewhere.spawn(async move {
                    let (mut client, _connection) = client_of(address).await;
                    let mut answers = client.count(n(1)).await.unwrap().into_inner();
                    send.send(answers.message().await);
                    answers.message().await
                });
                let (stream, _) = listener.accept().await.unwrap();
                let server = mini::spawn(serve_one(stream, stuck.clone()));
                assert_eq!(has_begun.await.unwrap().unwrap(), Some(n(1)));
                drop(elsewhere);
                let _ = server.await.unwrap();
                until(|| counts.drops() == number && open_files() == before).await;
            }
        });
    });
}

#[test]
fn a_server_that_goes_away_in_the_middle_ends_calls_and_connection() {
    within(LIMIT, || {
        mini::block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stuck = Stuck::default();
            let begun = stuck.begun.clone();
            let served = mini::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                serve_one(stream, stuck).await
            });
            let (mut client, connection) = client_of(address).await;
            let mut answers = client.count(n(1)).await.unwrap().into_inner();
            assert_eq!(answers.message().await.unwrap(), Some(n(1)));
            let (mut other, never) = (client.clone(), mini::spawn(async move { answers.message().await }));
            let waits = mini::spawn(async move { other.double(n(1)).await });
            until(|| begun.load(SeqCst) == 2).await;
            assert!(served.cancel().await.unwrap_err().is_cancelled());
            assert!(waits.await.unwrap().is_err());
            assert!(never.await.unwrap().is_err());
            let _ = connection.await.unwrap();
            assert!(client.double(n(1)).await.is_err());
            assert!(Transport::connect(address).await.is_err());
        });
    });
}

/// The result of a server whose client sends `bytes`, and then waits for the end, or ends first.
async fn served(bytes: &[u8], stays: bool) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let server = mini::spawn(serve_one(stream, example::Adder));
    client.write_all(bytes).await.unwrap();
    let mut buf = [0; 4096];
    while stays && matches!(client.read(&mut buf).await, Ok(1..)) {}
    drop(client);
    timeout(LIMIT, server).await.expect("an end").unwrap()
}

#[test]
fn clients_that_break_the_protocol_are_refused() {
    within(LIMIT, || {
        mini::block_on(async {
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
            let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            let started = [preface, &settings].concat();
            let with = |bytes: &[u8]| [started.as_slice(), bytes].concat();
            let wrong = [
                b"PRI * HTTP/2.0\r\n\r\nMS\r\n\r\n".to_vec(),
                vec![0xff; 100],
                with(&[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]), // a frame over the limit
                with(&[0, 0, 1, 0, 0, 0, 0, 0, 1, 7]),       // data of a stream that nobody has opened
                with(&[0, 0, 4, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]), // headers that don't decode
                with(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]), // a window that grows by nothing
            ];
            for (number, bytes) in wrong.into_iter().enumerate() {
                assert!(served(&bytes, true).await.is_err(), "number {number}");
            }
            // A client that goes away: in the middle of the preface, of a frame, and between two.
            assert!(served(&preface[..10], false).await.is_err());
            let _ = served(&with(&[0, 0, 9, 1]), false).await;
            let _ = served(&started, false).await;
        });
    });
}

#[test]
fn calls_that_are_no_grpc_get_a_status() {
    within(LIMIT, || {
        mini::block_on(async {
            let (address, _server) = server_of(example::Adder).await;
            let stream = TcpStream::connect(address).await.unwrap();
            let http = hyper::client::conn::http2::Builder::new(mini::hyper::Executor::new());
            let (mut sender, connection) = http.handshake(stream).await.unwrap();
            mini::spawn(connection);
            let mut call = async |path: &str, body: &[u8]| {
                let request =
                    hyper::Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
                let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
                let answer = sender.send_request(request).await.unwrap();
                let (head, body) = answer.into_parts();
                let mut fields = body.collect().await.unwrap().trailers().cloned().unwrap_or_default();
                fields.extend(head.headers);
                fields.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()))
            };
            let double = "/mini.example.Sums/Double";
            assert_eq!(call(double, &[0, 0, 0, 0, 2, 8, 3]).await, Some(Code::Ok));
            for (body, code) in [
                (b"".as_slice(), Code::Internal),          // no message
                (b"\0\0\0\0\x02\x08", Code::Internal),     // half of one
                (b"\x07\0\0\0\0", Code::Internal),         // flags that there are not
                (b"\x01\0\0\0\0", Code::Internal),         // compressed, by nothing
                (b"\0\xff\xff\xff\xff", Code::OutOfRange), // 4 GiB
                (b"\0\0\0\0\x02\x0b\xff", Code::Internal), // no number
            ] {
                assert_eq!(call(double, body).await, Some(code), "{body:?}");
            }
            assert_eq!(call("/mini.example.Sums/Triple", b"").await, Some(Code::Unimplemented));
            assert_eq!(call("/elsewhere", b"").await, Some(Code::Unimplemented));
            assert_eq!(call(double, &[0, 0, 0, 0, 2, 8, 3]).await, Some(Code::Ok));
        });
    });
}

#[test]
fn servers_that_break_the_protocol_give_an_error() {
    within(LIMIT, || {
        mini::block_on(async {
            for bytes in
                [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), &[0xff; 100], b"\0\0\x01\x04\0\0\0\0\0\x07", b""]
            {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                mini::spawn(async move {
                    let (stream, _) = listener.accept().await?;
                    stream.read(&mut [0; 1]).await?;
                    stream.write_all(bytes).await
                });
                let (mut client, connection) = client_of(address).await;
                assert!(timeout(LIMIT, client.double(n(1))).await.unwrap().is_err(), "{bytes:?}");
                drop(client);
                let _ = timeout(LIMIT, connection).await.unwrap().unwrap();
            }
            let (_keeps, nobody) = refusing_port();
            assert!(Transport::connect(nobody).await.is_err());
        });
    });
}

/// tonic's own channel to `address`, over mini's sockets and tasks.
fn channel(endpoint: tonic::transport::Endpoint, address: SocketAddr) -> SumsClient<tonic::transport::Channel> {
    let connect = tower::service_fn(move |_| Box::pin(TcpStream::connect(address)));
    SumsClient::new(endpoint.executor(mini::hyper::Executor::new()).connect_with_connector_lazy(connect))
}

#[test]
fn tonics_own_channel_works_but_its_time_limits_need_tokio() {
    within(LIMIT, || {
        mini::block_on(async {
            let (address, _server) = server_of(example::Adder).await;
            let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
            let mut client = channel(endpoint.clone(), address);
            for value in 0..100 {
                assert_eq!(client.double(n(value)).await.unwrap().into_inner().value, 2 * value);
            }
            let counted: Vec<Number> = client.count(n(3)).await.unwrap().into_inner().try_collect().await.unwrap();
            assert_eq!(counted, [n(1), n(2), n(3)]);
            let mut limited = channel(endpoint.timeout(LIMIT), address);
            assert!(limited.double(n(1)).await.is_err(), "its task has panicked");
        });
    });
}
