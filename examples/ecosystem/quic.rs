//! QUIC: a server that sends back what it receives, and its client, with quinn.
//!
//! Without arguments it sends 100 MB to itself, gets them back, and ends. With an address, `quic 127.0.0.1:4433`, it
//! serves there, with a certificate that it prints.
//!
//! The glue is `mini_quinn::MiniRuntime`.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use mini_ecosystem::certificate::{Failure, Identity};
use mini_quinn::MiniRuntime;
use quinn::{Connection, Endpoint, EndpointConfig, Incoming};

const TOTAL: usize = 100_000_000;
const BLOCK: usize = 100_000;

#[mini::main]
async fn main() -> Result<(), Failure> {
    let identity = Identity::new(&["localhost"])?;
    let addr = std::env::args().nth(1);
    let at: SocketAddr = addr.as_deref().unwrap_or("127.0.0.1:0").parse()?;
    let server = endpoint(at, Some(identity.quic_server()?))?;
    if addr.is_some() {
        println!("{}serving on {}", identity.pem, server.local_addr()?);
        return serve(server).await;
    }
    let at = server.local_addr()?;
    let serving = mini::spawn(serve(server.clone()));

    let mut client = endpoint("127.0.0.1:0".parse()?, None)?;
    client.set_default_client_config(identity.quic_client()?);
    let connection = client.connect(at, "localhost")?.await?;
    let start = Instant::now();
    let count = there_and_back(&connection).await?;
    let mb = count as f64 / 1e6;
    println!("{mb} MB there and back, {:.0} MB/s each way", mb / start.elapsed().as_secs_f64());
    println!("{:?}", connection.stats().path);

    connection.close(0_u32.into(), b"bye");
    client.wait_idle().await;
    server.close(0_u32.into(), b"");
    serving.await?
}

fn endpoint(at: SocketAddr, server: Option<quinn::ServerConfig>) -> std::io::Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), server, UdpSocket::bind(at)?, Arc::new(MiniRuntime))
}

async fn serve(endpoint: Endpoint) -> Result<(), Failure> {
    while let Some(incoming) = endpoint.accept().await {
        mini::spawn(async move { println!("a client has gone: {:?}", echo(incoming).await) });
    }
    Ok(())
}

/// Sends back each stream; ends with the error that says how the connection has ended.
async fn echo(incoming: Incoming) -> Result<(), Failure> {
    let connection = incoming.await?;
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        mini::spawn(async move { futures_lite::io::copy(&mut receive, &mut send).await });
    }
}

async fn there_and_back(connection: &Connection) -> Result<usize, Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let sending = mini::spawn(async move {
        for number in 0..TOTAL / BLOCK {
            send.write_all(&[number as u8; BLOCK]).await?;
        }
        Ok::<_, Failure>(send.finish()?)
    });
    let (mut count, mut buf) = (0, vec![0; BLOCK]);
    while let Some(length) = receive.read(&mut buf).await? {
        assert!(
            buf[..length].iter().zip(count..).all(|(&byte, at)| byte == (at / BLOCK) as u8),
            "other bytes came back"
        );
        count += length;
    }
    sending.await??;
    Ok(count)
}
