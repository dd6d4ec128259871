//! The load client: one thread with an epoll loop, that sends, checks every echoed byte and takes the time.
//!
//! A stream of bytes that anybody can recompute ([`Pattern`]) goes out over each connection, cut into messages, with a
//! bounded number of bytes under way. With one message under way that is request and answer, and each answer's latency
//! is noted; with many it is a pipeline. No allocation per message, one clock reading per event.
//!
//! Called by the rows (`echo.rs`, `accept.rs`, `memory.rs`) on a thread that is pinned beside the server. A client with
//! a CPU of its own spins: a server that had to wake a halted CPU with each answer would pay for that wake.
//!
//! Rejected: a client on one of the runtimes. It would measure two runtimes at once.
//! Rejected: closing in the usual way. Thousands of ports would rest in `TIME_WAIT`; a reset leaves none.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::time::Timespec;

mod connection;
mod histogram;

use connection::{Connection, Pattern};
use histogram::Histogram;

/// How long a server may be silent while answers are due.
const PATIENCE: Duration = Duration::from_secs(10);

/// Events of a wait at most.
const EVENTS: usize = 1024;

/// How a client talks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of a message.
    message: u64,
    /// Bytes that may be under way on a connection, a multiple of `message`.
    window: u64,
    /// Never sleep. Only for a client that has a CPU of its own.
    spin: bool,
}

impl Shape {
    /// 64 bytes, and the next message when the echo is complete.
    pub(crate) fn echo(spin: bool) -> Self {
        Self { message: 64, window: 64, spin }
    }

    /// 512 bytes, 64 KiB under way, as many messages per write as there is room for.
    pub(crate) fn stream(spin: bool) -> Self {
        Self { message: 512, window: 64 * 1024, spin }
    }

    fn notes_latency(self) -> bool {
        self.message == self.window
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// After that many messages on each connection.
    Messages(u64),
    /// After that time; what is under way then still counts.
    For(Duration),
}

/// What came of a run.
pub(crate) struct Report {
    pub(crate) messages: u64,
    pub(crate) took: Duration,
    pub(crate) latency: Histogram,
}

impl Report {
    pub(crate) fn per_second(&self) -> f64 {
        self.messages as f64 / self.took.as_secs_f64()
    }
}

/// Connections to a server, ready to send.
pub(crate) struct Load {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    shape: Shape,
    pattern: Pattern,
    buf: Vec<u8>,
}

impl Load {
    /// Connects `count` times, one after the other.
    pub(crate) fn connect(port: u16, count: usize, shape: Shape) -> io::Result<Self> {
        Self::open(count, shape, || {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
    }

    /// Starts to connect `count` times at once; a [`run`](Self::run) sees how it ends.
    pub(crate) fn begin_connect(port: u16, count: usize, shape: Shape) -> io::Result<Self> {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self::open(count, shape, || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
            match connect(&socket, &server) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn open(count: usize, shape: Shape, mut dial: impl FnMut() -> io::Result<TcpStream>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for index in 0..count {
            let stream = dial()?;
            stream.set_nodelay(true)?;
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
            let wanted = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&epoll, &stream, EventData::new_u64(index as u64), wanted)?;
            connections.push(Connection::new(stream));
        }
        Ok(Self { epoll, connections, shape, pattern: Pattern::new(), buf: vec![0; Pattern::LONGEST] })
    }

    /// Lets the first `active` connections talk; returns when all of their echoes are back.
    ///
    /// # Errors
    ///
    /// If the server closes, falls silent or sends what was not sent to it.
    pub(crate) fn run(&mut self, active: usize, run: Run) -> io::Result<Report> {
        let start = Instant::now();
        let (messages, deadline) = match run {
            Run::Messages(count) => (count, None),
            Run::For(time) => (u64::MAX / self.shape.message / 2, Some(start + time)),
        };
        for connection in &mut self.connections[..active] {
            connection.begin(messages * self.shape.message);
            connection.send(self.shape.window, &self.pattern)?;
        }
        let mut tally = Tally { deadline, now: start, open: active, bytes: 0, latency: Histogram::new() };
        let mut events = Vec::with_capacity(EVENTS);
        while tally.open > 0 {
            self.wait(&mut events, tally.now)?;
            for event in events.drain(..) {
                self.answer(event.data.u64() as usize, &mut tally)?;
            }
        }
        Ok(Report { messages: tally.bytes / self.shape.message, took: start.elapsed(), latency: tally.latency })
    }

    /// Waits for events; `last` is when there was one.
    fn wait(&self, events: &mut Vec<epoll::Event>, last: Instant) -> io::Result<()> {
        let limit = Timespec { tv_sec: i64::from(!self.shape.spin), tv_nsec: 0 };
        loop {
            match epoll::wait(&self.epoll, spare_capacity(events), Some(&limit)) {
                Ok(0) if last.elapsed() > PATIENCE => return Err(io::ErrorKind::TimedOut.into()),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives what a connection has, and sends what it may.
    fn answer(&mut self, index: usize, tally: &mut Tally) -> io::Result<()> {
        let (connection, shape) = (&mut self.connections[index], self.shape);
        if !connection.is_open() {
            return Ok(());
        }
        let received = connection.receive(&mut self.buf, &self.pattern)?;
        tally.now = Instant::now();
        tally.bytes += received;
        if received > 0 && shape.notes_latency() && connection.is_answered() {
            tally.latency.add(tally.now - connection.sent_at);
        }
        if tally.deadline.is_some_and(|deadline| tally.now >= deadline) {
            connection.stop(shape.message);
        }
        if connection.is_done() {
            connection.end();
            tally.open -= 1;
        } else if connection.send(shape.window, &self.pattern)? {
            connection.sent_at = tally.now;
        }
        Ok(())
    }
}

/// How far a run has come.
struct Tally {
    deadline: Option<Instant>,
    /// The last reading of the clock.
    now: Instant,
    /// Connections that are not done.
    open: usize,
    /// Bytes that have come back.
    bytes: u64,
    latency: Histogram,
}
