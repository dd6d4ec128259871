//! The servers: one per peer, written as its user would write it, in a child process.
//!
//! All get the same listener (backlog, reuse), take a task per connection, no Nagle's delay, and a buffer on the heap,
//! because monoio reads into no other. [`main`] is called by [`child`](super::child()); the [`Plan`] is what a row asks
//! of a server.
//!
//! With one worker per runtime (`PerCore`) the threads, their CPUs and their listeners are made here, by hand, and are
//! the same for all.
//!
//! Rejected: one server over the trait of `rt.rs`. A server waits in `accept` and never ends, and each runtime has its
//! own way to say so.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::child;
use super::machine;
use crate::peer::Peer;

mod limit;
mod mini;
mod monoio;
mod smol;
mod tokio;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 4096;

/// How a server spreads over CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One worker on CPU 0.
    One,
    /// One runtime with two workers on CPUs 0 and 1.
    Shared,
    /// Two runtimes of one worker, each with a CPU and a listener (`SO_REUSEPORT`) of its own.
    PerCore,
}

impl Layout {
    const ALL: [Self; 3] = [Self::One, Self::Shared, Self::PerCore];

    /// As in the names of rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "1 worker",
            Self::Shared => "mt 2",
            Self::PerCore => "per core 2",
        }
    }

    pub(crate) fn server_cpus(self) -> &'static [usize] {
        if self == Self::One { &[0] } else { &[0, 1] }
    }

    pub(crate) fn client_cpus(self) -> &'static [usize] {
        if self == Self::One { &[1] } else { &[0, 1] }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        named(&Self::ALL, name)
    }

    fn listeners(self) -> usize {
        if self == Self::PerCore { 2 } else { 1 }
    }
}

/// What a server does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends back what it reads, 4 KiB at a time.
    Echo,
    /// The same with 1 KiB, for connections that wait.
    Idle,
    /// Closes it.
    Close,
    /// HTTP/1 with hyper.
    Http,
    /// HTTP/2 with hyper.
    Http2,
    /// HTTP/1 with axum, over hyper.
    Axum,
    /// Copies between it and the next connection, both ways.
    Proxy,
    /// Sends back one byte, after it has blocked its thread if the byte is [`BLOCK`].
    Stall,
    /// The same, under the attribute for a program's `main` where the runtime's own differs from `block_on`.
    StallInMain,
}

/// The byte by which a client makes its handler block the thread.
pub(crate) const BLOCK: u8 = b'b';

/// How long the handler blocks.
pub(crate) const BLOCKED: Duration = Duration::from_millis(300);

/// What a handler of [`Kind::Stall`] does with what it was sent.
fn obey_byte(byte: u8) {
    if byte == BLOCK {
        thread::sleep(BLOCKED);
    }
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Echo,
        Self::Idle,
        Self::Close,
        Self::Http,
        Self::Http2,
        Self::Axum,
        Self::Proxy,
        Self::Stall,
        Self::StallInMain,
    ];

    /// Bytes that a read of an echo server offers.
    pub(crate) fn buffer(self) -> usize {
        if self == Self::Idle { 1024 } else { 4096 }
    }
}

/// What a row asks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) peer: Peer,
    pub(crate) layout: Layout,
    pub(crate) kind: Kind,
}

impl Plan {
    /// The arguments for a child.
    pub(crate) fn to_args(self) -> [String; 3] {
        [self.peer.name().to_owned(), format!("{:?}", self.layout), format!("{:?}", self.kind)]
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut word = || args.next().ok_or("a server needs a peer, a layout and a kind");
        let (peer, layout, kind) = (word()?, word()?, word()?);
        Ok(Self { peer: Peer::parse(&peer)?, layout: Layout::parse(&layout)?, kind: named(&Kind::ALL, &kind)? })
    }
}

fn named<T: Copy + fmt::Debug>(all: &[T], name: &str) -> Result<T, String> {
    let found = all.iter().find(|one| format!("{one:?}") == name);
    found.copied().ok_or_else(|| format!("`{name}` is none of {all:?}"))
}

/// A child's life: says its port, then serves until the parent has gone.
pub(crate) fn main(args: impl Iterator<Item = String>) -> Result<(), String> {
    let plan = Plan::parse(args)?;
    let fail = |error: io::Error| format!("{plan:?}: {error}");
    machine::raise_descriptors();
    machine::pin(plan.layout.server_cpus()).map_err(fail)?;
    let (port, listeners) = open_listeners(plan.layout).map_err(fail)?;
    child::obey();
    child::say(&port.to_string());
    serve(plan, listeners).map_err(fail)
}

