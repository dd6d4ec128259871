//! `serve` apart from HTTP: listeners of both kinds, handshakes, the number of connections, the end.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use futures_lite::AsyncReadExt;
use mini::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mini::task::Reason;
use mini_hyper::{Limits, Report, serve};
use mini_tests::net_support::{ANY_PORT, in_each_runtime};
use mini_tests::{LIMIT, in_child, within};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::{Notify, oneshot};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

async fn ask(stream: &TcpStream) -> String {
    let _ = stream.write_all(REQUEST).await;
    let mut answer = String::new();
    let mut reader = stream;
    let _ = reader.read_to_string(&mut answer).await;
    answer
}

#[test]
fn a_unix_listener_is_served_too() {
    within(LIMIT, || {
        mini::block_on(async {
            let path = std::env::temp_dir().join(format!("mini-hyper-{}", std::process::id()));
            let listener = UnixListener::bind(&path).unwrap();
            let (stop, stopped) = oneshot::channel::<()>();
            let server = mini::spawn(serve(listener, hello()).with_graceful_shutdown(stopped).into_future());
            let stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            let mut answer = String::new();
            (&stream).read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
            drop(stop);
            assert_eq!(server.await.unwrap().unwrap(), Report { finished: 1, failed: 0, cut: 0 });
            std::fs::remove_file(&path).unwrap();
        });
    });
}

/// A client may end its side once it has asked, as `nc -N` does, and still reads the answer.
#[test]
fn a_client_that_sends_no_more_gets_its_answer() {
    in_each_runtime(|| async {
        let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begins, go_on) = (begun.clone(), goes_on.clone());
        let slow = async move || {
            begins.notify_one();
            go_on.notified().await;
            "slow hello"
        };
        let router = hello().route("/slow", get(slow));
        for (path, answer) in [("/", "\r\n\r\nhello"), ("/slow", "\r\n\r\nslow hello")] {
            for close in ["Connection: close\r\n", ""] {
                let listener = TcpListener::bind(ANY_PORT).await.unwrap();
                let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{close}\r\n");
                client.write_all(request.as_bytes()).await.unwrap();
                client.shutdown(Shutdown::Write).unwrap(); // before the server reads
                let (stop, stopped) = oneshot::channel::<()>();
                let server = serve(listener, router.clone()).with_graceful_shutdown(stopped);
                let server = mini::spawn(server.into_future());
                if path == "/slow" {
                    begun.notified().await;
                    goes_on.notify_one();
                }
                let mut answered = String::new();
                (&client).read_to_string(&mut answered).await.unwrap();
                assert!(answered.ends_with(answer), "{path}, {close:?}: {answered:?}");
                drop(stop);
                assert_eq!(server.await.unwrap().unwrap(), Report { finished: 1, failed: 0, cut: 0 });
            }
        }
    });
}

#[test]
fn a_handshake_that_fails_closes_its_connection_alone() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = serve(listener, hello()).with_graceful_shutdown(stopped).handshake(async |stream: TcpStream| {
            let mut first = [0];
            stream.read_exact(&mut first).await?;
            if first == *b"!" { Ok(stream) } else { Err(io::Error::from(ErrorKind::PermissionDenied)) }
        });
        let server = mini::spawn(server.into_future());
        let refused = TcpStream::connect(at).await.unwrap();
        assert_eq!(ask(&refused).await, "");
        let taken = TcpStream::connect(at).await.unwrap();
        taken.write_all(b"!").await.unwrap();
        assert!(ask(&taken).await.ends_with("hello"));
        drop(stop);
        assert_eq!(server.await.unwrap().unwrap(), Report { finished: 1, failed: 1, cut: 0 });
    });
}

/// Its limit is far off.
#[test]
fn a_stop_does_not_wait_for_a_handshake() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let begun = Arc::new(Notify::new());
        let begins = begun.clone();
        let limits = Limits { first_request: Duration::MAX, grace: Duration::MAX, ..Limits::default() };
        let server = serve(listener, hello()).limits(limits).with_graceful_shutdown(stopped);
        let server = server.handshake(move |stream: TcpStream| {
            begins.notify_one();
            async move {
                stream.read_exact(&mut [0]).await?;
                Ok(stream)
            }
        });
        let server = mini::spawn(server.into_future());
        let silent = TcpStream::connect(at).await.unwrap();
        begun.notified().await;
        drop(stop);
        assert_eq!(server.await.unwrap().unwrap(), Report { finished: 1, failed: 0, cut: 0 });
        drop(silent);
    });
}

