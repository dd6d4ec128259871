//! The servers on smol: a `LocalExecutor`, or a static `Executor` with two threads, as smol's global one is laid out.

use std::io;
use std::net;
use std::thread;

use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::{Async, Executor, LocalExecutor, future};

use super::{Kind, Layout, Plan, obey_byte, unknown};
use crate::process::child::noted;

static SHARED: Executor<'static> = Executor::new();

pub(super) fn serve(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    if plan.kind == Kind::Http {
        return Err(unknown(plan));
    }
    if plan.kind == Kind::Proxy {
        let local = LocalExecutor::new();
        return smol::block_on(local.run(accept_pairs(listener, &local)));
    }
    match plan.layout {
        Layout::One | Layout::PerCore => {
            let local = LocalExecutor::new();
            let spawn = |stream| local.spawn(noted(echo(stream, plan.kind.buffer()))).detach();
            smol::block_on(local.run(accept(plan.kind, listener, spawn)))
        }
        Layout::Shared => {
            for _ in 0..2 {
                thread::spawn(|| smol::block_on(SHARED.run(future::pending::<()>())));
            }
            let spawn = |stream| match plan.kind {
                Kind::Stall | Kind::StallInMain => SHARED.spawn(stall(stream)).detach(),
                kind => SHARED.spawn(noted(echo(stream, kind.buffer()))).detach(),
            };
            smol::block_on(accept(plan.kind, listener, spawn))
        }
    }
}

async fn accept(kind: Kind, listener: net::TcpListener, spawn: impl Fn(Async<net::TcpStream>)) -> io::Result<()> {
    let listener = Async::try_from(listener)?;
    loop {
        let (stream, _) = Async::<net::TcpListener>::accept(&listener).await?;
        if kind == Kind::Close {
            continue;
        }
        stream.get_ref().set_nodelay(true)?;
        spawn(stream);
    }
}

async fn accept_pairs(listener: net::TcpListener, local: &LocalExecutor<'_>) -> io::Result<()> {
    let listener = Async::try_from(listener)?;
    loop {
        let (a, _) = Async::<net::TcpListener>::accept(&listener).await?;
        let (b, _) = Async::<net::TcpListener>::accept(&listener).await?;
        local.spawn(proxy(a, b)).detach();
    }
}

async fn proxy(a: Async<net::TcpStream>, b: Async<net::TcpStream>) -> io::Result<()> {
    a.get_ref().set_nodelay(true)?;
    b.get_ref().set_nodelay(true)?;
    future::try_zip(copy_to_end(&a, &b), copy_to_end(&b, &a)).await?;
    Ok(())
}

async fn copy_to_end(from: &Async<net::TcpStream>, to: &Async<net::TcpStream>) -> io::Result<()> {
    smol::io::copy(from, to).await?;
    to.get_ref().shutdown(net::Shutdown::Write)
}

async fn echo(mut stream: Async<net::TcpStream>, size: usize) -> io::Result<()> {
    let mut buf = vec![0; size];
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            length => stream.write_all(&buf[..length]).await?,
        }
    }
}

async fn stall(mut stream: Async<net::TcpStream>) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        obey_byte(byte[0]);
        stream.write_all(&byte).await?;
    }
    Ok(())
}
