//! fred on mini, inside a runtime of tokio, against a real Redis, and against servers that break the protocol or go
//! away.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use fred::prelude::{ClientLike, KeysInterface, ListInterface};
use futures_util::future::try_join_all;
use mini::net::{TcpListener, TcpStream};
use mini::time::timeout;
use mini_ecosystem::servers::{Server, or_skip};
use mini_tests::net_support::refusing_port;
use mini_tests::{LIMIT, within};

#[path = "../fred.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

#[path = "support/tokio.rs"]
#[allow(dead_code)]
mod support;

use support::{block_on_in_tokio, on_each_flavour_in_tokio};

/// Sooner than any answer to a command that blocks.
const SOON: Duration = Duration::from_millis(50);

#[test]
fn the_example_runs_on_each_flavour() {
    let Some(server) = or_skip(Server::redis()) else { return };
    on_each_flavour_in_tokio(async move || example::run(server.address()).await.unwrap());
}

#[test]
fn tasks_of_mini_share_a_client() {
    let Some(server) = or_skip(Server::redis()) else { return };
    on_each_flavour_in_tokio(async move || {
        let client = example::client(server.address()).unwrap();
        client.init().await.unwrap();
        client.flushall::<()>(false).await.unwrap();
        let tasks = (0..20).map(|_| {
            let client = client.clone();
            mini::spawn(async move {
                for _ in 0..50 {
                    client.incr::<u64, _>("all").await?;
                }
                Ok::<_, fred::error::Error>(())
            })
        });
        for counted in try_join_all(tasks).await.unwrap() {
            counted.unwrap();
        }
        let wrong = client.lpush::<u64, _, _>("all", 1).await.unwrap_err();
        assert!(wrong.to_string().contains("WRONGTYPE"), "{wrong}");
        assert_eq!(client.get::<u64, _>("all").await.unwrap(), 1000);
        client.quit().await.unwrap();
    });
}

/// Waits until the server has a client in `BLPOP`.
async fn until_blocked(server: SocketAddr) {
    let stream = TcpStream::connect(server).await.unwrap();
    let (mut clients, mut buf) = (Vec::new(), [0; 4096]);
    while !clients.windows(9).any(|word| word == b"cmd=blpop") {
        stream.write_all(b"CLIENT LIST\r\n").await.unwrap();
        let read = stream.read(&mut buf).await.unwrap();
        clients.extend_from_slice(&buf[..read]);
    }
}

#[test]
fn a_server_that_is_killed_ends_what_waits_for_it() {
    let Some(mut server) = or_skip(Server::redis()) else { return };
    block_on_in_tokio(async move || {
        let address = server.address();
        let client = example::client(address).unwrap();
        let connection = client.init().await.unwrap();
        let blocked = client.clone();
        let waits = mini::spawn(async move { blocked.blpop::<Option<(String, String)>, _>("queue", 0.0).await });
        until_blocked(address).await;
        mini::spawn_blocking(move || server.crash()).await.unwrap();
        assert!(waits.await.unwrap().is_err());
        // Without a policy to reconnect its task ends.
        assert!(connection.await.unwrap().is_err());
        // Later commands wait for a new connection, up to their own limit.
        assert!(timeout(SOON, client.get::<Option<u64>, _>("all")).await.is_err());
        assert!(example::client(address).unwrap().init().await.is_err());
    });
}

/// A server that answers every message with `bytes`, and keeps the connection until the caller is gone.
async fn says(bytes: &'static [u8]) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    mini::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut buf = [0; 1024];
        while stream.read(&mut buf).await? > 0 {
            stream.write_all(bytes).await?;
        }
        io::Result::Ok(())
    });
    Ok(address)
}

#[test]
fn servers_that_break_the_protocol_give_an_error() {
    block_on_in_tokio(async || {
        for bytes in [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), b"-ERR no\r\n", b"*-9\r\n", b"\xff\xff\xff"] {
            let client = example::client(says(bytes).await.unwrap()).unwrap();
            assert!(timeout(LIMIT, client.init()).await.unwrap().is_err(), "{bytes:?}");
        }
        let client = example::client(says(b"").await.unwrap()).unwrap();
        assert!(!matches!(timeout(SOON, client.init()).await, Ok(Ok(_))));
        let (_keeps, nobody) = refusing_port();
        assert!(example::client(nobody).unwrap().init().await.is_err());
    });
}

#[test]
fn outside_it_panics_and_says_what_it_misses() {
    within(LIMIT, || {
        mini::block_on(async {
            let (_keeps, nobody) = refusing_port();
            let alone = mini::spawn(async move { example::client(nobody).unwrap().init().await.map(drop) });
            let error = alone.await.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains("Tokio"), "{error}");
        });
    });
}
