//! The servers on mini.

use std::io;
use std::net;
use std::sync::Mutex;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::service::TowerToHyperService;
use mini::hyper::{Executor, Timer};
use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Runtime};

use super::{Kind, Layout, Plan, obey_byte};
use crate::process::child::noted;
use crate::process::http::{app, hello};

pub(super) fn serve(plan: Plan, listener: net::TcpListener) -> io::Result<()> {
    if plan.kind == Kind::StallInMain {
        *LISTENER.lock().expect("nobody panics") = Some(listener);
        let _code = main(); // an error is printed
        return Ok(());
    }
    runtime(plan.layout)?.block_on(accept(plan.kind, listener))
}

/// The listener of [`main`], which takes no arguments.
static LISTENER: Mutex<Option<net::TcpListener>> = Mutex::new(None);

/// A program's `main`, as users write it.
#[mini::main(worker_threads = 2)]
async fn main() -> io::Result<()> {
    let listener = LISTENER.lock().expect("nobody panics").take();
    accept(Kind::Stall, listener.expect("it was put there")).await
}

fn runtime(layout: Layout) -> io::Result<Runtime> {
    match layout {
        Layout::One | Layout::PerCore => Builder::new_current_thread().on_task_error(|_| ()).build(),
        Layout::Shared => Builder::new_multi_thread().worker_threads(2).on_task_error(|_| ()).build(),
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
            Kind::Http => drop(mini::spawn(http(stream))),
            Kind::Http2 => drop(mini::spawn(http2(stream))),
            Kind::Axum => drop(mini::spawn(axum(stream, app.clone()))),
            Kind::Proxy => drop(mini::spawn(proxy(stream, listener.accept().await?.0))),
            Kind::Stall | Kind::StallInMain => drop(mini::spawn(stall(stream))),
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

async fn stall(stream: TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        obey_byte(byte[0]);
        stream.write_all(&byte).await?;
    }
    Ok(())
}

async fn http(stream: TcpStream) -> hyper::Result<()> {
    http1::Builder::new().timer(Timer::new()).serve_connection(stream, service_fn(hello)).await
}

async fn http2(stream: TcpStream) -> hyper::Result<()> {
    let mut http = http2::Builder::new(Executor::new());
    http.timer(Timer::new()).serve_connection(stream, service_fn(hello)).await
}

async fn axum(stream: TcpStream, app: Router) -> hyper::Result<()> {
    let service = TowerToHyperService::new(app);
    http1::Builder::new().timer(Timer::new()).serve_connection(stream, service).await
}

async fn proxy(mut a: TcpStream, mut b: TcpStream) -> io::Result<()> {
    b.set_nodelay(true)?;
    mini::io::copy_bidirectional(&mut a, &mut b).await?;
    Ok(())
}
