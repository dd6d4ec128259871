//! tokio-postgres on mini, against a real PostgreSQL, and against servers that break the protocol or go away.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::try_join_all;
use mini::net::TcpStream;
use mini::time::timeout;
use mini_ecosystem::servers::{Server, or_skip};
use mini_tests::net_support::{open_files, refusing_port, tcp_pair};
use mini_tests::{LIMIT, in_child, on_each_flavour, until, within};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

#[path = "../postgres.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

use example::{Connected, connect};

#[path = "support/says.rs"]
mod says;

use says::says;

/// How long a client waits that gets no answer.
const SOON: Duration = Duration::from_millis(50);

/// A server for all tests that leave it as it was. The last of those that run at the same time stops it.
fn shared() -> Option<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = shared.upgrade().or_else(|| or_skip(Server::postgres()).map(Arc::new))?;
    *shared = Arc::downgrade(&server);
    Some(server)
}

fn config_for(address: SocketAddr) -> Config {
    let mut config = Config::new();
    config.host(address.ip().to_string()).port(address.port()).user("mini").dbname("postgres");
    config
}

fn over_unix(server: &Server) -> Config {
    let mut config = Config::new();
    config.host_path(server.socket().parent().unwrap()).port(server.address().port()).user("mini").dbname("postgres");
    config
}

/// Ends client and connection: the task must see that the client is gone.
async fn finish((client, connection): Connected) {
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Waits until a connection of this server is in `pg_sleep`.
async fn until_asleep(server: &Server) {
    let watcher = connect(&over_unix(server)).await.unwrap();
    let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while watcher.0.query_one(asleep, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    finish(watcher).await;
}

/// Asks for a one. PostgreSQL sends the signal of a cancellation twice, to the process and to its group, and the second
/// may come when the next query runs already.
async fn one_after_cancel(client: &Client) -> i32 {
    loop {
        match client.query_one("SELECT 1", &[]).await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {}
            row => return row.unwrap().get(0),
        }
    }
}

#[test]
fn the_example_runs_over_tcp_and_unix_sockets_on_each_flavour() {
    let Some(server) = shared() else { return };
    on_each_flavour(move |builder| {
        builder.build().unwrap().block_on(async {
            example::run(config_for(server.address())).await.unwrap();
            example::run(over_unix(&server)).await.unwrap();
        });
    });
}

#[test]
fn queries_of_one_connection_run_one_after_the_other_without_waiting() {
    within(LIMIT, || {
        let Some(server) = shared() else { return };
        mini::block_on(async {
            let connected = connect(&over_unix(&server)).await.unwrap();
            let client = &connected.0;
            let add = client.prepare("SELECT $1::int8 + 1").await.unwrap();
            let sums = try_join_all((0..1000_i64).map(|n| {
                let add = &add;
                async move { client.query_one(add, &[&n]).await.map(|row| row.get::<_, i64>(0)) }
            }));
            assert_eq!(sums.await.unwrap(), (1..=1000).collect::<Vec<i64>>());
            // A query that fails does not make its neighbours fail.
            let (bad, good) = futures_util::join!(client.query("SELECT 1/0", &[]), client.query("SELECT 2", &[]));
            assert_eq!(bad.unwrap_err().code(), Some(&SqlState::DIVISION_BY_ZERO));
            assert_eq!(good.unwrap()[0].get::<_, i32>(0), 2);
            // More than the sockets' buffers hold, both ways at once.
            let text = "x".repeat(8 << 20);
            let echo = async || client.query_one("SELECT $1::text", &[&text]).await;
            let echoes = try_join_all([echo(), echo(), echo()]).await.unwrap();
            assert!(echoes.iter().all(|row| row.get::<_, &str>(0) == text));
            finish(connected).await;
        });
    });
}

#[test]
fn a_transaction_that_is_dropped_is_rolled_back() {
    within(LIMIT, || {
        let Some(server) = shared() else { return };
        mini::block_on(async {
            let mut connected = connect(&config_for(server.address())).await.unwrap();
            connected.0.batch_execute("CREATE TEMPORARY TABLE t (n int4)").await.unwrap();
            let transaction = connected.0.transaction().await.unwrap();
            transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
            drop(transaction);
            let kept = connected.0.transaction().await.unwrap();
            kept.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap();
            kept.commit().await.unwrap();
            let rows = connected.0.query("SELECT n FROM t", &[]).await.unwrap();
            assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [2]);
            finish(connected).await;
        });
    });
}

#[test]
fn notifications_come_to_whoever_listens() {
    within(LIMIT, || {
        let Some(server) = shared() else { return };
        mini::block_on(async {
            let stream = TcpStream::connect(server.address()).await.unwrap();
            let (listening, mut connection) = config_for(server.address()).connect_raw(stream, NoTls).await.unwrap();
            let reader = mini::spawn(async move {
                let mut heard = Vec::new();
                while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await.transpose()? {
                    if let AsyncMessage::Notification(note) = message {
                        heard.push(note.payload().to_owned());
                    }
                    if heard.len() == 3 {
                        break;
                    }
                }
                Ok::<_, tokio_postgres::Error>(heard)
            });
            listening.batch_execute("LISTEN news").await.unwrap();
            let speaker = connect(&over_unix(&server)).await.unwrap();
            for n in 0..3 {
                speaker.0.batch_execute(&format!("NOTIFY news, 'number {n}'")).await.unwrap();
            }
            assert_eq!(reader.await.unwrap().unwrap(), ["number 0", "number 1", "number 2"]);
            finish(speaker).await;
        });
    });
}

