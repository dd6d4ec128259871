//! HTTP by reqwest, which needs a tokio runtime: one runs beside mini, and every thread that polls has entered it.
//!
//! ```text
//! reqwest [URL]   without TLS
//! ```
//!
//! Without an argument it asks a server of its own, on mini. The connections of reqwest live on tokio's thread. The
//! tasks around them, their timers and sockets are mini's.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, next_connection};
use mini::time::timeout;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    start(std::env::args().nth(1))
}

/// Starts both runtimes, and asks for `url`, or without one for a page of a server of its own.
pub fn start(url: Option<String>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let _inside = tokio.enter(); // for the thread of `block_on`
    let handle = tokio.handle().clone();
    let runtime = mini::runtime::Builder::new_multi_thread()
        .on_thread_start(move || std::mem::forget(handle.enter())) // for the workers
        .build()?;
    runtime.block_on(async {
        let url = match url {
            Some(url) => url,
            None => format!("http://{}/hello", serve().await?),
        };
        mini::spawn(async move { run(&url).await }).await?
    })
}

/// Asks for `url` twice: with a time limit of reqwest's, and with one of mini's, which closes the connection too.
pub async fn run(url: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let limited = reqwest::Client::builder().timeout(Duration::from_secs(20)).build()?;
    let (status, body) = get(&limited, url).await?;
    println!("{status}, {} bytes: {}", body.len(), body.chars().take(80).collect::<String>());
    match timeout(Duration::from_secs(20), get(&reqwest::Client::new(), url)).await {
        Ok(answer) => println!("once more: {}", answer?.0),
        Err(_) => println!("no answer in time"),
    }
    Ok(())
}

/// Asks for `url`, and reads all of the answer.
pub async fn get(client: &reqwest::Client, url: &str) -> Result<(reqwest::StatusCode, String), reqwest::Error> {
    let answer = client.get(url).send().await?;
    Ok((answer.status(), answer.text().await?))
}

/// A server on mini that says what it was asked for. It lives as long as the runtime.
pub async fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    mini::spawn(async move {
        while let Ok((stream, _)) = next_connection(&listener).await {
            mini::spawn(answer(stream));
        }
    });
    Ok(address)
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut buf = [0; 4096];
    while let read @ 1.. = stream.read(&mut buf).await? {
        request.extend_from_slice(&buf[..read]);
        while let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = request.drain(..end + 4).collect();
            let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{line}", line.len());
            stream.write_all(answer.as_bytes()).await?;
        }
        if request.len() > 64 << 10 {
            return Err(io::Error::other("a head that has no end"));
        }
    }
    Ok(())
}
