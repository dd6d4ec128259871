//! hyper on nothing but a loop over epoll(7): the most that a runtime under hyper could gain.
//!
//! A connection's future is polled once per event, and again only if it wakes itself. A read that does not fill its
//! buffer has emptied the socket. Without a timer there is no limit to how long a request may take, which costs the
//! runtimes one sleep per request.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::service::TowerToHyperService;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::{Connection, send_some};
use crate::process::http::{app, hello};
use crate::process::server::Kind;

/// As much as hyper reads at first.
const BUFFER: usize = 8192;

/// A connection of hyper.
pub(super) struct Http {
    future: Pin<Box<dyn Future<Output = hyper::Result<()>>>>,
    news: Rc<News>,
    again: Arc<Again>,
}

/// What the events have said of a socket since it was found empty.
#[derive(Default)]
struct News {
    may_read: Cell<bool>,
    hung_up: Cell<bool>,
}

/// The future has woken itself.
#[derive(Default)]
struct Again(AtomicBool);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl Connection for Http {
    const WANTED: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

    fn new(socket: OwnedFd, kind: Kind) -> Self {
        let news = Rc::new(News::default());
        let io = Io { socket, buf: vec![0; BUFFER], news: news.clone() };
        let http = http1::Builder::new();
        let future: Pin<Box<dyn Future<Output = _>>> = match kind {
            Kind::Axum => Box::pin(http.serve_connection(io, TowerToHyperService::new(app()))),
            _ => Box::pin(http.serve_connection(io, service_fn(hello))),
        };
        Self { future, news, again: Arc::default() }
    }

    fn go_on(&mut self, _: &OwnedFd, _: &mut [u8], hung_up: bool) -> Result<(), Errno> {
        self.news.may_read.set(true);
        self.news.hung_up.set(hung_up);
        let waker = Waker::from(self.again.clone());
        loop {
            if self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return Err(Errno::PIPE);
            }
            if !self.again.0.swap(false, Relaxed) {
                return Ok(());
            }
        }
    }
}

/// A socket as hyper wants it.
struct Io {
    socket: OwnedFd,
    buf: Vec<u8>,
    news: Rc<News>,
}

impl Read for Io {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let Self { socket, buf, news } = self.get_mut();
        if !news.may_read.get() {
            return Poll::Pending;
        }
        let room = into.remaining().min(buf.len());
        let length = loop {
            match recv(&*socket, &mut buf[..room], RecvFlags::empty()) {
                Ok((length, _)) => break length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    news.may_read.set(false);
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        };
        news.may_read.set(length == room || news.hung_up.get());
        into.put_slice(&buf[..length]);
        Poll::Ready(Ok(()))
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match send_some(&self.socket, bytes) {
            Ok(0) if !bytes.is_empty() => Poll::Pending,
            done => Poll::Ready(Ok(done?)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?))
    }
}
