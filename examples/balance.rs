//! Ten clients whose every step waits: they sleep, connect, ask, connect and ask again, all at once in one thread.
//!
//! ```text
//! balance                       ten clients and their server, in one program that ends by itself
//! balance serve ADDRESS         only the server, until killed
//! balance ask ADDRESS           only the clients
//! ```
//!
//! Client i asks `user i` for a name and an account, and `account N` for its balance. A client whose number is a
//! multiple of five panics on purpose between the two, and an eleventh asks a server that does not exist: neither
//! affects the others.
//!
//! Beside it stand the same clients by threads (`balance/threads.rs`) and by callbacks (`balance/callbacks.rs`): read
//! the three functions `client`.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpListener as StdListener, TcpStream as StdStream};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use mini::net::{TcpListener, TcpStream};
use mini::runtime::Builder;
use mini::task::{self, JoinSet};
use mini::time::{Duration, sleep};
use mini_examples::{bad_usage, run_with_args};
use serde_json::Value;

#[path = "balance/callbacks.rs"]
mod callbacks;
#[path = "balance/threads.rs"]
mod threads;

/// What a server answers.
type Object = serde_json::Map<String, Value>;

const CLIENTS: u64 = 10;

/// The longest line that either side takes.
const LONGEST: usize = 1024;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: balance [serve ADDRESS | ask ADDRESS]";

fn main() -> ExitCode {
    run_with_args("balance", run)
}

/// What the program does with these arguments.
pub(crate) fn run(args: Vec<String>) -> io::Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = Builder::new_current_thread().build()?;
    match args[..] {
        [] => {
            let listener = StdListener::bind("127.0.0.1:0")?;
            let server = listener.local_addr()?;
            thread::spawn(move || serve(&listener));
            println!("tasks:");
            let by_tasks = runtime.block_on(ask_all(server.to_string()));
            runtime.block_on(refused())?;
            println!("threads:");
            let by_threads = threads::ask_all(server)?;
            println!("callbacks:");
            let by_callbacks = callbacks::ask_all(server)?;
            let expected = Ends { balances: 8, panics: 2, errors: 0 };
            assert_eq!([by_tasks, by_threads, by_callbacks], [expected; 3]);
            Ok(())
        }
        ["serve", address] => {
            let listener = StdListener::bind(address)?;
            println!("serving on {}", listener.local_addr()?);
            serve(&listener)
        }
        ["ask", address] => {
            runtime.block_on(ask_all(address.to_owned()));
            Ok(())
        }
        _ => Err(bad_usage(format_args!("what is {:?}?", args.join(" ")), USAGE)),
    }
}

/// How the clients have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) balances: usize,
    pub(crate) panics: usize,
    pub(crate) errors: usize,
}

impl Ends {
    /// Prints what a client has come to, and counts it.
    fn note(&mut self, end: io::Result<String>) {
        match end {
            Ok(line) => {
                println!("{line}");
                self.balances += 1;
            }
            Err(error) => {
                println!("error: {error}");
                self.errors += 1;
            }
        }
    }

    fn note_panic(&mut self, panicked: impl std::fmt::Display) {
        println!("error: {panicked}");
        self.panics += 1;
    }
}

/// Starts all clients, and waits for all of them.
pub(crate) async fn ask_all(server: String) -> Ends {
    let mut clients = JoinSet::new();
    for id in 1..=CLIENTS {
        let name = format!("client {id}");
        clients.insert(task::Builder::new().name(name).spawn(client(id, server.clone())));
    }
    let mut ends = Ends::default();
    while let Some(end) = clients.join_next().await {
        match end {
            Ok(end) => ends.note(end),
            Err(panicked) => ends.note_panic(panicked),
        }
    }
    ends
}

/// One client, from top to bottom. Each `await` lets the others run.
pub(crate) async fn client(id: u64, server: String) -> io::Result<String> {
    let random = RandomState::new().hash_one(id);
    sleep(Duration::from_millis(random % 1000)).await;
    let user = ask(&server, &format!("GET user {id}\n")).await?;
    assert!(!id.is_multiple_of(5), "{id} is a multiple of five");
    let account = ask(&server, &format!("GET account {}\n", field(&user, "account_id")?)).await?;
    balance_line(&user, &account)
}

fn balance_line(user: &Object, account: &Object) -> io::Result<String> {
    Ok(format!("User {} has {} USD", field(user, "name")?, field(account, "balance")?))
}

