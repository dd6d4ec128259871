//! The servers on tokio.

use std::io;
use std::net;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use super::{Kind, Layout, Plan, obey_byte};
use crate::process::child::noted;
use crate::process::http::{app, hello};

pub(super) fn serve(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    runtime(plan.layout)?.block_on(accept(plan.kind, listener))
}

fn runtime(layout: Layout) -> io::Result<Runtime> {
    match layout {
        Layout::One | Layout::PerCore => Builder::new_current_thread().enable_all().build(),
        Layout::Shared => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
    }
}

async fn accept(kind: Kind, listener: net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let app = app();
    loop {
        let (stream, _) = listener.accept().await?;
        if kind == Kind::Close {
            continue;
        }
        stream.set_nodelay(true)?;
        match kind {
            Kind::Http => drop(tokio::spawn(http(stream))),
            Kind::Http2 => drop(tokio::spawn(http2(stream))),
            Kind::Axum => drop(tokio::spawn(axum(stream, app.clone()))),
            Kind::Proxy => drop(tokio::spawn(proxy(stream, listener.accept().await?.0))),
            Kind::Stall | Kind::StallInMain => drop(tokio::spawn(stall(stream))),
            _ => drop(tokio::spawn(noted(echo(stream, kind.buffer())))),
        }
    }
}

async fn echo(mut stream: TcpStream, size: usize) -> io::Result<()> {
    let mut buf = vec![0; size];
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            length => stream.write_all(&buf[..length]).await?,
        }
    }
}

async fn stall(mut stream: TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        obey_byte(byte[0]);
        stream.write_all(&byte).await?;
    }
    Ok(())
}

async fn http(stream: TcpStream) -> hyper::Result<()> {
    http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(hello)).await
}

async fn http2(stream: TcpStream) -> hyper::Result<()> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(hello)).await
}

async fn axum(stream: TcpStream, app: Router) -> hyper::Result<()> {
    let service = TowerToHyperService::new(app);
    http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await
}

async fn proxy(mut a: TcpStream, mut b: TcpStream) -> io::Result<()> {
    b.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut a, &mut b).await?;
    Ok(())
}
