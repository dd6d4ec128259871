//! `redis`: a counter counts each acknowledged `INCR` once, a value comes back whole, and nothing that a client has
//! sent to a server that has crashed reaches the next one.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream};
use mini::sim::current;
use mini::time::{sleep, timeout};

use crate::storm::{CLIENTS, SERVER, client, ms, storm, upto};
use server::Style;

#[allow(dead_code)]
#[path = "../../../examples/redis/server.rs"]
mod server;

/// A client that hears nothing for so long connects again.
const PATIENCE: Duration = Duration::from_secs(2);

async fn serve(style: Style) -> io::Result<()> {
    server::start(TcpListener::bind("0.0.0.0:6379").await?, style)?;
    std::future::pending().await
}

/// A connection, and what has come and was not taken.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    async fn new() -> io::Result<Self> {
        Ok(Self { stream: TcpStream::connect((SERVER, 6379)).await?, received: Vec::new() })
    }

    /// One command, and what its reply is: a line without its type, or a value; `None` for no value.
    async fn ask(&mut self, words: &[&[u8]]) -> io::Result<Option<Vec<u8>>> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).await?;
        let line = self.line().await?;
        match (line[0], &line[1..]) {
            (b'$', b"-1") => Ok(None),
            (b'$', length) => {
                let length = String::from_utf8_lossy(length).parse::<usize>().expect("a length");
                while self.received.len() < length + 2 {
                    self.receive().await?;
                }
                let value = self.received.drain(..length + 2).take(length).collect();
                Ok(Some(value))
            }
            (b'+' | b':', text) => Ok(Some(text.to_vec())),
            _ => panic!("the server said {}", String::from_utf8_lossy(&line)),
        }
    }

    async fn number(&mut self, words: &[&[u8]]) -> io::Result<u64> {
        let reply = self.ask(words).await?.unwrap_or_else(|| b"0".to_vec());
        Ok(String::from_utf8_lossy(&reply).parse().expect("a number"))
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.received.windows(2).position(|two| two == b"\r\n") {
                return Ok(self.received.drain(..end + 2).take(end).collect());
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> io::Result<()> {
        let mut buf = [0; 4096];
        match self.stream.read(&mut buf).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&buf[..count]);
                Ok(())
            }
        }
    }
}

/// What a client knows of its counter and its value.
struct Client {
    number: u32,
    /// How often the server was started, and when that server has last answered this client.
    starts: Rc<Cell<u32>>,
    start: u32,
    connection: Option<Connection>,
    /// Acknowledged, and sent, since that start.
    acknowledged: u64,
    sent: u64,
    successes: u32,
    failures: u32,
}

impl Client {
    fn new(number: u32, starts: Rc<Cell<u32>>) -> Self {
        let start = starts.get();
        Self { number, starts, start, connection: None, acknowledged: 0, sent: 0, successes: 0, failures: 0 }
    }

    /// Connects, and looks at what the server has of this client.
    async fn connect(&mut self) -> io::Result<()> {
        let before = self.starts.get();
        let mut connection = Connection::new().await?;
        let counted = connection.number(&[b"GET", client(self.number).as_bytes()]).await?;
        if self.starts.get() != before {
            return Err(ErrorKind::ConnectionReset.into()); // it was restarted in between: which server was it?
        }
        if before != self.start {
            assert_eq!(counted, 0, "this server has heard nothing from this client yet");
            (self.start, self.acknowledged, self.sent) = (before, 0, 0);
        }
        let known = self.acknowledged..=self.sent;
        assert!(known.contains(&counted), "{counted} is not in {known:?}");
        self.acknowledged = counted;
        self.connection = Some(connection);
        Ok(())
    }

    /// Counts once, and replaces the value.
    async fn round(&mut self, round: u32) -> io::Result<()> {
        if self.connection.is_none() {
            self.connect().await?;
        }
        let connection = self.connection.as_mut().expect("it was just made");
        self.sent += 1;
        let counted = connection.number(&[b"INCR", client(self.number).as_bytes()]).await?;
        assert!(counted > self.acknowledged && counted <= self.sent, "{counted} after {}", self.acknowledged);
        self.acknowledged = counted;
        let key = format!("value-{}", self.number);
        connection.ask(&[b"SET", key.as_bytes(), &value(round)]).await?;
        let found = connection.ask(&[b"GET", key.as_bytes()]).await?.expect("it was just set");
        // An earlier one may have come just now, by a connection that the client has given up.
        let earlier = (1..=round).rev().find(|&earlier| found == value(earlier));
        assert!(earlier.is_some(), "round {round} has found {} bytes that nobody has set", found.len());
        Ok(())
    }

    /// Until the faults are over, and then until it is answered.
    async fn run(mut self, are_over: Rc<Cell<bool>>) -> (u32, u32) {
        for round in 1..1000 {
            let is_last = are_over.get();
            match timeout(PATIENCE, self.round(round)).await {
                Ok(Ok(())) => {
                    self.successes += 1;
                    if is_last {
                        return (self.successes, self.failures);
                    }
                }
                _ => {
                    self.failures += 1;
                    self.connection = None;
                }
            }
            sleep(upto(400)).await;
        }
        panic!("nobody answers, though the faults are over");
    }
}

/// The value of a round: its number, so often that it fills one or several packets.
fn value(round: u32) -> Vec<u8> {
    round.to_be_bytes().repeat(if round % 10 == 3 { 5000 } else { round as usize })
}

async fn counters_are_right(style: Style) {
    let (sim, starts, are_over) = (current(), Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let counter = starts.clone();
    sim.host(SERVER, move || {
        counter.set(counter.get() + 1);
        serve(style)
    });
    sim.settle().await;
    let run = |number| sim.client(&client(number), Client::new(number, starts.clone()).run(are_over.clone()));
    let clients: Vec<_> = (0..CLIENTS).map(run).collect();
    storm().await;
    are_over.set(true);
    let (mut successes, mut failures) = (0, 0);
    for client in clients {
        let (good, bad) = client.await.unwrap();
        (successes, failures) = (successes + good, failures + bad);
    }
    assert!(successes > 3 * CLIENTS && failures > 0, "{successes} and {failures}");
}

#[mini::test(sim, seeds = 100)]
async fn counters_of_tasks_that_share_the_data_are_right() {
    counters_are_right(Style::Local).await;
}

#[mini::test(sim, seeds = 100)]
async fn counters_of_an_actor_are_right() {
    counters_are_right(Style::Actor).await;
}

#[mini::test(sim, seeds = 20)]
async fn keys_expire_in_virtual_time() {
    let sim = current();
    sim.host(SERVER, || serve(Style::Local));
    sim.settle().await;
    let mut connection = Connection::new().await.unwrap();
    connection.ask(&[b"SET", b"key", b"value", b"EX", b"1800"]).await.unwrap();
    sleep(Duration::from_secs(1799)).await;
    assert_eq!(connection.ask(&[b"GET", b"key"]).await.unwrap().unwrap(), b"value");
    sleep(ms(1000)).await;
    assert_eq!(connection.ask(&[b"GET", b"key"]).await.unwrap(), None);
    assert_eq!(connection.number(&[b"DBSIZE"]).await.unwrap(), 0);
}
