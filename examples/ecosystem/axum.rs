//! axum: a router with extractors, state and JSON on mini, and an end in which the requests that have begun are
//! answered.
//!
//! Without arguments it asks itself, is stopped in the middle of an answer, and ends. With an address,
//! `axum 127.0.0.1:8080`, it serves there, HTTP/1 and HTTP/2, until Ctrl-C.
//!
//! axum's feature `tokio` stays off: `axum::serve` is what needs a runtime. `mini_hyper::serve` does it instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use mini::net::{TcpListener, TcpStream};
use mini_hyper::{Failure, serve};

fn router() -> Router {
    Router::new()
        .route("/hello/{name}", get(async |Path(name): Path<String>| format!("hello {name}")))
        .route("/sum", post(async |Json(numbers): Json<Vec<i64>>| Json(numbers.iter().sum::<i64>())))
        .route("/count", get(count))
        .route("/slow", get(slow))
        .with_state(Arc::default())
}

async fn count(State(count): State<Arc<AtomicU64>>) -> String {
    count.fetch_add(1, Relaxed).to_string()
}

async fn slow() -> &'static str {
    mini::time::sleep(Duration::from_millis(300)).await;
    "slow, but not lost"
}

#[mini::main]
async fn main() -> Result<(), Failure> {
    let addr = std::env::args().nth(1);
    let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let at = listener.local_addr()?;
    println!("serving on http://{at}/");
    if addr.is_some() {
        println!("{:?}", serve(listener, router()).with_graceful_shutdown(mini::signal::termination()).await?);
        return Ok(());
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = mini::spawn(serve(listener, router()).with_graceful_shutdown(stopped).into_future());
    println!("{}", ask(TcpStream::connect(at).await?, "GET /hello/world", "").await?);
    println!("{}", ask(TcpStream::connect(at).await?, "POST /sum", "[1, 2, 39]").await?);
    println!("{}", ask(TcpStream::connect(at).await?, "POST /sum", "[1, 2").await?);

    let slow = mini::spawn(ask(TcpStream::connect(at).await?, "GET /slow", ""));
    mini::time::sleep(Duration::from_millis(50)).await;
    drop(stop);
    println!("stopped, and yet: {}", slow.await??);
    println!("{:?}", server.await??);
    println!("and now: {}", TcpStream::connect(at).await.expect_err("the listener has gone"));
    Ok(())
}

/// One request by hand; the status and the body of what comes back.
async fn ask(stream: TcpStream, what: &str, body: &str) -> Result<String, Failure> {
    let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
    let request = format!("{what} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    futures_lite::AsyncReadExt::read_to_end(&mut &stream, &mut answer).await?;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    Ok(format!("{what}: {}: {body}", head.lines().next().unwrap_or_default()))
}
