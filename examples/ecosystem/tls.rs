//! TLS: an echo server and its client, with futures-rustls over mini's `TcpStream`.
//!
//! Without arguments it talks to itself and ends. With an address, `tls 127.0.0.1:8443`, it prints its certificate and
//! serves: save that as `cert.pem` and try `openssl s_client -quiet -CAfile cert.pem -connect 127.0.0.1:8443`.
//!
//! There is no glue: `futures-rustls` wants the traits of `futures-io`, which mini's streams have.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::pki_types::ServerName;
use futures_rustls::{TlsAcceptor, TlsConnector};
use mini::net::{TcpListener, TcpStream, next_connection};
use mini::time::timeout;
use mini_ecosystem::certificate::{Failure, Identity};

/// A silent client is disconnected after this.
const HANDSHAKE: Duration = Duration::from_secs(10);

#[mini::main]
async fn main() -> Result<(), Failure> {
    let identity = Identity::new(&["localhost", "127.0.0.1"])?;
    let acceptor = TlsAcceptor::from(Arc::new(identity.server()?));
    if let Some(addr) = std::env::args().nth(1) {
        let listener = TcpListener::bind(&addr).await?;
        print!("{}", identity.pem);
        eprintln!("serving on {}", listener.local_addr()?);
        return Ok(serve(listener, acceptor).await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let server = mini::spawn(serve(listener, acceptor));

    let connector = TlsConnector::from(Arc::new(identity.client()?));
    let mut stream = connector.connect(ServerName::try_from("localhost")?, TcpStream::connect(addr).await?).await?;
    let (_, session) = stream.get_ref();
    println!("{:?}, {:?}", session.protocol_version(), session.negotiated_cipher_suite().map(|suite| suite.suite()));
    stream.write_all(b"hello over TLS").await?;
    stream.flush().await?;
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).await?;
    println!("the server said: {}", String::from_utf8_lossy(&answer));
    stream.close().await?; // says so to the server, which says so too
    assert_eq!(stream.read(&mut answer).await?, 0);

    let wrong = connector.connect(ServerName::try_from("example.org")?, TcpStream::connect(addr).await?).await;
    println!("as example.org: {}", wrong.err().map_or_else(|| "accepted?".to_owned(), |error| error.to_string()));
    server.cancel().await.ok();
    Ok(())
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<()> {
    loop {
        let (tcp, peer) = next_connection(&listener).await?;
        let acceptor = acceptor.clone();
        mini::spawn(async move {
            if let Err(error) = echo(acceptor, tcp).await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

async fn echo(acceptor: TlsAcceptor, tcp: TcpStream) -> io::Result<()> {
    let mut stream = timeout(HANDSHAKE, acceptor.accept(tcp)).await??;
    let mut buf = vec![0; 16 << 10];
    loop {
        match stream.read(&mut buf).await? {
            0 => return stream.close().await,
            length => stream.write_all(&buf[..length]).await?,
        }
        stream.flush().await?;
    }
}
