//! TLS by futures-rustls over mini's `TcpStream`: each message is its number, its length, and its bytes.

use std::io;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use futures_rustls::client::TlsStream;
use futures_rustls::{TlsAcceptor, TlsConnector};
use mini::net::{TcpListener, TcpStream};
use mini_ecosystem::certificate::Identity;

use crate::endurance::{Failure, Ledger, Protocol, SERVER, endure};

/// A certificate for the server, made once: it takes milliseconds.
pub(crate) static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new(&[SERVER]).expect("a certificate"));

/// A stream of TLS from a client to the server.
pub(crate) async fn connect() -> Result<TlsStream<TcpStream>, Failure> {
    let connector = TlsConnector::from(Arc::new(IDENTITY.client()?));
    Ok(connector.connect(SERVER.try_into()?, TcpStream::connect((SERVER, 443)).await?).await?)
}

/// Accepts without end, and has each client served by a task.
pub(crate) async fn accept<F>(
    serve: impl Fn(futures_rustls::server::TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let acceptor = TlsAcceptor::from(Arc::new(IDENTITY.server()?));
    let listener = TcpListener::bind("0.0.0.0:443").await?;
    loop {
        let (tcp, _) = listener.accept().await?;
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        drop(mini::spawn(async move {
            if let Ok(stream) = acceptor.accept(tcp).await {
                let _ = serve(stream).await; // its client hears of it, or has gone
            }
        }));
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), id: u32, body: &[u8]) -> io::Result<()> {
    let head = [id.to_be_bytes(), (body.len() as u32).to_be_bytes()].concat();
    stream.write_all(&head).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u32, Bytes)> {
    let (mut id, mut length) = ([0; 4], [0; 4]);
    stream.read_exact(&mut id).await?;
    stream.read_exact(&mut length).await?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).await?;
    Ok((u32::from_be_bytes(id), body.into()))
}

struct Tls(TlsStream<TcpStream>);

impl Protocol for Tls {
    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        accept(move |mut stream| {
            let ledger = ledger.clone();
            async move {
                loop {
                    let (id, body) = receive(&mut stream).await?;
                    send(&mut stream, id, &ledger.apply(id, body).await).await?;
                }
            }
        })
        .await
    }

    async fn connect() -> Result<Self, Failure> {
        connect().await.map(Self)
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        send(&mut self.0, id, &body).await?;
        let (answered, body) = receive(&mut self.0).await?;
        assert_eq!(answered, id, "the answer to another request");
        Ok(body)
    }
}

#[mini::test(sim, seeds = 100)]
async fn tls_by_rustls() {
    endure::<Tls>().await;
}
