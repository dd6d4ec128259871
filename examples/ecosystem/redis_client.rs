//! Redis by the crate `redis`: the connection is a task of mini's, over a socket of mini's, and its clones share it.
//!
//! ```text
//! redis-client [IP:PORT]
//! ```
//!
//! Without an argument it starts a Redis for itself, if one is installed. The crate has to be built with `smol-comp` or
//! `tokio-comp`, but `MultiplexedConnection::new_with_config` uses neither, if it is told to have no time limit: the
//! limits here are mini's.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use mini::net::TcpStream;
use mini::task::JoinHandle;
use mini::time::timeout;
use mini_ecosystem::servers::Server;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncCommands, AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo, from_redis_value,
};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(address) = std::env::args().nth(1) {
        return mini::block_on(run(address.parse()?));
    }
    let Some(server) = Server::redis()? else {
        println!("no Redis is installed; try: redis-client 127.0.0.1:6379");
        return Ok(());
    };
    println!("a Redis for this run listens on {}", server.address());
    mini::block_on(run(server.address()))
}

/// Connects, and passes messages that come in to `on_push`. The task ends when the connection is lost, or all clones
/// are dropped.
pub async fn connect(
    address: SocketAddr,
    on_push: impl Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync + 'static,
) -> Result<(MultiplexedConnection, JoinHandle<()>), Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    // Messages come between answers in the newer protocol alone.
    let info = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(on_push);
    let opened = MultiplexedConnection::new_with_config(&info, stream, config);
    let (connection, driver) = timeout(Duration::from_secs(5), opened).await??;
    Ok((connection, mini::spawn(driver)))
}

/// Counts, in one command and in a pipeline of several, and sends itself a message.
pub async fn run(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let (send, messages) = async_channel::unbounded();
    let (mut redis, driver) =
        connect(address, move |push| send.try_send(push).map_err(|_| redis::aio::SendError)).await?;
    let visitors: u64 = redis.incr("visitors", 1).await?;
    let mut pipeline = redis::pipe();
    pipeline.atomic().incr("visitors", 10).rpush("log", "ten more").llen("log");
    let (more, _, lines): (u64, u64, u64) = pipeline.query_async(&mut redis).await?;
    println!("{visitors} visitor, then {more}; lines in the log: {lines}");
    redis.subscribe("news").await?;
    redis.clone().publish::<_, _, ()>("news", "it works").await?;
    let message = loop {
        let push = timeout(Duration::from_secs(5), messages.recv()).await??;
        if push.kind == PushKind::Message {
            break push;
        }
    };
    let (channel, text): (String, String) = from_redis_value(redis::Value::Array(message.data))?;
    println!("on the channel {channel}: {text}");
    drop(redis);
    driver.await?;
    println!("the connection has ended");
    Ok(())
}