/// The port, and the listeners that share it.
fn open_listeners(layout: Layout) -> io::Result<(u16, Vec<TcpListener>)> {
    let first = open_listener(0)?;
    let port = first.local_addr()?.port();
    let more = (1..layout.listeners()).map(|_| open_listener(port));
    let listeners = std::iter::once(Ok(first)).chain(more).collect::<io::Result<_>>()?;
    Ok((port, listeners))
}

fn open_listener(port: u16) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Serves for ever; returns only with an error.
fn serve(plan: Plan, mut listeners: Vec<TcpListener>) -> io::Result<()> {
    let run = match plan.peer {
        Peer::Mini => mini::serve,
        Peer::Tokio => tokio::serve,
        Peer::Smol => smol::serve,
        Peer::Monoio => monoio::serve_on_epoll,
        Peer::MonoioUring => monoio::serve_on_uring,
        Peer::Limit => limit::serve,
    };
    if plan.layout != Layout::PerCore {
        return run(plan, listeners.swap_remove(0));
    }
    let (ended, first_end) = mpsc::channel();
    for (cpu, listener) in listeners.into_iter().enumerate() {
        let ended = ended.clone();
        thread::spawn(move || ended.send(machine::pin(&[cpu]).and_then(|()| run(plan, listener))));
    }
    first_end.recv().expect("`ended` lives as long as this function")
}

/// What a peer answers to a plan that it has no server for.
fn unknown(plan: Plan) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{} has no such server", plan.peer.name()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::process::load::{Load, Run, Shape};

    #[test]
    fn plans_survive_the_command_line() {
        let plan = Plan { peer: Peer::MonoioUring, layout: Layout::PerCore, kind: Kind::Close };
        assert_eq!(Plan::parse(plan.to_args().into_iter()), Ok(plan));
        assert!(Plan::parse(["mini", "Three", "Echo"].into_iter().map(String::from)).is_err());
    }

    /// The server threads stay until the process of the test ends.
    fn echoes(peer: Peer, layout: Layout) {
        let plan = Plan { peer, layout, kind: Kind::Echo };
        let (port, listeners) = open_listeners(layout).unwrap();
        thread::spawn(move || serve(plan, listeners));
        let mut load = Load::connect(port, 8, Shape::stream(false)).unwrap();
        let report = load.run(8, Run::Messages(100)).unwrap();
        assert_eq!(report.messages, 800, "{plan:?}");
        let report = load.run(4, Run::For(Duration::from_millis(1))).unwrap();
        assert!(report.messages > 0, "{plan:?}");
    }

    #[test]
    fn every_server_echoes() {
        for peer in [Peer::Mini, Peer::Tokio, Peer::Smol, Peer::Monoio, Peer::Limit] {
            echoes(peer, Layout::One);
        }
        for peer in [Peer::Mini, Peer::Tokio, Peer::Smol] {
            echoes(peer, Layout::Shared);
        }
    }
    /// Two requests, the second in two pieces.
    fn says_hello(peer: Peer, kind: Kind) {
        let plan = Plan { peer, layout: Layout::One, kind };
        let (port, listeners) = open_listeners(plan.layout).unwrap();
        thread::spawn(move || serve(plan, listeners));
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for pieces in [&["GET / HTTP/1.1\r\nHost: a\r\n\r\n"][..], &["GET / HTTP/1.1\r\n", "Host: a\r\n\r\n"]] {
            for piece in pieces {
                stream.write_all(piece.as_bytes()).unwrap();
            }
            let mut answer = Vec::new();
            while !answer.ends_with(b"Hello, world!") {
                let mut buf = [0; 512];
                let length = stream.read(&mut buf).unwrap();
                assert_ne!(length, 0, "{plan:?}: {}", String::from_utf8_lossy(&answer));
                answer.extend_from_slice(&buf[..length]);
            }
        }
    }

    #[test]
    fn every_server_says_hello() {
        for kind in [Kind::Http, Kind::Axum] {
            for peer in [Peer::Mini, Peer::Tokio, Peer::Limit] {
                says_hello(peer, kind);
            }
        }
    }
}
