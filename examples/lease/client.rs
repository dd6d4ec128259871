//! `Client`: takes locks, through lost connections and restarts of the server.

use std::io;

use mini::net::TcpStream;
use mini::time::{Duration, Instant, sleep, timeout};

use super::server::lines::Lines;

/// How long an answer may take before the client asks again, over a new connection.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) struct Client {
    server: String,
    name: String,
    connection: Option<TcpStream>,
    requests: u64,
}

/// A lock that is held, as far as the client knows.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) lock: String,
    /// What the lock protects is told this number, and refuses those that are older than the newest.
    pub(crate) token: u64,
    /// Until then nobody else has it. Counted from before the request was sent, so that it is never too late.
    pub(crate) until: Instant,
}

impl Client {
    /// No two clients may have the same name.
    pub(crate) fn new(server: &str, name: &str) -> Self {
        Self { server: server.to_owned(), name: name.to_owned(), connection: None, requests: 0 }
    }

    /// Waits until the lock is held.
    pub(crate) async fn lock(&mut self, lock: &str, length: Duration) -> io::Result<Held> {
        if lock.is_empty() || lock.contains(char::is_whitespace) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{lock}` is no name of a lock")));
        }
        self.requests += 1;
        let request = format!("lock {lock} {}/{} {}", self.name, self.requests, length.as_millis());
        loop {
            let sent = Instant::now();
            let answer = self.ask(&request).await?;
            match answer.split(' ').collect::<Vec<_>>()[..] {
                ["held", token, left] => {
                    let left = Duration::from_millis(number(left)?);
                    return Ok(Held { lock: lock.to_owned(), token: number(token)?, until: sent + left });
                }
                ["busy", left] => sleep(Duration::from_millis(number(left)?.clamp(10, 1000))).await,
                _ => return Err(io::Error::other(answer)),
            }
        }
    }

    /// Holds it for longer; `false` if it is lost.
    pub(crate) async fn renew(&mut self, held: &mut Held) -> io::Result<bool> {
        let sent = Instant::now();
        let answer = self.ask(&format!("renew {} {}", held.lock, held.token)).await?;
        match answer.split(' ').collect::<Vec<_>>()[..] {
            ["held", _, left] => held.until = sent + Duration::from_millis(number(left)?),
            ["lost"] => return Ok(false),
            _ => return Err(io::Error::other(answer)),
        }
        Ok(true)
    }

    /// Gives it back. That it was lost meanwhile, or given back by a request before, is all the same.
    pub(crate) async fn unlock(&mut self, held: Held) -> io::Result<()> {
        let answer = self.ask(&format!("unlock {} {}", held.lock, held.token)).await?;
        if answer == "free" || answer == "lost" { Ok(()) } else { Err(io::Error::other(answer)) }
    }

    /// Asks until there is an answer.
    async fn ask(&mut self, request: &str) -> io::Result<String> {
        loop {
            match timeout(PATIENCE, self.try_ask(request)).await {
                Ok(Ok(answer)) => return Ok(answer),
                _ => {
                    self.connection = None; // an answer that comes now would be that to another question
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn try_ask(&mut self, request: &str) -> io::Result<String> {
        let stream = match self.connection.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&*self.server).await?,
        };
        stream.write_all(format!("{request}\n").as_bytes()).await?;
        let answer = Lines::new(&stream).next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.connection = Some(stream);
        if answer.starts_with("error") { Err(io::Error::other(answer)) } else { Ok(answer) }
    }
}

fn number(text: &str) -> io::Result<u64> {
    text.parse().map_err(io::Error::other)
}
