//! axum, served by `mini_hyper`; clients of hyper, which speak HTTP/1 and HTTP/2.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::post;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::{http1, http2};
use mini::hyper::{Executor, Timer};
use mini::net::{TcpListener, TcpStream};

use crate::endurance::{Failure, Ledger, Protocol, SERVER, endure};

async fn serve(ledger: Ledger) -> Result<(), Failure> {
    let apply = async |State(ledger): State<Ledger>, Path(id): Path<u32>, body: Bytes| ledger.apply(id, body).await;
    let router = Router::new().route("/apply/{id}", post(apply)).with_state(ledger);
    mini_hyper::serve(TcpListener::bind("0.0.0.0:80").await?, router).await?;
    Ok(())
}

fn request(id: u32, body: Bytes) -> Request<Full<Bytes>> {
    let uri = format!("http://{SERVER}/apply/{id}");
    Request::post(uri).header("host", SERVER).body(Full::new(body)).expect("a valid request")
}

async fn whole(response: hyper::Response<hyper::body::Incoming>) -> Result<Bytes, Failure> {
    if !response.status().is_success() {
        return Err(response.status().as_str().into());
    }
    Ok(response.into_body().collect().await?.to_bytes())
}

struct Http1(http1::SendRequest<Full<Bytes>>);

impl Protocol for Http1 {
    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        serve(ledger).await
    }

    async fn connect() -> Result<Self, Failure> {
        let (sender, connection) = http1::handshake(TcpStream::connect((SERVER, 80)).await?).await?;
        drop(mini::spawn(async { connection.await.unwrap_or_default() })); // its requests fail, too
        Ok(Self(sender))
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        self.0.ready().await?;
        whole(self.0.send_request(request(id, body)).await?).await
    }
}

struct Http2(http2::SendRequest<Full<Bytes>>);

impl Protocol for Http2 {
    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        serve(ledger).await
    }

    async fn connect() -> Result<Self, Failure> {
        let stream = TcpStream::connect((SERVER, 80)).await?;
        let (sender, connection) = http2::Builder::new(Executor::new()).timer(Timer::new()).handshake(stream).await?;
        drop(mini::spawn(async { connection.await.unwrap_or_default() })); // its requests fail, too
        Ok(Self(sender))
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        self.0.ready().await?;
        whole(self.0.send_request(request(id, body)).await?).await
    }
}

#[mini::test(sim, seeds = 100)]
async fn http1_by_hyper_to_axum() {
    endure::<Http1>().await;
}

#[mini::test(sim, seeds = 100)]
async fn http2_by_hyper_to_axum() {
    endure::<Http2>().await;
}
