//! The limit: what a server costs that is nothing but a loop over epoll(7).
//!
//! Edge-triggered; accepts until no connection is left; reads once per event, and again only if that read filled the
//! buffer or the peer has hung up; writes at once, and waits for room only when there is none. A connection is an entry
//! in a table that its descriptor indexes. A worker is a thread with a loop and a listener of its own. Under HTTP/1 a
//! connection is the future of hyper, and the loop polls it (`http`).
//!
//! Rejected: skipping the write's error path. A limit that loses bytes is none.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};

use super::{Kind, Layout, Plan, unknown};

mod http;

/// Events of a wait at most.
const EVENTS: usize = 1024;

/// The event data of the listener; no descriptor has it.
const LISTENER: u64 = u64::MAX;

pub(super) fn serve(plan: Plan, listener: TcpListener) -> io::Result<()> {
    match plan.kind {
        _ if plan.layout == Layout::Shared => Err(unknown(plan)),
        Kind::Echo | Kind::Idle | Kind::Close => Server::<Echo>::new(plan.kind, listener)?.run(),
        Kind::Http | Kind::Axum => Server::<http::Http>::new(plan.kind, listener)?.run(),
        Kind::Http2 | Kind::Proxy | Kind::Stall | Kind::StallInMain => Err(unknown(plan)),
    }
}

/// A connection, and what is done with it.
trait Connection: Sized {
    /// The events it is registered for.
    const WANTED: EventFlags;

    fn new(socket: OwnedFd, kind: Kind) -> Self;

    /// Goes on until the socket is empty or full. An error is the end of the connection, and so is the peer's end.
    fn go_on(&mut self, epoll: &OwnedFd, buf: &mut [u8], hung_up: bool) -> Result<(), Errno>;
}

struct Server<C> {
    epoll: OwnedFd,
    listener: TcpListener,
    kind: Kind,
    /// By descriptor.
    connections: Vec<Option<C>>,
    buf: Vec<u8>,
}

impl<C: Connection> Server<C> {
    fn new(kind: Kind, listener: TcpListener) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, listener, kind, connections: Vec::new(), buf: vec![0; kind.buffer()] })
    }

    /// Returns only with an error.
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    fd => self.serve(fd as usize, event.flags),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(_) if self.kind == Kind::Close => continue,
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => return Err(error.into()),
            };
            sockopt::set_tcp_nodelay(&socket, true)?;
            let fd = socket.as_raw_fd() as usize;
            epoll::add(&self.epoll, &socket, EventData::new_u64(fd as u64), C::WANTED)?;
            if self.connections.len() <= fd {
                self.connections.resize_with(fd + 1, || None);
            }
            self.connections[fd] = Some(C::new(socket, self.kind));
        }
    }

    /// An event of a batch may belong to a connection that an earlier one has closed.
    fn serve(&mut self, fd: usize, flags: EventFlags) {
        let Some(connection) = self.connections[fd].as_mut() else { return };
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if connection.go_on(&self.epoll, &mut self.buf, hung_up).is_err() {
            self.connections[fd] = None;
        }
    }
}

/// Sends back what it reads.
struct Echo {
    socket: OwnedFd,
    /// What did not fit into the socket; nothing is read before it has gone out.
    unsent: Vec<u8>,
}

impl Connection for Echo {
    const WANTED: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

    fn new(socket: OwnedFd, _: Kind) -> Self {
        Self { socket, unsent: Vec::new() }
    }

    fn go_on(&mut self, epoll: &OwnedFd, buf: &mut [u8], hung_up: bool) -> Result<(), Errno> {
        if !self.unsent.is_empty() {
            let sent = send_some(&self.socket, &self.unsent)?;
            self.unsent.drain(..sent);
        }
        while self.unsent.is_empty() {
            let length = match recv(&self.socket, &mut *buf, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Errno::PIPE),
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let sent = send_some(&self.socket, &buf[..length])?;
            if sent < length {
                self.unsent.extend_from_slice(&buf[sent..length]);
                let data = EventData::new_u64(self.socket.as_raw_fd() as u64);
                epoll::modify(epoll, &self.socket, data, Self::WANTED | EventFlags::OUT)?;
            } else if length < buf.len() && !hung_up {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Sends from the front of `bytes`; returns how many went out, which is none if there is no room.
fn send_some(socket: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match send(&socket, bytes, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            done => return done,
        }
    }
}
