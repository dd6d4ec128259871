//! The servers on monoio, on its epoll driver and on its io_uring driver. It has one worker per runtime.

use std::io;
use std::net;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use monoio::{IoUringDriver, LegacyDriver, RuntimeBuilder};

use super::{Kind, Layout, Plan, unknown};
use crate::process::child::noted;

pub(super) fn serve_on_epoll(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    check(plan)?;
    RuntimeBuilder::<LegacyDriver>::new().build()?.block_on(accept(plan.kind, listener))
}

pub(super) fn serve_on_uring(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    check(plan)?;
    listener.set_nonblocking(false)?; // else the ring answers EAGAIN instead of waiting
    RuntimeBuilder::<IoUringDriver>::new().build()?.block_on(accept(plan.kind, listener))
}

fn check(plan: Plan) -> io::Result<()> {
    if matches!(plan.kind, Kind::Http | Kind::Proxy) || plan.layout == Layout::Shared {
        Err(unknown(plan))
    } else {
        Ok(())
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
        drop(monoio::spawn(noted(echo(stream, kind.buffer()))));
    }
}

async fn echo(mut stream: TcpStream, size: usize) -> io::Result<()> {
    let mut buf = vec![0; size];
    loop {
        let (read, filled) = stream.read(buf).await;
        if read? == 0 {
            return Ok(());
        }
        let (written, sent) = stream.write_all(filled).await;
        written?;
        buf = sent;
    }
}
