//! Crates that need no runtime of their own, or little of one, each in the use that most programs make of it.

use std::io::Read;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use mini::net::{TcpListener, TcpStream, UnixStream};
use mini::time::{Instant, sleep, timeout};

/// Runs a test on a clock that is paused.
fn paused(test: impl Future<Output = ()>) {
    mini::runtime::Builder::new_current_thread().start_paused(true).build().unwrap().block_on(test);
}

#[test]
fn async_stream_waits_between_its_items() {
    paused(async {
        let beats = async_stream::stream! {
            for beat in 0..3 {
                sleep(Duration::from_secs(1)).await;
                yield beat;
            }
        };
        let begin = Instant::now();
        assert_eq!(beats.collect::<Vec<_>>().await, [0, 1, 2]);
        assert!(begin.elapsed() >= Duration::from_secs(3));
    });
}

#[test]
fn futures_concurrency_joins_and_races() {
    use futures_concurrency::prelude::*;
    paused(async {
        let later = |seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        };
        let begin = Instant::now();
        assert_eq!([later(2), later(1)].join().await, [2, 1]);
        assert_eq!([later(5), later(1)].race().await, 1);
        assert!(begin.elapsed() < Duration::from_secs(4));
    });
}

#[test]
fn tokio_macros_need_no_runtime_of_tokio() {
    paused(async {
        let (a, b) = tokio::join!(async { 1 }, async { 2 });
        let first = tokio::select! {
            () = sleep(Duration::from_secs(60)) => "the minute",
            () = sleep(Duration::from_secs(1)) => "the second",
        };
        assert_eq!((a + b, first), (3, "the second"));
    });
}

#[test]
fn tokio_util_frames_a_stream() {
    use tokio_util::codec::{Framed, LinesCodec};
    mini::block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut a, mut b) = (Framed::new(a, LinesCodec::new()), Framed::new(b, LinesCodec::new()));
        a.send("hello").await.unwrap();
        a.send("world").await.unwrap();
        assert_eq!(b.next().await.unwrap().unwrap(), "hello");
        assert_eq!(b.next().await.unwrap().unwrap(), "world");
    });
}

#[test]
fn tokio_tungstenite_talks_over_a_stream() {
    use tokio_tungstenite::tungstenite::Message;
    mini::block_on(async {
        let (client, server) = UnixStream::pair().unwrap();
        let server = mini::spawn(async move {
            let mut socket = tokio_tungstenite::accept_async(server).await.unwrap();
            let message = socket.next().await.unwrap().unwrap();
            socket.send(message).await.unwrap();
            socket.close(None).await.unwrap();
        });
        let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/", client).await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("hello"));
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
        server.await.unwrap();
    });
}

#[test]
fn moka_computes_a_value_once_for_all_who_wait() {
    mini::block_on(async {
        let cache = moka::future::Cache::<u32, u32>::new(10);
        let computed = Arc::new(AtomicU32::new(0));
        let tasks = [(); 10].map(|()| {
            let (cache, computed) = (cache.clone(), computed.clone());
            mini::spawn(async move {
                let compute = async {
                    sleep(Duration::from_millis(5)).await;
                    computed.fetch_add(1, SeqCst) + 42
                };
                cache.get_with(7, compute).await
            })
        });
        for task in tasks {
            assert_eq!(task.await.unwrap(), 42);
        }
        assert_eq!(computed.load(SeqCst), 1);
    });
}

#[test]
fn governor_lets_some_through_and_has_the_others_wait() {
    mini::block_on(async {
        let limiter = governor::RateLimiter::direct(governor::Quota::per_hour(NonZeroU32::new(2).unwrap()));
        assert!(limiter.check().is_ok() && limiter.check().is_ok());
        assert!(limiter.check().is_err());
        // Its own `until_ready` has a thread of futures-timer for the wait; a sleep of mini's will do.
        assert!(timeout(Duration::from_millis(1), limiter.until_ready()).await.is_err());
    });
}