/// One question on a connection of its own. The answer is a JSON object on a line.
async fn ask(server: &str, question: &str) -> io::Result<Object> {
    let stream = TcpStream::connect(server).await.map_err(|e| io::Error::new(e.kind(), format!("{server}: {e}")))?;
    stream.write_all(question.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut part = [0; LONGEST];
    while !answer.ends_with(b"\n") && answer.len() <= LONGEST {
        match stream.read(&mut part).await? {
            0 => break,
            received => answer.extend_from_slice(&part[..received]),
        }
    }
    understood(&answer, question)
}

/// What a server has answered, if it is an object.
fn understood(answer: &[u8], question: &str) -> io::Result<Object> {
    let answer = answer.trim_ascii();
    if answer.is_empty() {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed without an answer"));
    }
    serde_json::from_slice(answer).map_err(|_| {
        let answer = String::from_utf8_lossy(answer);
        io::Error::other(format!("the server said {answer:?} to {:?}", question.trim_end()))
    })
}

/// The value of a field: a string without its quotes, anything else as it is in JSON.
fn field(object: &Object, name: &str) -> io::Result<String> {
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
        None => {
            let object = serde_json::to_string(object)?;
            Err(io::Error::new(ErrorKind::InvalidData, format!("no {name} in {object}")))
        }
    }
}

/// An address without a listener is an error like any other.
async fn refused() -> io::Result<()> {
    let nobody = TcpListener::bind("127.0.0.1:0").await?.local_addr()?; // the listener is gone at the semicolon
    let error = client(11, nobody.to_string()).await.expect_err("nobody is there");
    println!("error: client 11: {error}");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    Ok(())
}

/// The other side, in the old way: a thread for each connection.
pub(crate) fn serve(listener: &StdListener) -> io::Result<()> {
    serve_with(listener, PATIENCE)
}

/// As [`serve`], with another time limit for a question, and for the end of a connection.
pub(crate) fn serve_with(listener: &StdListener, patience: Duration) -> io::Result<()> {
    let mut is_told = false;
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => {
                is_told = false;
                accepted
            }
            // Files are closed when other clients have been answered.
            Err(error) if is_shortage(&error) => {
                if !mem::replace(&mut is_told, true) {
                    eprintln!("balance: accept: {error}");
                }
                thread::sleep(Duration::from_millis(100));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue, // this client is gone already
            Err(error) => return Err(error),
        };
        thread::spawn(move || {
            if let Err(error) = answer(&stream, patience) {
                eprintln!("balance: {peer}: {error}");
            }
        });
    }
}

/// Too many open files, or no memory for another connection.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Reads one line, and answers with one.
fn answer(stream: &StdStream, patience: Duration) -> io::Result<()> {
    let mut line = Vec::new();
    let limited = Limited { stream, deadline: Instant::now() + patience };
    BufReader::new(limited).take(LONGEST as u64 + 1).read_until(b'\n', &mut line)?;
    let answer = match line.strip_suffix(b"\n") {
        _ if line.len() > LONGEST => Err(format!("a line has {LONGEST} bytes at most")),
        None => Err("that is no line".to_owned()),
        Some(line) => reply(&String::from_utf8_lossy(line)),
    };
    let line = answer.unwrap_or_else(|error| format!("error: {error}"));
    let (mut writer, limited) = (stream, Limited { stream, deadline: Instant::now() + patience });
    writer.write_all(format!("{line}\n").as_bytes())?;
    // Closing while bytes arrive would destroy the answer on its way.
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut limited.take(1 << 20), &mut io::sink()).map(drop)
}

/// A stream that can be read until a deadline. A time limit of the socket's own counts anew from each byte.
struct Limited<'a> {
    stream: &'a StdStream,
    deadline: Instant,
}

impl Read for Limited<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the client takes too long"));
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buf)
    }
}

/// Makes users and accounts up as they are asked for.
fn reply(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [method, kind, id] = words[..] else { return Err(format!("{line:?} is not METHOD KIND ID")) };
    if method != "GET" {
        return Err(format!("{method:?} is not a method"));
    }
    let id: u64 = id.parse().map_err(|_| format!("{id:?} is not an id"))?;
    let account = id.wrapping_mul(7919) % 100_000;
    match kind {
        "user" => Ok(format!(r#"{{"id":{id},"name":"User{id}","account_id":{account}}}"#)),
        "account" => Ok(format!(r#"{{"id":{id},"balance":{}}}"#, id % 1000)),
        _ => Err(format!("{kind:?} is not a kind")),
    }
}
