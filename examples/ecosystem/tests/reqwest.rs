//! reqwest on mini, inside a runtime of tokio: requests of many tasks, servers that answer late, wrong, in part, or not
//! at all, and the ways to be inside.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::try_join_all;
use mini::net::{TcpListener, TcpStream};
use mini::runtime::Builder;
use mini::task::JoinHandle;
use mini::time::timeout;
use mini_tests::net_support::refusing_port;
use mini_tests::{LIMIT, multi_thread, on_each_flavour, within};
use reqwest::{Client, StatusCode};

#[path = "../reqwest.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

#[path = "support/tokio.rs"]
mod support;

use example::{get, serve};
use support::{block_on_in_tokio, enter_on_start, on_each_flavour_in_tokio, tokio};

/// The part of tokio's panic that says what a thread lacks.
const NOT_INSIDE: &str = "must be called from the context of a Tokio 1.x runtime";

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
    on_each_flavour_in_tokio(async || {
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
            stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes()).await?;
            stream.write_all(&body).await?;
            until_closed(&stream).await
        });
        let answer = async { client.post(&url).body(body.clone()).send().await?.text().await };
        assert!(answer.await.unwrap() == body);
        drop(client);
        server.await.unwrap().unwrap();
    });
}

#[test]
fn a_limit_of_either_side_ends_a_request_and_its_connection() {
    block_on_in_tokio(async || {
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
}

#[test]
fn a_task_that_is_cancelled_closes_its_connection() {
    block_on_in_tokio(async || {
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
}

#[test]
fn servers_that_break_the_protocol_or_go_away_give_an_error() {
    block_on_in_tokio(async || {
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
}

/// Runs the lines that README and the guide show.
#[test]
fn the_example_starts_both_runtimes() {
    within(LIMIT, || example::start(None).unwrap());
}

#[test]
fn readme_and_guide_show_the_lines_of_the_example() {
    let code = |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    let example = code(include_str!("../reqwest.rs"));
    for page in [include_str!("../../../README.md"), include_str!("../../../runtime/guide/crates.md")] {
        let (_, lines) = page.split_once("\nlet tokio = ").unwrap();
        let (lines, _) = lines.split_once("\nruntime.block_on").unwrap();
        assert!(lines.contains("on_thread_start") && example.contains(&code(lines)), "{lines}");
    }
}

#[test]
fn tokios_timers_and_tasks_work_in_tasks_of_mini() {
    on_each_flavour_in_tokio(async || {
        let url = url_of(serve().await.unwrap());
        let tasks = (0..20).map(|_| {
            let url = url.clone();
            mini::spawn(async move {
                let client = Client::new();
                tokio::time::sleep(Duration::from_millis(1)).await;
                let (status, _) = tokio::time::timeout(LIMIT, get(&client, &url)).await.unwrap().unwrap();
                assert_eq!(status, StatusCode::OK);
                // reqwest and mini's streams in a task of tokio: its wakes come from mini.
                let there = tokio::spawn(async move { get(&client, &url).await });
                assert_eq!(there.await.unwrap().unwrap().0, StatusCode::OK);
                assert!(tokio::time::timeout(SOON, pending::<()>()).await.is_err());
            })
        });
        try_join_all(tasks).await.unwrap();
    });
}

#[test]
fn blocking_threads_are_inside_too() {
    on_each_flavour_in_tokio(async || {
        let url = url_of(serve().await.unwrap());
        let job = || tokio::runtime::Handle::current().block_on(async move { get(&Client::new(), &url).await });
        assert_eq!(mini::spawn_blocking(job).await.unwrap().unwrap().0, StatusCode::OK);
    });
}

#[test]
fn each_core_is_inside() {
    within(LIMIT, || {
        let tokio = tokio();
        let mut builder = Builder::new_per_core();
        enter_on_start(&mut builder, &tokio);
        let ask = |_| async {
            let url = url_of(serve().await.unwrap());
            let client = Client::new();
            mini::spawn_local(async move { get(&client, &url).await }).await.unwrap().unwrap().0
        };
        assert_eq!(builder.worker_threads(2).build().unwrap().run(ask).unwrap(), [StatusCode::OK; 2]);
    });
}

/// One thread polls all tasks, so its guard is enough.
#[test]
fn a_main_with_one_thread_enters_in_its_body() {
    #[mini::main(flavor = "current_thread")]
    async fn program() {
        let tokio = tokio();
        let _inside = tokio.enter();
        let url = url_of(serve().await.unwrap());
        let ask = mini::spawn(async move { get(&Client::new(), &url).await });
        assert_eq!(ask.await.unwrap().unwrap().0, StatusCode::OK);
    }
    within(LIMIT, program);
}

#[test]
fn outside_a_request_panics_and_says_what_it_misses() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let url = url_of(serve().await.unwrap());
            let ask = mini::spawn(async move { Client::new().get(&url).send().await });
            let error = ask.await.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains(NOT_INSIDE), "{error}");
        });
    });
}

