//! The crate `redis` on mini, against a real Redis, and against servers that break the protocol or go away.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::try_join_all;
use mini::net::UnixStream;
use mini::time::timeout;
use mini_ecosystem::servers::{Server, or_skip};
use mini_tests::net_support::{open_files, refusing_port, tcp_pair};
use mini_tests::{LIMIT, in_child, on_each_flavour, until, within};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo, RedisResult};

#[path = "support/says.rs"]
mod says;

use says::says;

#[path = "../redis_client.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

/// How long a client waits that gets no answer.
const SOON: Duration = Duration::from_millis(50);

async fn connect(address: SocketAddr) -> (MultiplexedConnection, mini::task::JoinHandle<()>) {
    example::connect(address, |_| Ok(())).await.unwrap()
}

/// Waits until the server has a client in `BLPOP`.
async fn until_blocked(other: &mut MultiplexedConnection) {
    let mut list = async || redis::cmd("CLIENT").arg("LIST").query_async::<String>(other).await.unwrap();
    while !list().await.contains("cmd=blpop") {}
}

#[test]
fn the_example_runs_on_each_flavour() {
    let Some(server) = or_skip(Server::redis()) else { return };
    on_each_flavour(move |builder| {
        builder.build().unwrap().block_on(example::run(server.address())).unwrap();
    });
}

#[test]
fn no_other_runtime_is_started_for_it() {
    in_child("no_other_runtime_is_started_for_it", || {
        let Some(server) = or_skip(Server::redis()) else { return };
        mini::block_on(async {
            example::run(server.address()).await.unwrap();
            let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let names: Vec<String> =
                threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok()).collect();
            assert!(!names.is_empty());
            assert!(names.iter().all(|name| !name.contains("async-io") && !name.contains("smol")), "{names:?}");
        });
    });
}

#[test]
fn commands_of_many_tasks_share_a_connection() {
    let Some(server) = or_skip(Server::redis()) else { return };
    on_each_flavour(move |builder| {
        builder.build().unwrap().block_on(async {
            let stream = UnixStream::connect(server.socket()).await.unwrap();
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            let info = RedisConnectionInfo::default();
            let (redis, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await.unwrap();
            let driver = mini::spawn(driver);
            redis::cmd("FLUSHALL").exec_async(&mut redis.clone()).await.unwrap();
            let tasks = (0..20).map(|task| {
                let mut redis = redis.clone();
                mini::spawn(async move {
                    for n in 0..50_u64 {
                        redis.set::<_, _, ()>(format!("{task}-{n}"), n).await?;
                        assert_eq!(redis.get::<_, u64>(format!("{task}-{n}")).await?, n);
                        redis.incr::<_, _, u64>("all", 1).await?;
                    }
                    RedisResult::Ok(())
                })
            });
            try_join_all(tasks).await.unwrap().into_iter().collect::<RedisResult<()>>().unwrap();
            let mut redis = redis;
            assert_eq!(redis.get::<_, u64>("all").await.unwrap(), 1000);
            // More than the sockets' buffers hold, both ways at once.
            let text = "x".repeat(4 << 20);
            let mut pipeline = redis::pipe();
            for _ in 0..4 {
                pipeline.cmd("ECHO").arg(&text);
            }
            let echoes: Vec<String> = pipeline.query_async(&mut redis).await.unwrap();
            assert!(echoes.len() == 4 && echoes.iter().all(|echo| *echo == text));
            // An error belongs to its command.
            assert!(redis.lpush::<_, _, u64>("all", 1).await.unwrap_err().to_string().contains("WRONGTYPE"));
            assert_eq!(redis.get::<_, u64>("all").await.unwrap(), 1000);
            drop(redis);
            driver.await.unwrap();
        });
    });
}

#[test]
fn a_command_that_was_given_up_does_not_take_the_next_ones_answer() {
    within(LIMIT, || {
        let Some(server) = or_skip(Server::redis()) else { return };
        mini::block_on(async {
            let (mut redis, driver) = connect(server.address()).await;
            let (mut other, other_driver) = connect(server.address()).await;
            let mut blocked = redis.clone();
            let pops = async { drop(blocked.blpop::<_, Option<(String, String)>>("queue", 0.0).await) };
            futures_lite::future::or(pops, until_blocked(&mut other)).await;
            // The server still has the command, and answers one after the other.
            other.rpush::<_, _, u64>("queue", "late").await.unwrap();
            assert_eq!(redis.incr::<_, _, u64>("n", 1).await.unwrap(), 1);
            assert_eq!(other.llen::<_, u64>("queue").await.unwrap(), 0);
            drop((redis, blocked, other));
            driver.await.unwrap();
            other_driver.await.unwrap();
        });
    });
}

#[test]
fn a_server_that_is_killed_ends_commands_and_connection() {
    within(LIMIT, || {
        let Some(mut server) = or_skip(Server::redis()) else { return };
        let address = server.address();
        mini::block_on(async {
            let (mut redis, driver) = connect(address).await;
            let (mut blocked, (mut other, other_driver)) = (redis.clone(), connect(address).await);
            let waits = mini::spawn(async move { blocked.blpop::<_, Option<(String, String)>>("queue", 0.0).await });
            until_blocked(&mut other).await;
            mini::spawn_blocking(move || server.crash()).await.unwrap();
            assert!(waits.await.unwrap().is_err());
            driver.await.unwrap();
            assert!(redis.incr::<_, _, u64>("n", 1).await.unwrap_err().is_unrecoverable_error());
            assert!(other.incr::<_, _, u64>("n", 1).await.is_err());
            other_driver.await.unwrap();
            assert!(example::connect(address, |_| Ok(())).await.is_err());
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
            let silent = says(Vec::new(), true).await.unwrap();
            let connected = timeout(SOON, example::connect(silent, |_| Ok(()))).await;
            assert!(!matches!(connected, Ok(Ok(_))));
            let wrong: [&[u8]; 7] = [
                b"",
                b"HTTP/1.1 400 Bad Request\r\n\r\n",
                b"-ERR unknown command 'HELLO'\r\n",
                b"$-7\r\n",
                b"$99999999999999999999\r\n",
                b"*3\r\n+one\r\n",
                &[0xff; 100_000],
            ];
            for (number, bytes) in wrong.into_iter().enumerate() {
                let address = says(bytes.to_vec(), false).await.unwrap();
                let connected = timeout(LIMIT, example::connect(address, |_| Ok(()))).await.unwrap();
                assert!(connected.is_err(), "number {number}");
            }
            // Nested deeper than any answer: refused, not parsed until the stack ends.
            let address = says(b"*1\r\n".repeat(100_000), false).await.unwrap();
            assert!(timeout(LIMIT, example::connect(address, |_| Ok(()))).await.unwrap().is_err());
            until(|| open_files() == before).await;
            let (_keeps, nobody) = refusing_port();
            assert!(example::connect(nobody, |_| Ok(())).await.is_err());
        });
    });
}
