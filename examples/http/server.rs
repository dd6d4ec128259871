//! The server: accepts, and stops in order. Each connection is a task, in `connection`.
//!
//! Called by the program `http`, and by its tests with limits of their own.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_channel::Receiver;
use futures_lite::future::or;
use mini::net::{TcpListener, TcpStream, next_connection};
use mini::task::{JoinError, JoinSet};
use mini::time::{Duration, timeout};

mod connection;
mod files;
mod input;
mod request;
mod response;

use connection::Connection;

pub(crate) struct Server {
    /// The files below it are served.
    root: PathBuf,
    limits: Limits,
    /// How many requests were answered.
    requests: AtomicU64,
}

/// Closed to stop the server.
pub(crate) type Stop = Receiver<Infallible>;

/// What one client may take of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without the first byte of a request. Blank lines do not count.
    pub(crate) idle: Duration,
    /// For a head, from its first byte on.
    pub(crate) header: Duration,
    /// For a body.
    pub(crate) body: Duration,
    pub(crate) body_bytes: u64,
    /// To take 64 KiB of an answer.
    pub(crate) write: Duration,
    /// All clients together. More of them wait to be accepted.
    pub(crate) connections: usize,
    /// For the requests in flight when the server stops.
    pub(crate) grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            idle: seconds(60),
            header: seconds(10),
            body: seconds(30),
            body_bytes: 1 << 20,
            write: seconds(30),
            connections: 10_000,
            grace: seconds(10),
        }
    }
}

/// What the accepting task waits for.
enum Event {
    Accepted(io::Result<TcpStream>),
    Ended(Result<io::Result<()>, JoinError>),
    Stop,
}

impl Server {
    pub(crate) fn new(root: impl Into<PathBuf>, limits: Limits) -> Arc<Server> {
        Arc::new(Server { root: root.into(), limits, requests: AtomicU64::new(0) })
    }

    /// How many requests were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Serves until `stop` is closed, and then finishes what was begun. Returns how many connections the grace was too
    /// short for.
    pub(crate) async fn serve(self: &Arc<Server>, listener: TcpListener, stop: Stop) -> usize {
        let mut connections = JoinSet::new();
        let start = |stream| Connection::new(stream, self.clone()).run(stop.clone());
        loop {
            let is_full = connections.len() >= self.limits.connections;
            let stopped = async {
                let _ = stop.recv().await;
                Event::Stop
            };
            let ended = async {
                match connections.join_next().await {
                    Some(ended) => Event::Ended(ended),
                    None => pending().await,
                }
            };
            let accepted = async {
                match is_full {
                    true => pending().await,
                    false => Event::Accepted(next_connection(&listener).await.map(|(stream, _)| stream)),
                }
            };
            match or(stopped, or(ended, accepted)).await {
                Event::Accepted(Ok(stream)) => drop(connections.spawn(start(stream))),
                // No shortage, which would pass: no further client will come.
                Event::Accepted(Err(error)) => {
                    eprintln!("http: {error}");
                    break;
                }
                Event::Ended(Err(panicked)) => eprintln!("http: {panicked}"),
                Event::Ended(Ok(_)) => {} // its own client's fault, if anybody's
                Event::Stop => break,
            }
        }
        // Clients that have connected by now are answered.
        while let Ok((stream, _)) = listener.try_accept() {
            connections.spawn(start(stream));
        }
        drop(listener);
        let _ = timeout(self.limits.grace, async { while connections.join_next().await.is_some() {} }).await;
        connections.len()
    }
}
