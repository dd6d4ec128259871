//! WebSockets by async-tungstenite, over TLS: each message begins with its number.

use async_tungstenite::tungstenite::Message;
use async_tungstenite::{WebSocketStream, accept_async, client_async};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_lite::StreamExt;
use futures_rustls::client::TlsStream;
use mini::net::TcpStream;

use crate::endurance::{Failure, Ledger, Protocol, SERVER, endure};
use crate::tls;

fn message(id: u32, body: &[u8]) -> Message {
    let mut bytes = BytesMut::new();
    bytes.put_u32(id);
    bytes.put(body);
    Message::binary(bytes.freeze())
}

struct Socket(WebSocketStream<TlsStream<TcpStream>>);

impl Protocol for Socket {
    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        tls::accept(move |stream| {
            let ledger = ledger.clone();
            async move {
                let mut socket = accept_async(stream).await?;
                while let Some(message) = socket.next().await.transpose()? {
                    if let Message::Binary(mut body) = message {
                        let id = body.get_u32();
                        socket.send(self::message(id, &ledger.apply(id, body).await)).await?;
                    }
                }
                Ok(())
            }
        })
        .await
    }

    async fn connect() -> Result<Self, Failure> {
        let (socket, _) = client_async(format!("wss://{SERVER}/"), tls::connect().await?).await?;
        Ok(Self(socket))
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        self.0.send(message(id, &body)).await?;
        let mut answer = self.0.next().await.ok_or("the server has gone")??.into_data();
        assert_eq!(answer.get_u32(), id, "the answer to another request");
        Ok(answer)
    }
}

#[mini::test(sim, seeds = 100)]
async fn websocket_over_tls() {
    endure::<Socket>().await;
}