#[test]
fn a_query_that_was_given_up_can_be_cancelled_and_the_connection_goes_on() {
    within(LIMIT, || {
        let Some(server) = shared() else { return };
        mini::block_on(async {
            let connected = connect(&config_for(server.address())).await.unwrap();
            let client = &connected.0;
            let sleeps = async { drop(client.query("SELECT pg_sleep(1000)", &[]).await) };
            futures_lite::future::or(sleeps, until_asleep(&server)).await;
            // The server goes on with the dropped query: the next query would wait.
            let stream = TcpStream::connect(server.address()).await.unwrap();
            client.cancel_token().cancel_query_raw(stream, NoTls).await.unwrap();
            assert_eq!(one_after_cancel(client).await, 1);
            // A query that is still awaited gets the error.
            let mut was_asleep = false;
            while !was_asleep {
                let cancelling = async {
                    until_asleep(&server).await;
                    was_asleep = true;
                    let stream = TcpStream::connect(server.address()).await.unwrap();
                    client.cancel_token().cancel_query_raw(stream, NoTls).await.unwrap();
                    std::future::pending().await
                };
                let asleep = futures_lite::future::or(client.query("SELECT pg_sleep(1000)", &[]), cancelling).await;
                assert_eq!(asleep.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
            }
            assert_eq!(one_after_cancel(client).await, 1);
            finish(connected).await;
        });
    });
}

#[test]
fn a_server_that_goes_away_in_the_middle_ends_query_and_connection() {
    within(LIMIT, || {
        let Some(mut server) = or_skip(Server::postgres()) else { return };
        mini::block_on(async {
            let (victim, other) =
                (connect(&config_for(server.address())).await.unwrap(), connect(&over_unix(&server)).await.unwrap());
            // The server process of this connection is ended.
            let id: i32 = victim.0.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
            let (answer, ()) = futures_util::join!(victim.0.query("SELECT pg_sleep(1000)", &[]), async {
                until_asleep(&server).await;
                other.0.execute("SELECT pg_terminate_backend($1)", &[&id]).await.unwrap();
            });
            assert_eq!(answer.unwrap_err().code(), Some(&SqlState::ADMIN_SHUTDOWN));
            assert!(victim.1.await.unwrap().is_err());
            assert!(victim.0.is_closed() && victim.0.query("SELECT 1", &[]).await.unwrap_err().is_closed());
            // The whole server ends.
            let (client, connection) = other;
            let asleep = mini::spawn(async move { client.query("SELECT pg_sleep(1000)", &[]).await });
            until_asleep(&server).await;
            mini::spawn_blocking(move || server.crash()).await.unwrap();
            assert!(asleep.await.unwrap().is_err());
            assert!(connection.await.unwrap().is_err());
        });
    });
}

#[test]
fn servers_that_break_the_protocol_give_an_error_and_leave_nothing_open() {
    in_child("servers_that_break_the_protocol_give_an_error_and_leave_nothing_open", || {
        let runtime = mini::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            // Now the runtime has opened all that sockets need.
            drop(tcp_pair().await);
            let before = open_files();
            let silent = TcpStream::connect(says(Vec::new(), true).await.unwrap()).await.unwrap();
            assert!(timeout(SOON, Config::new().user("mini").connect_raw(silent, NoTls)).await.is_err());
            let authenticated = b"R\0\0\0\x08\0\0\0\0".to_vec();
            let wrong: [Vec<u8>; 7] = [
                Vec::new(),                                   // nothing, and the end
                b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), // another protocol
                vec![0xff; 100_000],
                b"R\0\0\0\0".to_vec(),           // shorter than itself
                b"E\0\0\x10\0SFATAL\0".to_vec(), // ends in the middle
                [authenticated.clone(), b"Z\0\0\0\x04".to_vec()].concat(),
                [authenticated, b"D\x7f\xff\xff\xff".to_vec()].concat(), // 2 GiB, which never come
            ];
            for (number, bytes) in wrong.into_iter().enumerate() {
                let address = says(bytes, false).await.unwrap();
                assert!(timeout(LIMIT, connect(&config_for(address))).await.unwrap().is_err(), "number {number}");
            }
            until(|| open_files() == before).await;
            let (_keeps, nobody) = refusing_port();
            assert!(connect(&config_for(nobody)).await.is_err());
        });
    });
}

#[test]
fn a_server_that_breaks_the_protocol_later_ends_the_connection() {
    within(LIMIT, || {
        mini::block_on(async {
            let hello = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";
            // A length that can't be, an answer to no question, and the end in the middle of a message.
            for (bytes, keeps) in [(b"D\0\0\0\0".as_slice(), true), (b"1\0\0\0\x04", true), (b"D\0\0\x10\0half", false)]
            {
                let address = says([hello, bytes].concat(), keeps).await.unwrap();
                let (client, connection) = connect(&config_for(address)).await.unwrap();
                assert!(connection.await.unwrap().is_err(), "{bytes:?}");
                assert!(client.query("SELECT 1", &[]).await.unwrap_err().is_closed());
            }
        });
    });
}