/// mini's sleep, for backon's way of waiting.
struct Sleeper;

impl backon::Sleeper for Sleeper {
    type Sleep = mini::time::Sleep;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        sleep(duration)
    }
}

#[test]
fn backon_tries_again_by_minis_timers() {
    use backon::{ExponentialBuilder, Retryable};
    paused(async {
        let tries = AtomicU32::new(0);
        let work = async || match tries.fetch_add(1, SeqCst) {
            2 => Ok("done"),
            _ => Err("not yet"),
        };
        let begin = Instant::now();
        assert_eq!(work.retry(ExponentialBuilder::default()).sleep(Sleeper).await, Ok("done"));
        assert!(begin.elapsed() >= Duration::from_secs(3)); // 1 s and 2 s
    });
}

struct Connections(AtomicU32);

impl deadpool::managed::Manager for Connections {
    type Type = u32;
    type Error = ();

    async fn create(&self) -> Result<u32, ()> {
        sleep(Duration::from_millis(1)).await;
        Ok(self.0.fetch_add(1, SeqCst))
    }

    async fn recycle(&self, _: &mut u32, _: &deadpool::managed::Metrics) -> deadpool::managed::RecycleResult<()> {
        Ok(())
    }
}

#[test]
fn deadpool_has_tasks_wait_for_a_connection() {
    mini::block_on(async {
        let pool: deadpool::managed::Pool<Connections> =
            deadpool::managed::Pool::builder(Connections(AtomicU32::new(0))).max_size(1).build().unwrap();
        let first = pool.get().await.unwrap();
        let waiting = mini::spawn({
            let pool = pool.clone();
            async move { *pool.get().await.unwrap() }
        });
        mini::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.await.unwrap(), 0, "the same connection");
    });
}

#[test]
fn async_compression_packs_a_stream() {
    use async_compression::futures::bufread::{GzipDecoder, GzipEncoder};
    use futures_lite::io::{AsyncReadExt, BufReader};
    mini::block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let packed = mini::spawn(async move {
            let mut packer = GzipEncoder::new(&b"hello hello hello"[..]);
            mini::io::copy(&mut packer, &mut &a).await.unwrap()
        });
        let mut text = String::new();
        GzipDecoder::new(BufReader::new(b)).read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello hello hello");
        assert!(packed.await.unwrap() > 0);
    });
}

#[test]
fn notify_tells_a_task_by_a_channel() {
    use notify::{RecursiveMode, Watcher};
    mini::block_on(async {
        let dir = std::env::temp_dir().join(format!("mini-notify-{}", std::process::id()));
        mini::fs::create_dir(&dir).await.unwrap();
        let (send, receive) = async_channel::unbounded();
        let mut watcher = notify::recommended_watcher(move |event| drop(send.try_send(event))).unwrap();
        watcher.watch(&dir, RecursiveMode::NonRecursive).unwrap();
        mini::fs::write(dir.join("file"), "hello").await.unwrap();
        let event = timeout(Duration::from_secs(20), receive.recv()).await.unwrap().unwrap().unwrap();
        assert!(event.paths[0].starts_with(&dir), "{event:?}");
        mini::fs::remove_dir_all(&dir).await.unwrap();
    });
}

#[test]
fn the_client_of_hyper_util_pools_connections() {
    mini::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicU32::new(0));
        let counted = connections.clone();
        let router = Router::new().route("/", get(async || "hello"));
        let server = mini_hyper::serve(listener, router).handshake(move |stream: TcpStream| {
            counted.fetch_add(1, SeqCst);
            std::future::ready(Ok(stream))
        });
        let server = mini::spawn(server.into_future());
        let client = mini_hyper::client::<Full<Bytes>>();
        for _ in 0..3 {
            let response = client.get(format!("http://{at}/").parse().unwrap()).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
        }
        assert_eq!(connections.load(SeqCst), 1);
        server.abort();
    });
}

