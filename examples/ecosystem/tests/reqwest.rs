//! reqwest on mini, by async-compat: requests of many tasks, and servers that answer late, wrong, in part, or not at
//! all.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use async_compat::CompatExt;
use futures_util::future::try_join_all;
use mini::net::{TcpListener, TcpStream};
use mini::task::JoinHandle;
use mini::time::timeout;
use mini_tests::net_support::refusing_port;
use mini_tests::{LIMIT, on_each_flavour, within};
use reqwest::{Client, StatusCode};

#[path = "../reqwest.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

use example::{get, serve};

/// How long a client waits for a server that does not answer.
const SOON: Duration = Duration::from_millis(50);

/// A server of one connection: it reads the head of a request, writes `bytes`, and then either closes the connection,
/// or waits until the client does. Its result is that of the wait.
async fn says(bytes: Vec<u8>, keeps: bool) -> (String, JoinHandle<io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = url_of(listener.local_addr().unwrap());
    let server = mini::spawn(async move {
        let (stream, _) = listener.accept().await?;
        read_head(&stream).await?;
        stream.write_all(&bytes).await?;
        if keeps { until_closed(&stream).await } else { Ok(()) }
    });
    (url, server)
}

/// Waits until a server of [`says`] has seen the end of its connection, even before the head of a request. If the time
/// of the client was up before it connected, this connects instead of it.
async fn ended(url: &str, server: JoinHandle<io::Result<()>>) {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    drop(TcpStream::connect(address).await);
    let _ = server.await.unwrap();
}

async fn read_head(stream: &TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        head.push(byte[0]);
    }
    Ok(())
}

async fn until_closed(stream: &TcpStream) -> io::Result<()> {
    let mut buf = [0; 1024];
    while stream.read(&mut buf).await? > 0 {}
    Ok(())
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}/")
}

#[test]
fn tasks_of_each_flavour_ask_through_one_client() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let url = url_of(serve().await.unwrap());
            example::run(&url).await.unwrap();
            let client = Client::new();
            let tasks = (0..50).map(|n| {
                let (client, url) = (client.clone(), format!("{url}{n}"));
                mini::spawn(async move { get(&client, &url).await })
            });
            for (n, answer) in try_join_all(tasks).await.unwrap().into_iter().enumerate() {
                assert_eq!(answer.unwrap(), (StatusCode::OK, format!("GET /{n} HTTP/1.1")));
            }
            // A body of megabytes there, and one back.
            let body = "x".repeat(8 << 20);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = url_of(listener.local_addr().unwrap());
            let server = mini::spawn(async move {
                let (stream, _) = listener.accept().await?;
                read_head(&stream).await?;
                let mut body = vec![0; 8 << 20];
                stream.read_exact(&mut body).await?;
                stream
                    .write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes())
                    .await?;
                stream.write_all(&body).await?;
                until_closed(&stream).await
            });
            let answer = async { client.post(&url).body(body.clone()).send().await?.text().await };
            assert!(answer.compat().await.unwrap() == body);
            drop(client);
            server.await.unwrap().unwrap();
        });
    });
}

#[test]
fn a_limit_of_either_side_ends_a_request_and_its_connection() {
    within(LIMIT, || {
        mini::block_on(async {
            let limited = Client::builder().timeout(SOON).build().unwrap();
            let (url, server) = says(Vec::new(), true).await;
            assert!(get(&limited, &url).await.unwrap_err().is_timeout());
            ended(&url, server).await;
            let (url, server) = says(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1".to_vec(), true).await;
            assert!(get(&limited, &url).await.unwrap_err().is_timeout());
            ended(&url, server).await;
            let (url, server) = says(Vec::new(), true).await;
            assert!(timeout(SOON, get(&Client::new(), &url)).await.is_err());
            ended(&url, server).await;
        });
    });
}

#[test]
fn a_task_that_is_cancelled_closes_its_connection() {
    within(LIMIT, || {
        mini::block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = url_of(listener.local_addr().unwrap());
            let client = Client::new();
            let asks = mini::spawn({
                let client = client.clone();
                async move { get(&client, &url).await }
            });
            let (stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1]).await.unwrap() == 1);
            assert!(asks.cancel().await.unwrap_err().is_cancelled());
            until_closed(&stream).await.unwrap();
        });
    });
}

#[test]
fn servers_that_break_the_protocol_or_go_away_give_an_error() {
    within(LIMIT, || {
        mini::block_on(async {
            let client = Client::new();
            let flood = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &vec![b'y'; 2 << 20]].concat();
            let wrong: [&[u8]; 7] = [
                b"",
                b"220 a mail server\r\n",
                b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
                b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
                &flood,
            ];
            for (number, bytes) in wrong.into_iter().enumerate() {
                let (url, _server) = says(bytes.to_vec(), false).await;
                assert!(get(&client, &url).await.is_err(), "number {number}");
            }
            let (_keeps, nobody) = refusing_port();
            assert!(get(&client, &url_of(nobody)).await.unwrap_err().is_connect());
            let url = format!("https://{nobody}/");
            assert!(get(&client, &url).await.unwrap_err().is_connect(), "it was built without TLS");
            assert!(get(&client, "no url").await.unwrap_err().is_builder());
        });
    });
}

#[test]
fn without_compat_a_request_panics_and_says_what_it_misses() {
    within(LIMIT, || {
        mini::block_on(async {
            let url = url_of(serve().await.unwrap());
            let alone = mini::spawn(async move { Client::new().get(&url).send().await });
            let error = alone.await.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains("Tokio"), "{error}");
        });
    });
}
