//! Redis by fred, which needs a tokio runtime: one runs beside mini, and every thread that polls has entered it.
//!
//! ```text
//! fred [IP:PORT]
//! ```
//!
//! Without an argument it starts a Redis for itself, if one is installed. fred's own tasks and sockets live on tokio's
//! thread; the tasks that wait for them are mini's. `redis_client.rs` is a client that needs no second runtime.

use std::net::SocketAddr;
use std::time::Duration;

use fred::prelude::*;
use mini_ecosystem::servers::Server;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let _inside = tokio.enter(); // all is polled on this thread, in `mini::block_on`
    if let Some(address) = std::env::args().nth(1) {
        return mini::block_on(run(address.parse()?));
    }
    let Some(server) = Server::redis()? else {
        println!("no Redis is installed; try: fred 127.0.0.1:6379");
        return Ok(());
    };
    println!("a Redis for this run listens on {}", server.address());
    mini::block_on(run(server.address()))
}

/// A client that does not connect again by itself. Its calls have to be inside tokio's runtime, from `init` on.
pub fn client(address: SocketAddr) -> Result<Client, fred::error::Error> {
    let server = ServerConfig::new_centralized(address.ip().to_string(), address.port());
    Builder::from_config(Config { server, ..Config::default() })
        .with_connection_config(|connection| connection.connection_timeout = Duration::from_secs(5))
        .with_performance_config(|performance| performance.default_command_timeout = Duration::from_secs(20))
        .build()
}

/// Counts in a pipeline, and sends itself a message.
pub async fn run(address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
    let (client, listener) = (client(address)?, client(address)?);
    client.init().await?;
    listener.init().await?;
    let pipeline = client.pipeline();
    let () = pipeline.incr("visitors").await?;
    let () = pipeline.incr_by("visitors", 10).await?;
    let (first, second): (u64, u64) = pipeline.all().await?;
    println!("{first} visitor, then {second}");
    let mut messages = listener.message_rx();
    listener.subscribe("news").await?;
    let () = client.publish("news", "it works").await?;
    let message = mini::time::timeout(Duration::from_secs(5), messages.recv()).await??;
    println!("on the channel {}: {}", message.channel, message.value.convert::<String>()?);
    listener.quit().await?;
    client.quit().await?;
    Ok(())
}