#[test]
fn a_limit_may_be_off() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (first_request, idle, request) = (Duration::MAX, Duration::MAX, Duration::MAX);
        let limits = Limits { first_request, idle, request, write: Duration::MAX, ..Limits::default() };
        let server = mini::spawn(serve(listener, hello()).limits(limits).into_future());
        assert!(ask(&TcpStream::connect(at).await.unwrap()).await.ends_with("hello"));
        server.abort();
    });
}

#[test]
fn a_handshake_has_the_time_of_a_first_request() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let server = serve(listener, hello()).handshake(async |stream: TcpStream| {
                pending::<()>().await;
                Ok(stream)
            });
            let server = mini::spawn(server.into_future());
            let begin = mini::time::Instant::now();
            assert_eq!(ask(&TcpStream::connect(at).await.unwrap()).await, "");
            assert!(begin.elapsed() >= Duration::from_secs(10));
            server.abort();
        });
    });
}

#[test]
fn the_time_of_a_handshake_is_part_of_that_of_the_first_request() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let server = serve(listener, hello()).handshake(async |stream: TcpStream| {
                mini::time::sleep(Duration::from_secs(6)).await;
                Ok(stream)
            });
            let server = mini::spawn(server.into_future());
            let (begin, silent) = (mini::time::Instant::now(), TcpStream::connect(at).await.unwrap());
            assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
            assert_eq!(begin.elapsed().as_secs(), 10);
            server.abort();
        });
    });
}

#[test]
fn a_connection_too_many_waits_for_one_that_ends() {
    in_each_runtime(|| async {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let at = listener.local_addr().unwrap();
        let limits = Limits { connections: 1, ..Limits::default() };
        let server = mini::spawn(serve(listener, hello()).limits(limits).into_future());
        let first = TcpStream::connect(at).await.unwrap();
        first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        first.read_exact(&mut [0; 12]).await.unwrap(); // it is kept alive
        let second = TcpStream::connect(at).await.unwrap();
        let waiting = mini::spawn(async move { ask(&second).await });
        mini::time::sleep(Duration::from_millis(1)).await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.await.unwrap().ends_with("hello"));
        server.cancel().await.unwrap_err();
    });
}

#[test]
fn what_is_busy_after_the_grace_is_cut_and_counted() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let (stop, stopped) = oneshot::channel::<()>();
            let router = Router::new().route("/", get(async || pending::<&str>().await));
            let limits = Limits { request: Duration::from_secs(3600), ..Limits::default() };
            let server = serve(listener, router).limits(limits).with_graceful_shutdown(stopped);
            let server = mini::spawn(server.into_future());
            let stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            mini::time::sleep(Duration::from_secs(60)).await;
            drop(stop);
            assert_eq!(server.await.unwrap().unwrap(), Report { finished: 0, failed: 0, cut: 1 });
        });
    });
}

#[test]
fn a_stop_before_the_first_connection_ends_it_at_once() {
    within(LIMIT, || {
        mini::block_on(async {
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            assert_eq!(serve(listener, hello()).with_graceful_shutdown(ready(())).await.unwrap(), Report::default());
        });
    });
}

#[test]
fn a_client_that_takes_nothing_is_cut_off_and_told_to_the_hook() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let endless = async || axum::body::Body::new(Endless);
            let failures = Arc::new(Mutex::new(Vec::new()));
            let (told, (stop, stopped)) = (failures.clone(), oneshot::channel::<()>());
            let server = serve(listener, Router::new().route("/", get(endless))).with_graceful_shutdown(stopped);
            let server = server.on_error(move |peer, error| {
                let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                told.lock().unwrap().push((format!("{peer:?}"), text));
            });
            let server = mini::spawn(server.into_future());
            let client = TcpStream::connect(at).await.unwrap();
            client.write_all(REQUEST).await.unwrap();
            let begin = mini::time::Instant::now();
            mini::time::sleep(Duration::from_secs(60)).await;
            drop(stop);
            assert_eq!(server.await.unwrap().unwrap(), Report { finished: 0, failed: 1, cut: 0 });
            assert!(begin.elapsed() < Duration::from_secs(61));
            let address = client.local_addr().unwrap();
            let expected = (format!("{address:?}"), "the client takes nothing".to_owned());
            assert_eq!(*failures.lock().unwrap(), [expected]);
        });
    });
}

/// A body that always has more.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(&[7; 8192])))))
    }
}

#[test]
fn a_service_that_takes_too_long_is_answered_for_with_503() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let router = Router::new().route("/", get(async || pending::<&str>().await));
            let server = mini::spawn(serve(listener, router).into_future());
            let client = TcpStream::connect(at).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            (&client).read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"), "{answer}");
            server.cancel().await.unwrap_err();
        });
    });
}