#[test]
fn the_guard_of_block_on_is_not_for_workers() {
    within(LIMIT, || {
        let tokio = tokio();
        let _inside = tokio.enter();
        multi_thread(1).build().unwrap().block_on(async {
            let url = url_of(serve().await.unwrap());
            assert_eq!(get(&Client::new(), &url).await.unwrap().0, StatusCode::OK);
            let error = mini::spawn(async move { get(&Client::new(), &url).await }).await.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains(NOT_INSIDE), "{error}");
        });
    });
}

/// Starts a task of tokio when it is dropped, as a connection that returns to its pool, and then sets its flag.
struct SpawnsInDrop(Arc<AtomicBool>);

impl Drop for SpawnsInDrop {
    fn drop(&mut self) {
        drop(tokio::spawn(async {}));
        self.0.store(true, Relaxed);
    }
}

#[test]
fn tasks_that_a_shutdown_drops_are_still_inside() {
    on_each_flavour(|mut builder| {
        let tokio = tokio();
        let _inside = tokio.enter();
        enter_on_start(&mut builder, &tokio);
        let runtime = builder.build().unwrap();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = url_of(silent.local_addr().unwrap());
        let has_spawned = Arc::new(AtomicBool::new(false));
        let owned = SpawnsInDrop(has_spawned.clone());
        let (begin, has_begun) = mini_tests::oneshot::<()>();
        let task = runtime.spawn(async move {
            let _owned = owned;
            begin.send(());
            get(&Client::new(), &url).await
        });
        runtime.block_on(has_begun).unwrap();
        drop(runtime);
        assert!(has_spawned.load(Relaxed), "it has panicked");
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
    });
}

#[test]
fn after_tokios_shutdown_requests_fail_and_timers_panic() {
    on_each_flavour(|mut builder| {
        let tokio = tokio();
        let handle = tokio.handle().clone();
        let _inside = handle.enter();
        enter_on_start(&mut builder, &tokio);
        builder.build().unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = url_of(listener.local_addr().unwrap());
            let waits = mini::spawn(async move { get(&Client::new(), &url).await });
            let (stream, _) = listener.accept().await.unwrap();
            read_head(&stream).await.unwrap();
            tokio.shutdown_background();
            assert!(waits.await.unwrap().is_err());
            let url = url_of(serve().await.unwrap());
            assert!(mini::spawn(async move { get(&Client::new(), &url).await }).await.unwrap().is_err());
            let error = mini::spawn(async { tokio::time::sleep(SOON).await }).await.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains("it is being shutdown"), "{error}");
        });
    });
}

/// tokio's timers follow the clock of the system, and a paused clock does not wait for them.
#[test]
fn a_paused_clock_does_not_wait_for_tokio() {
    within(LIMIT, || {
        let tokio = tokio();
        let _inside = tokio.enter();
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let sleep = tokio::time::sleep(LIMIT);
            assert!(timeout(LIMIT * 10, sleep).await.is_err());
        });
    });
}
