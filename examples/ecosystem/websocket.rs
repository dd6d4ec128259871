//! WebSockets: an echo server and its client, with async-tungstenite over mini's `TcpStream`, plain and over TLS.
//!
//! Without arguments it talks to itself, once as `ws` and once as `wss`, and ends. With an address,
//! `websocket 127.0.0.1:8080`, it serves `ws` there.
//!
//! There is no glue: `async-tungstenite` and `futures-rustls` want the traits of `futures-io`, which mini's streams
//! have.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_tungstenite::tungstenite::{Error, Message, protocol::WebSocketConfig};
use async_tungstenite::{accept_async_with_config, client_async};
use futures_lite::StreamExt;
use futures_lite::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use futures_rustls::{TlsAcceptor, TlsConnector};
use mini::net::{TcpListener, TcpStream, next_connection};
use mini::time::timeout;
use mini_ecosystem::certificate::{Failure, Identity};

/// A client that has not ended a handshake is let go after this.
const HANDSHAKE: Duration = Duration::from_secs(10);

#[mini::main]
async fn main() -> Result<(), Failure> {
    let addr = std::env::args().nth(1);
    let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let at = listener.local_addr()?;
    if addr.is_some() {
        println!("serving on ws://{at}/");
        return serve(listener, None).await;
    }
    let server = mini::spawn(serve(listener, None));
    converse(&format!("ws://{at}/"), TcpStream::connect(at).await?).await?;
    server.cancel().await.ok();

    let identity = Identity::new(&["localhost"])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    let server = mini::spawn(serve(listener, Some(TlsAcceptor::from(Arc::new(identity.server()?)))));
    let connector = TlsConnector::from(Arc::new(identity.client()?));
    let stream = connector.connect("localhost".try_into()?, TcpStream::connect(at).await?).await?;
    converse(&format!("wss://localhost:{}/", at.port()), stream).await?;
    server.cancel().await.ok();
    Ok(())
}

pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>) -> Result<(), Failure> {
    loop {
        let (tcp, peer) = next_connection(&listener).await?;
        let tls = tls.clone();
        mini::spawn(async move {
            let ended = match tls {
                None => echo(tcp).await,
                Some(tls) => match timeout(HANDSHAKE, tls.accept(tcp)).await {
                    Ok(Ok(stream)) => echo(stream).await,
                    Ok(Err(error)) => Err(error.into()),
                    Err(late) => Err(io::Error::from(late).into()),
                },
            };
            println!("{peer} has gone: {ended:?}");
        });
    }
}

/// Sends back all messages, up to 1 MiB at a time; pings are answered by the library.
async fn echo(stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), Error> {
    let limits = WebSocketConfig::default().max_message_size(Some(1 << 20));
    let mut socket =
        timeout(HANDSHAKE, accept_async_with_config(stream, Some(limits))).await.map_err(io::Error::from)??;
    while let Some(message) = socket.next().await.transpose()? {
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(socket.into_inner().close().await?) // over TLS the end has to be announced
}

async fn converse(url: &str, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), Failure> {
    let (mut socket, response) = client_async(url, stream).await?;
    socket.send(Message::text("hello")).await?;
    let answer = socket.next().await.ok_or("no answer")??;
    println!("{url}: {}, then {answer:?}", response.status());
    socket.close(None).await?;
    while socket.next().await.transpose()?.is_some() {} // until the server has agreed
    Ok(())
}