#[test]
fn hyper_rustls_goes_around_the_connector() {
    use hyper_rustls::HttpsConnectorBuilder;
    use mini_ecosystem::certificate::Identity;
    use mini_hyper::FuturesIo;
    mini::block_on(async {
        let identity = Identity::new(&["localhost"]).unwrap();
        let acceptor = futures_rustls::TlsAcceptor::from(Arc::new(identity.server().unwrap()));
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let uri = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let router = Router::new().route("/", get(async || "hello"));
        let server = mini_hyper::serve(listener, router).handshake(move |stream: TcpStream| {
            let accepting = acceptor.accept(stream);
            async move { accepting.await.map(FuturesIo::new) }
        });
        let server = mini::spawn(server.into_future());
        let config = identity.client().unwrap();
        let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1();
        let connector = builder.wrap_connector(mini_hyper::Connector::new().any_scheme());
        let client: mini_hyper::Client<_, Full<Bytes>> = mini_hyper::client_builder().build(connector);
        let response = client.get(uri.parse().unwrap()).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
        server.abort();
    });
}

#[test]
fn layers_of_tower_http_go_around_a_router() {
    use tower_http::{compression::CompressionLayer, cors::CorsLayer, trace::TraceLayer};
    mini::block_on(async {
        let router = Router::new()
            .route("/", get(async || "hello ".repeat(100)))
            .layer(CompressionLayer::new())
            .layer(CorsLayer::permissive())
            .layer(TraceLayer::new_for_http());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let server = mini::spawn(mini_hyper::serve(listener, router).into_future());
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TcpStream::connect(at).await.unwrap()).await.unwrap();
        mini::spawn(connection);
        let request =
            Request::get("/").header("host", "x").header("origin", "http://y").header("accept-encoding", "gzip");
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert_eq!(response.headers()["content-encoding"], "gzip");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello ".repeat(100));
        server.abort();
    });
}

#[test]
fn a_websocket_is_upgraded_from_a_router() {
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
    use tokio_tungstenite::tungstenite::protocol::Role;
    async fn upgrade(mut request: axum::extract::Request) -> axum::response::Response {
        let key = derive_accept_key(request.headers()["sec-websocket-key"].as_bytes());
        let upgraded = hyper::upgrade::on(&mut request);
        mini::spawn(async move {
            let stream = TokioIo::new(upgraded.await.unwrap());
            let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            while let Some(message) = socket.try_next().await.unwrap() {
                if message.is_text() {
                    socket.send(message).await.unwrap();
                }
            }
        });
        axum::response::Response::builder()
            .status(101)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-accept", key)
            .body(axum::body::Body::empty())
            .unwrap()
    }
    mini::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let server = mini_hyper::serve(listener, Router::new().route("/", get(upgrade)));
        let (stop, stopped) = mini::sync::oneshot::channel();
        let server = mini::spawn(server.with_graceful_shutdown(stopped).into_future());
        let stream = TcpStream::connect(at).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{at}/"), stream).await.unwrap();
        for text in ["one", "two"] {
            socket.send(text.into()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap().to_text().unwrap(), text);
        }
        stop.send(()).unwrap();
        let report = server.await.unwrap().unwrap(); // the server does not wait for the socket, nor does it end it
        assert_eq!(report, mini_hyper::Report { finished: 1, failed: 0, cut: 0 });
        socket.send("three".into()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap().to_text().unwrap(), "three");
        socket.close(None).await.unwrap();
    });
}

#[test]
fn indicatif_draws_beside_tasks() {
    mini::block_on(async {
        let bar = indicatif::ProgressBar::hidden();
        bar.set_length(3);
        let tasks = [(); 3].map(|()| {
            let bar = bar.clone();
            mini::spawn(async move { bar.inc(1) })
        });
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(bar.position(), 3);
    });
}
