//! The servers on mini.

use std::io;
use std::net;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Runtime};

use super::{Kind, Layout, Plan};
use crate::process::child::noted;
use crate::process::http::hello;
use crate::process::hyper_io::{MiniIo, MiniTimer};

pub(super) fn serve(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    runtime(plan.layout)?.block_on(accept(plan.kind, listener))
}

fn runtime(layout: Layout) -> io::Result<Runtime> {
    match layout {
        Layout::One | Layout::PerCore => Builder::new_current_thread().build(),
        Layout::Shared => Builder::new_multi_thread().worker_threads(2).build(),
    }
}

async fn accept(kind: Kind, listener: net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        if kind == Kind::Close {
            continue;
        }
        stream.set_nodelay(true)?;
        match kind {
            Kind::Http => drop(mini::spawn(http(stream))),
            Kind::Proxy => drop(mini::spawn(proxy(stream, listener.accept().await?.0))),
            _ => drop(mini::spawn(noted(echo(stream, kind.buffer())))),
        }
    }
}

async fn echo(stream: TcpStream, size: usize) -> io::Result<()> {
    let mut buf = vec![0; size];
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            length => stream.write_all(&buf[..length]).await?,
        }
    }
}

async fn http(stream: TcpStream) -> hyper::Result<()> {
    http1::Builder::new().timer(MiniTimer).serve_connection(MiniIo::new(stream), service_fn(hello)).await
}

async fn proxy(mut a: TcpStream, mut b: TcpStream) -> io::Result<()> {
    b.set_nodelay(true)?;
    mini::io::copy_bidirectional(&mut a, &mut b).await?;
    Ok(())
}
