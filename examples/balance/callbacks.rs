//! The same clients by callbacks, which is what `async` replaces: each step is a function that is called when the step
//! before is over.
//!
//! The loop has sixty lines. What the style costs is in [`client`] and [`request`]: the steps nest, or are scattered
//! over functions; each error is passed on by hand; no variable lives from one step to the next unless it is moved
//! there; and a panic comes to the loop, which does not know whose it was.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::{CLIENTS, Ends, LONGEST, Object, balance_line, field, understood};

type Callback = Box<dyn FnOnce(&mut Loop)>;

/// What is called, and when.
#[derive(Default)]
struct Loop {
    timers: BTreeMap<(Instant, u64), Callback>,
    waits: Vec<(Rc<TcpStream>, PollFlags, Callback)>,
    last_number: u64,
    ends: Ends,
}

impl Loop {
    fn after(&mut self, delay: Duration, callback: impl FnOnce(&mut Self) + 'static) {
        self.last_number += 1;
        self.timers.insert((Instant::now() + delay, self.last_number), Box::new(callback));
    }

    fn when(&mut self, stream: &Rc<TcpStream>, flags: PollFlags, callback: impl FnOnce(&mut Self) + 'static) {
        self.waits.push((stream.clone(), flags, Box::new(callback)));
    }

    /// Until nothing is left to be called.
    fn run(&mut self) -> io::Result<()> {
        while !self.timers.is_empty() || !self.waits.is_empty() {
            let due = self.timers.first_key_value().map(|((due, _), _)| due.saturating_duration_since(Instant::now()));
            let timeout = due.map(|due| Timespec::try_from(due).map_err(io::Error::other)).transpose()?;
            let mut fds: Vec<_> = self.waits.iter().map(|(stream, flags, _)| PollFd::new(&**stream, *flags)).collect();
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            for (is_ready, wait) in is_ready.into_iter().zip(mem::take(&mut self.waits)) {
                if is_ready { self.call(wait.2) } else { self.waits.push(wait) }
            }
            let now = Instant::now();
            while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
                let callback = first.remove();
                self.call(callback);
            }
        }
        Ok(())
    }

    fn call(&mut self, callback: Callback) {
        if catch_unwind(AssertUnwindSafe(|| callback(self))).is_err() {
            self.ends.note_panic("some client has panicked");
        }
    }
}

/// Starts all clients, and runs the loop.
pub(super) fn ask_all(server: SocketAddr) -> io::Result<Ends> {
    let mut events = Loop::default();
    for id in 1..=CLIENTS {
        client(&mut events, id, server, |events, end| events.ends.note(end));
    }
    events.run()?;
    Ok(events.ends)
}

fn client(events: &mut Loop, id: u64, server: SocketAddr, done: impl FnOnce(&mut Loop, io::Result<String>) + 'static) {
    let random = RandomState::new().hash_one(id);
    events.after(Duration::from_millis(random % 1000), move |events| {
        request(events, server, format!("GET user {id}\n"), move |events, user| {
            let (user, account) = match user.and_then(|user| field(&user, "account_id").map(|account| (user, account)))
            {
                Ok(both) => both,
                Err(error) => return done(events, Err(error)),
            };
            assert!(!id.is_multiple_of(5), "{id} is a multiple of five");
            request(events, server, format!("GET account {account}\n"), move |events, account| {
                done(events, account.and_then(|account| balance_line(&user, &account)))
            });
        });
    });
}

/// Connects, asks, and calls `then` with the answer.
fn request(
    events: &mut Loop,
    server: SocketAddr,
    question: String,
    then: impl FnOnce(&mut Loop, io::Result<Object>) + 'static,
) {
    let stream = match begin_to_connect(server) {
        Ok(stream) => Rc::new(stream),
        Err(error) => return then(events, Err(error)),
    };
    events.when(&stream.clone(), PollFlags::OUT, move |events| {
        let failed = stream.take_error().transpose();
        let sent = failed.map_or(Ok(()), |failed| Err(failed.unwrap_or_else(|error| error)));
        // A short line fits into the socket's buffer; a long one would need steps of its own.
        match sent.and_then(|()| (&*stream).write_all(question.as_bytes())) {
            Ok(()) => receive(events, stream, question, Vec::new(), then),
            Err(error) => then(events, Err(error)),
        }
    });
}

/// Reads to the end of a line: one step for each piece that comes.
fn receive(
    events: &mut Loop,
    stream: Rc<TcpStream>,
    question: String,
    mut answer: Vec<u8>,
    then: impl FnOnce(&mut Loop, io::Result<Object>) + 'static,
) {
    events.when(&stream.clone(), PollFlags::IN, move |events| {
        let mut part = [0; LONGEST];
        match (&*stream).read(&mut part) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => receive(events, stream, question, answer, then),
            Err(error) => then(events, Err(error)),
            Ok(received) => {
                answer.extend_from_slice(&part[..received]);
                match received == 0 || answer.ends_with(b"\n") || answer.len() > LONGEST {
                    true => then(events, understood(&answer, &question)),
                    false => receive(events, stream, question, answer, then),
                }
            }
        }
    });
}

fn begin_to_connect(server: SocketAddr) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &server) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}
