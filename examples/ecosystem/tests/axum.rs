//! axum on mini: extractors, limits and errors of a router, asked by curl and by hand.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use futures_lite::AsyncReadExt;
use mini::net::{TcpListener, TcpStream};
use mini::process::Command;
use mini::task::JoinHandle;
use mini_hyper::{Report, serve};
use mini_tests::net_support::{ANY_PORT, kind_of};
use tokio::sync::watch;

#[path = "support/scenarios.rs"]
mod scenarios;

struct Server {
    at: SocketAddr,
    stop: watch::Sender<bool>,
    ended: JoinHandle<std::io::Result<Report>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let router = router(stopped.clone());
        let mut stopped = stopped;
        let until = async move { stopped.wait_for(|&stop| stop).await.is_ok() };
        Self { at, stop, ended: mini::spawn(serve(listener, router).with_graceful_shutdown(until).into_future()) }
    }

    async fn stop(self) -> Report {
        let _ = self.stop.send(true);
        self.ended.await.unwrap().unwrap()
    }

    /// Sends `request` and reads to the end; the status and the body.
    async fn ask(&self, request: String) -> (u16, String) {
        let stream = TcpStream::connect(self.at).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        parse(&stream).await
    }

    async fn post(&self, path: &str, body: &str) -> (u16, String) {
        let head = "Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length";
        self.ask(format!("POST {path} HTTP/1.1\r\n{head}: {}\r\n\r\n{body}", body.len())).await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
    }
}

async fn parse(mut stream: &TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head["HTTP/1.1 ".len()..][..3].parse().unwrap(), body.to_owned())
}

fn router(stopped: watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/hello/{name}", get(async |Path(name): Path<String>| format!("hello {name}")))
        .route("/next", get(async |Query(start): Query<HashMap<String, u32>>| (start["after"] + 1).to_string()))
        .route("/sum", post(async |Json(numbers): Json<Vec<i64>>| Json(numbers.iter().sum::<i64>())))
        .route("/upload", post(upload).layer(DefaultBodyLimit::max(1000)))
        .route("/panic", get(async || -> &'static str { std::panic::resume_unwind(Box::new(())) }))
        .route("/until-stop", get(until_stop))
        .with_state(stopped)
}

/// Gives a client half a second for its body.
async fn upload(request: axum::extract::Request) -> Result<String, StatusCode> {
    use axum::extract::FromRequest;
    let body = mini::time::timeout(Duration::from_millis(500), Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| StatusCode::REQUEST_TIMEOUT)?.map_err(|refused| refused.status())?;
    Ok(body.len().to_string())
}

async fn until_stop(State(mut stopped): State<watch::Receiver<bool>>) -> &'static str {
    let _ = stopped.wait_for(|&stop| stop).await;
    "finished"
}

async fn a_router_answers() {
    let server = Server::start().await;
    assert_eq!(server.get("/hello/world").await, (200, "hello world".into()));
    assert_eq!(server.post("/sum", "[1, 2, 39]").await, (200, "42".into()));
    assert_eq!(server.get("/next?after=41").await, (200, "42".into()));
    assert_eq!(server.get("/next?after=x").await.0, 400);
    assert_eq!(server.get("/nowhere").await.0, 404);
    assert_eq!(server.post("/hello/world", "").await.0, 405);
    assert_eq!(server.post("/sum", "[1, 2").await.0, 400);
    assert_eq!(server.post("/sum", "[\"1\"]").await.0, 422);
    assert_eq!(server.stop().await, Report { finished: 8, failed: 0, cut: 0 });
}

async fn bodies_have_limits_in_size_and_time() {
    let server = Server::start().await;
    assert_eq!(server.post("/upload", &"x".repeat(1000)).await, (200, "1000".into()));
    assert_eq!(server.post("/upload", &"x".repeat(1001)).await.0, 413);
    let head = "POST /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100\r\n\r\nhalf";
    assert_eq!(server.ask(head.to_owned()).await.0, 408);
    server.stop().await;
}

async fn a_handler_that_panics_takes_its_connection_alone() {
    let server = Server::start().await;
    let stream = TcpStream::connect(server.at).await.unwrap();
    stream.write_all(b"GET /panic HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(server.get("/hello/you").await.0, 200);
    assert_eq!(server.stop().await, Report { finished: 1, failed: 1, cut: 0 });
}

async fn a_stop_waits_for_answers_and_refuses_connections() {
    let server = Server::start().await;
    let stream = TcpStream::connect(server.at).await.unwrap();
    stream
        .write_all(b"GET /hello/first HTTP/1.1\r\nHost: x\r\n\r\nGET /until-stop HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap(); // so the second request is there too
    let at = server.at;
    let report = server.stop().await;
    let mut rest = String::new();
    (&stream).read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("hello first"), "{rest}");
    assert_eq!(report, Report { finished: 1, failed: 0, cut: 0 });
    assert_eq!(kind_of(TcpStream::connect(at).await), ErrorKind::ConnectionRefused);
}

async fn curl_is_answered_over_both_versions() {
    let server = Server::start().await;
    for (flag, version) in [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")] {
        let url = format!("http://{}/sum", server.at);
        let json = ["-H", "Content-Type: application/json", "-d", "[1, 2, 39]"];
        let call = ["-sS", "-m", "30", "-w", " %{http_version}", flag, &url];
        let output = match Command::new("curl").args(call).args(json).output().await {
            Err(e) if e.kind() == ErrorKind::NotFound && std::env::var_os("MINI_TEST_SERVERS").is_none() => {
                println!("skipped: there is no curl here");
                continue;
            }
            output => output.unwrap(),
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("42 {version}"), "{output:?}");
    }
    server.stop().await;
}

mod tests {
    crate::scenarios::scenarios! {
        a_router_answers,
        bodies_have_limits_in_size_and_time,
        a_handler_that_panics_takes_its_connection_alone,
        a_stop_waits_for_answers_and_refuses_connections,
        curl_is_answered_over_both_versions,
    }
}
