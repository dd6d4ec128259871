//! The styles `raw` and `busy`: the same commands in a loop of their own, without mini.
//!
//! `raw` is a loop around epoll(7) or kqueue(2): the least that a server on one thread costs, to hold the others
//! against. Each client is a state in a table, which is what a task is elsewhere; whatever a client waits for, the loop
//! has to remember. `busy` is the loop before that: it asks every client whether something has come, again and again.
//! It answers as fast, and keeps a processor busy while nobody says anything.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};

use mini::time::Instant;

use super::batch::Batch;
use super::commands;
use super::store::Store;
use super::watch::{Side, Watch};

/// The listener's number; clients have theirs from 1 on.
const LISTENER: u64 = 0;

/// Keys that are taken out at once.
const AT_ONCE: usize = 1000;

struct Client {
    stream: TcpStream,
    batch: Box<Batch>,
    /// It has not taken all replies, and is asked for nothing until then.
    is_full: bool,
}

/// Serves without end.
pub(crate) fn run(listener: TcpListener, is_busy: bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let watch = Watch::new()?;
    watch.add(&listener, LISTENER)?;
    let (mut clients, mut store, mut last) = (HashMap::new(), Store::default(), LISTENER);
    loop {
        let ready: Vec<u64> = match is_busy {
            true => clients.keys().copied().chain([LISTENER]).collect(),
            false => {
                let next = store.next_deadline(); // when the first key expires
                watch.wait(next.map(|at| at.saturating_duration_since(Instant::now())))?
            }
        };
        for number in ready {
            if number == LISTENER {
                while let Some(stream) = accept(&listener)? {
                    last += 1;
                    watch.add(&stream, last)?;
                    clients.insert(last, Client { stream, batch: Box::default(), is_full: false });
                }
            } else if let Some(client) = clients.get_mut(&number) {
                let was_full = client.is_full;
                // An error ends this connection, and its client sees it.
                match client.serve(&mut store) {
                    Ok(true) if client.is_full != was_full => {
                        watch.change(&client.stream, number, if client.is_full { Side::Write } else { Side::Read })?;
                    }
                    Ok(true) => {}
                    Ok(false) | Err(_) => drop(clients.remove(&number)), // which ends the watch, too
                }
            }
        }
        store.remove_due(AT_ONCE);
    }
}

/// The next client, if one waits.
fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                return Ok(Some(stream));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(error) => return Err(error),
        }
    }
}

impl Client {
    /// Reads what has come, runs it, and writes the replies, as far as the client takes them. `false` at the end.
    fn serve(&mut self, store: &mut Store) -> io::Result<bool> {
        loop {
            self.is_full = !self.batch.replies.try_write_to(&self.stream)?;
            if self.is_full {
                return Ok(true);
            }
            if self.batch.is_last || !self.read()? {
                return Ok(false);
            }
            let mut has_more = true;
            while has_more && !self.batch.is_last {
                let parsed = self.batch.requests.parse();
                commands::run(store, &mut self.batch);
                has_more = parsed.unwrap_or_else(|malformed| {
                    if !self.batch.is_last {
                        self.batch.replies.error(malformed);
                    }
                    self.batch.is_last = true;
                    false
                });
                self.batch.requests.finish();
            }
            if self.batch.replies.is_empty() {
                return Ok(true); // nothing has come, or only a part of a command
            }
        }
    }

    /// `false` if the client has closed.
    fn read(&mut self) -> io::Result<bool> {
        let room = match self.batch.requests.room() {
            Ok(room) => room,
            Err(malformed) => {
                self.batch.replies.error(malformed);
                self.batch.is_last = true;
                return Ok(true);
            }
        };
        match (&self.stream).read(room) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.batch.requests.filled(count);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }
}
