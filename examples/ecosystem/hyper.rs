//! hyper: a server and a client for HTTP/1 and HTTP/2, with mini's `TcpStream` as it is, `mini::hyper::Timer` and
//! `Executor`.
//!
//! Without arguments it talks to itself in both versions and ends. With an address, `hyper 127.0.0.1:8080`, it serves
//! there (try `curl --http2-prior-knowledge`).

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version, client};
use mini::hyper::Executor;
use mini::net::{TcpListener, TcpStream};
use mini_hyper::{Failure, serve};

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let text = format!("hello over {:?} to {}\n", request.version(), request.uri().path());
    Ok(Response::new(Full::from(text)))
}

#[mini::main]
async fn main() -> Result<(), Failure> {
    let addr = std::env::args().nth(1);
    let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let at = listener.local_addr()?;
    println!("serving on http://{at}/");
    if addr.is_some() {
        println!("{:?}", serve(listener, service_fn(hello)).with_graceful_shutdown(mini::signal::termination()).await?);
        return Ok(());
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = mini::spawn(serve(listener, service_fn(hello)).with_graceful_shutdown(stopped).into_future());
    for version in [Version::HTTP_11, Version::HTTP_2] {
        print!("{}", get(TcpStream::connect(at).await?, version).await?);
    }
    drop(stop);
    println!("{:?}", server.await??);
    Ok(())
}

/// One request over a new connection.
async fn get(stream: TcpStream, version: Version) -> Result<String, Failure> {
    let request = Request::get("http://localhost/world").header("host", "localhost").body(Full::<Bytes>::default())?;
    let response = if version == Version::HTTP_2 {
        let (mut sender, connection) = client::conn::http2::handshake(Executor::new(), stream).await?;
        mini::spawn(connection);
        sender.send_request(request).await?
    } else {
        let (mut sender, connection) = client::conn::http1::handshake(stream).await?;
        mini::spawn(connection);
        sender.send_request(request).await?
    };
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.into())?)
}
