//! `Server`: accepts connections, and makes an event a second while a client listens.
//!
//! It runs on one thread, in a runtime of its own, so it does not depend on the watched runtime. A second thread makes
//! the dumps: a dump of very many tasks takes time, and the page is served during it.
//!
//! All clients receive the same event. A slow client keeps the event that is being sent to it, and continues with the
//! newest: so the number of events in memory is at most the number of clients.
//!
//! Rejected: a task in the watched runtime (it would hang together with that runtime). A dump for each client.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, next_connection};
use mini::runtime::Runtime;
use mini::sync::{Notify, Semaphore, oneshot, watch};

use crate::Builder;
use crate::connection::{self, Connection};
use crate::event::event;

/// So many clients may be connected.
pub(crate) const CLIENTS: usize = 16;

/// From one event to the next.
const PERIOD: Duration = Duration::from_secs(1);

/// To make an event takes a part of the time that is not larger than one of so many.
const SHARE: u32 = 20;

/// The last event; none before somebody listens.
pub(crate) type Event = Option<Arc<str>>;

pub(crate) struct Server {
    runtime: Runtime,
    listener: std::net::TcpListener,
    settings: Builder,
}

/// What the connections of a server share.
pub(crate) struct Site {
    pub(crate) events: watch::Sender<Event>,
    /// Somebody listens to the events.
    pub(crate) listened: Notify,
    /// A trace takes much memory until it is sent: there is one at a time.
    pub(crate) traces: Semaphore,
    pub(crate) settings: Builder,
}

impl Server {
    pub(crate) fn new(listener: std::net::TcpListener, settings: Builder) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let mut builder = mini::runtime::Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(2).thread_name("mini-console-dump").build()?;
        Ok(Self { runtime, listener, settings })
    }

    /// Serves until `stopped` is told, or its sender is gone.
    pub(crate) fn run(self, stopped: oneshot::Receiver<()>) {
        let Self { runtime, listener, settings } = self;
        let events = watch::Sender::new(None);
        let (listened, traces) = (Notify::new(), Semaphore::new(1));
        let site = Rc::new(Site { events, listened, traces, settings });
        let result = runtime.block_on(async {
            mini::race! {
                result = accept(listener, &site) => result,
                result = make_events(&site) => result,
                _ = stopped => Ok(()),
            }
        });
        if let Err(error) = result {
            eprintln!("mini-console: the page is no longer served: {error}");
        }
    }
}

/// Serves each connection in a task of its own.
async fn accept(listener: std::net::TcpListener, site: &Rc<Site>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let (stream, _) = next_connection(&listener).await?;
        let Ok(place) = places.clone().try_acquire_owned() else {
            connection::refuse(&stream, CLIENTS);
            continue;
        };
        let site = site.clone();
        mini::spawn_local(async move {
            Connection::new(&stream, &site).serve().await;
            drop(place);
        });
    }
}

impl Site {
    pub(crate) async fn new_event(&self) -> io::Result<Arc<str>> {
        let settings = self.settings.clone();
        let text = mini::spawn_blocking(move || event(&settings.watched, settings.source_links.as_deref())).await;
        Ok(text.map_err(io::Error::other)?.into())
    }
}

async fn make_events(site: &Site) -> io::Result<()> {
    loop {
        while site.events.receiver_count() == 0 {
            site.events.send_replace(None); // it is old when somebody comes
            site.listened.notified().await;
        }
        let begin = Instant::now();
        site.events.send_replace(Some(site.new_event().await?));
        mini::time::sleep(PERIOD.max(begin.elapsed() * SHARE)).await;
    }
}