/// The server is dropped before it takes the end of the connection out of its set.
#[test]
fn a_failure_that_the_hook_hears_of_is_told_nowhere_else() {
    let Some(stderr) = in_child("a_failure_that_the_hook_hears_of_is_told_nowhere_else", || {
        mini::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let at = listener.local_addr().unwrap();
            let ends = Arc::new(Mutex::new(None::<mini::task::AbortHandle>));
            let end = ends.clone();
            let server = serve(listener, hello()).on_error(move |_, error| {
                eprintln!("the hook: {error}");
                end.lock().unwrap().take().unwrap().abort();
            });
            let server = mini::spawn(server.into_future());
            *ends.lock().unwrap() = Some(server.abort_handle());
            let client = TcpStream::connect(at).await.unwrap();
            client.write_all(b"GET\r\n\r\n").await.unwrap();
            assert!(server.await.unwrap_err().is_cancelled());
        });
    }) else {
        return;
    };
    assert!(stderr.contains("the hook: ") && !stderr.contains("no task awaits it"), "{stderr}");
}

/// A client that keeps its connection does nothing wrong, even if an empty line comes after its request (RFC 9112,
/// section 2.2).
#[test]
fn a_client_that_is_silent_between_two_requests_has_ended_in_order() {
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned();
    let expected = [
        ("a request", request.clone(), 1, ""),
        ("two requests", request.repeat(2), 1, ""),
        ("a request and an empty line", request.clone() + "\r\n", 1, ""),
        ("a request and half of the next", request + "GET / HT", 0, "half of a request's head"),
        ("half of a request", "GET / HT".to_owned(), 0, "half of a request's head"),
        ("an empty line", "\r\n".to_owned(), 0, "no request"),
        ("nothing", String::new(), 0, "no request"),
    ];
    within(LIMIT, || {
        mini::block_on(async move {
            mini::time::pause();
            for (what, sent, finished, error) in expected {
                let listener = TcpListener::bind(ANY_PORT).await.unwrap();
                let at = listener.local_addr().unwrap();
                let failures = Arc::new(Mutex::new(String::new()));
                let (told, (stop, stopped)) = (failures.clone(), oneshot::channel::<()>());
                let limits = Limits { idle: Duration::from_secs(5), ..Limits::default() };
                let server = serve(listener, hello()).limits(limits).with_graceful_shutdown(stopped);
                let server = server.on_error(move |_, error| told.lock().unwrap().push_str(&error.to_string()));
                let server = mini::spawn(server.into_future());
                let client = TcpStream::connect(at).await.unwrap();
                client.write_all(sent.as_bytes()).await.unwrap();
                let mut answers = String::new();
                (&client).read_to_string(&mut answers).await.unwrap();
                assert_eq!(answers.matches("hello").count(), sent.matches("Host").count(), "{what}: {answers}");
                drop(stop);
                let report = Report { finished, failed: 1 - finished, cut: 0 };
                assert_eq!(server.await.unwrap().unwrap(), report, "{what}");
                assert_eq!(*failures.lock().unwrap(), error, "{what}");
            }
        });
    });
}

/// A server with a handler that is stuck, in a program whose grace is shorter than the server's.
async fn stuck(stop: impl Future + Send + 'static, ask: impl FnOnce()) -> ExitCode {
    let listener = TcpListener::bind(ANY_PORT).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let handler = async move || {
        begins.notify_one();
        pending::<&str>().await
    };
    let server = serve(listener, Router::new().route("/", get(handler))).with_graceful_shutdown(stop);
    let server = mini::spawn(server.into_future());
    client.write_all(REQUEST).await.unwrap();
    begun.notified().await;
    ask();
    assert_eq!(server.await.unwrap().unwrap(), Report { finished: 0, failed: 0, cut: 1 });
    ExitCode::from(7)
}

#[test]
fn a_server_ends_before_the_grace_of_its_program_does() {
    mod program {
        use super::*;

        #[mini::main(grace = "3s")]
        pub(super) async fn main() -> ExitCode {
            let stop = async { _ = mini::shutdown().cancelled().await };
            stuck(stop, || _ = mini::shutdown().cancel(Reason::Requested)).await
        }
    }
    in_child("a_server_ends_before_the_grace_of_its_program_does", || {
        assert_eq!(format!("{:?}", program::main()), format!("{:?}", ExitCode::from(7)));
    });
}

#[test]
fn a_server_that_hears_the_signal_itself_ends_before_the_grace_of_its_program_does() {
    mod program {
        use super::*;

        #[mini::main(grace = "3s")]
        pub(super) async fn main() -> ExitCode {
            stuck(mini::signal::termination(), || kill_process(getpid(), Signal::TERM).unwrap()).await
        }
    }
    in_child("a_server_that_hears_the_signal_itself_ends_before_the_grace_of_its_program_does", || {
        assert_eq!(format!("{:?}", program::main()), format!("{:?}", ExitCode::from(7)));
    });
}
