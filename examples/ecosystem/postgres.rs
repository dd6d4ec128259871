//! PostgreSQL by tokio-postgres: the connection is a task of mini's, over a socket of mini's, and the client its
//! handle.
//!
//! ```text
//! postgres [CONNECTION]   as in "host=localhost user=me password=secret", or a URL; without TLS
//! ```
//!
//! Without an argument it starts a PostgreSQL for itself, if one is installed.

use std::error::Error;
use std::time::Duration;

use mini::net::{TcpStream, UnixStream};
use mini::task::JoinHandle;
use mini::time::timeout;
use mini_ecosystem::servers::Server;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// A client and the task of its connection, which ends when the client is dropped or the connection is lost.
pub type Connected = (Client, JoinHandle<Result<(), tokio_postgres::Error>>);

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(connection) = std::env::args().nth(1) {
        return mini::block_on(run(connection.parse()?));
    }
    let Some(server) = Server::postgres()? else {
        println!("no PostgreSQL is installed; try: postgres \"host=localhost user=me password=secret\"");
        return Ok(());
    };
    let address = server.address();
    println!("a PostgreSQL for this run listens on {address}");
    mini::block_on(run(format!("host={} port={} user=mini dbname=postgres", address.ip(), address.port()).parse()?))
}

/// Connects to the first host of `config`, and gives up after five seconds: `connect_raw` has no limit.
pub async fn connect(config: &Config) -> Result<Connected, Box<dyn Error>> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let connected = async {
        match config.get_hosts().first() {
            None => Err("the connection string names no host".into()),
            Some(Host::Tcp(host)) => {
                let stream = TcpStream::connect((host.as_str(), port)).await?;
                stream.set_nodelay(true)?;
                let (client, connection) = config.connect_raw(stream, NoTls).await?;
                Ok((client, mini::spawn(connection)))
            }
            Some(Host::Unix(dir)) => {
                let stream = UnixStream::connect(dir.join(format!(".s.PGSQL.{port}"))).await?;
                let (client, connection) = config.connect_raw(stream, NoTls).await?;
                Ok((client, mini::spawn(connection)))
            }
        }
    };
    timeout(Duration::from_secs(5), connected).await?
}

/// Makes a table for this connection alone, fills it in a transaction, and reads it.
pub async fn run(config: Config) -> Result<(), Box<dyn Error>> {
    let (mut client, connection) = connect(&config).await?;
    client.batch_execute("CREATE TEMPORARY TABLE city (name text PRIMARY KEY, people int8)").await?;
    let transaction = client.transaction().await?;
    let insert = transaction.prepare("INSERT INTO city VALUES ($1, $2)").await?;
    for (name, people) in [("Berlin", 3_700_000_i64), ("Prague", 1_400_000), ("Vienna", 2_000_000)] {
        transaction.execute(&insert, &[&name, &people]).await?;
    }
    transaction.commit().await?;
    for row in client.query("SELECT name, people FROM city ORDER BY people DESC", &[]).await? {
        println!("{:8} {:>9}", row.get::<_, &str>(0), row.get::<_, i64>(1));
    }
    drop(client);
    connection.await??;
    println!("the connection has ended");
    Ok(())
}
