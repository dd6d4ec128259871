//! The server: accepts clients, and serves each by a task, in one of three styles, or in a loop of its own.
//!
//! Started by the program and by its tests.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, next_connection};

use actor::Actor;
use batch::BatchPool;
use connection::serve;
use local::LocalDatabase;
use vigil::Vigil;

mod actor;
mod batch;
mod commands;
mod connection;
mod local;
mod raw;
mod replies;
mod requests;
mod store;
mod vigil;
mod watch;

/// How long a silent client is left alone before it is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(300);

/// How the connections come to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A task owns it and is sent commands, on one thread.
    Actor,
    /// The same, on several workers.
    Workers,
    /// It is shared on one thread.
    Local,
    /// In a loop around epoll or kqueue, without mini, on a thread of its own.
    Raw,
    /// In a loop that never waits.
    Busy,
}

impl FromStr for Style {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "actor" => Ok(Style::Actor),
            "workers" => Ok(Style::Workers),
            "local" => Ok(Style::Local),
            "raw" => Ok(Style::Raw),
            "busy" => Ok(Style::Busy),
            _ => Err(format!("--style is actor, workers, local, raw or busy, not {name:?}")),
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Style::Actor => "actor",
            Style::Workers => "workers",
            Style::Local => "local",
            Style::Raw => "raw",
            Style::Busy => "busy",
        })
    }
}

/// Starts to serve the clients of `listener`, with an empty database, until the runtime ends.
///
/// # Panics
///
/// Outside of a task or `block_on`.
pub(crate) fn start(listener: TcpListener, style: Style) -> io::Result<()> {
    // Connections inherit both.
    listener.set_nodelay(true)?;
    listener.set_keepalive_time(KEEPALIVE)?;
    if matches!(style, Style::Raw | Style::Busy) {
        let listener = listener.into_std()?;
        thread::spawn(move || {
            raw::run(listener, style == Style::Busy).inspect_err(|error| eprintln!("redis: {error}"))
        });
        return Ok(());
    }
    let pool = Arc::new(BatchPool::default());
    match style {
        Style::Actor => {
            let (actor, vigil) = (Actor::start(), Vigil::start());
            mini::spawn_local(accept(listener, move |stream| {
                let vigil = vigil.clone();
                drop(mini::spawn_local(to_its_end(serve(stream, actor.connect(), pool.clone(), move || {
                    vigil.answered()
                }))));
            }));
        }
        Style::Workers => {
            let actor = Actor::start();
            drop(mini::spawn(accept(listener, move |stream| {
                drop(mini::spawn(to_its_end(serve(stream, actor.connect(), pool.clone(), || ()))));
            })));
        }
        Style::Local => {
            let (database, vigil) = (LocalDatabase::start(), Vigil::start());
            mini::spawn_local(accept(listener, move |stream| {
                let vigil = vigil.clone();
                let served = serve(stream, database.clone(), pool.clone(), move || vigil.answered());
                drop(mini::spawn_local(to_its_end(served)));
            }));
        }
        Style::Raw | Style::Busy => unreachable!("they are served by a thread"),
    }
    Ok(())
}

/// An error on a connection ends that connection, and its client sees it.
async fn to_its_end(served: impl Future<Output = io::Result<()>>) {
    let _ = served.await;
}

/// Accepts without end, and has each client served by a task.
async fn accept(listener: TcpListener, serve: impl Fn(TcpStream)) {
    loop {
        match next_connection(&listener).await {
            Ok((stream, _)) => serve(stream),
            // No shortage, which would pass: there will be no further clients.
            Err(error) => return eprintln!("redis: {error}"),
        }
    }
}
