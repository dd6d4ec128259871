//! A web server, as it grows: one client after the other; a thread for each; a loop; a loop with threads for files.
//!
//! All four answer each request with a file whose disk takes a millisecond. The same twenty clients ask each of them,
//! first by themselves, and then beside a client that sends half a request and no more.
//!
//! ```text
//! http_steps [--milliseconds N] [--disk MICROSECONDS]         all four, and a listen queue that is full
//! http_steps --ask ADDRESS [--milliseconds N]                 the same clients, at another server
//! http_steps --serve STEP --port N [--disk MICROSECONDS]      one of them, 1 to 4, until it is killed
//! ```
//!
//! `examples/compare.sh http_steps` measures them beside nginx and Apache.
//!
//! - *one after the other*: the disk's millisecond is everybody's, and one slow client stops the server.
//! - *a thread for each*: nobody waits for anybody. Each connection costs a stack, and each request a new thread.
//! - *a loop*: a slow client costs nothing. But the file is read in the loop, so the disk's millisecond is everybody's
//!   again.
//! - *a loop, and threads for files*: four threads read, and the loop goes on.
//!
//! [`http`](http.rs) is the last of them, complete. At the end stands what clients see of a listen queue that is full.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mini::runtime::Builder;
use mini::task::JoinSet;
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, resident_memory, run_with_args, text_option};

const USAGE: &str =
    "usage: http_steps [--milliseconds N] [--disk MICROSECONDS] [--ask ADDRESS | --serve STEP --port N]";

const CLIENTS: usize = 20;

/// Threads for files.
const READERS: usize = 4;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(200);

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Serves without end.
type Serve = fn(TcpListener, Arc<File>) -> io::Result<()>;

const STEPS: [(&str, Serve); 4] = [
    ("one after the other", one_after_the_other),
    ("a thread for each", thread_for_each),
    ("a loop", |listener, file| in_a_loop(listener, file, false)),
    ("a loop, and threads for files", |listener, file| in_a_loop(listener, file, true)),
];

fn main() -> ExitCode {
    run_with_args("http_steps", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let span = Duration::from_millis(number_option(&mut args, "--milliseconds", 500).map_err(bad)?);
    let disk = text_option(&mut args, "--disk").map_err(bad)?.unwrap_or("1000".to_owned());
    let step = number_option(&mut args, "--serve", 0).map_err(bad)? as usize;
    let port = number_option(&mut args, "--port", 0).map_err(bad)?;
    let server = text_option(&mut args, "--ask").map_err(bad)?;
    refuse_more(&args, USAGE)?;
    let disk = disk.parse().map_err(|_| bad(format!("--disk takes microseconds, not {disk:?}")))?;
    let port = u16::try_from(port).map_err(|_| bad(format!("--port is 0 to 65535, not {port}")))?;
    if step > STEPS.len() {
        return Err(bad(format!("--serve is 1 to {}, not {step}", STEPS.len())));
    }

    if let Some(server) = server {
        let address =
            server.parse().map_err(|_| bad(format!("--ask takes an address such as 127.0.0.1:80, not {server}")))?;
        return print_asked(&server, address, span);
    }
    let scratch = Scratch::new()?;
    let file = Arc::new(File { path: scratch.0.clone(), disk: Duration::from_micros(disk) });
    if step > 0 {
        let (name, serve) = STEPS[step - 1];
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        println!("http_steps: {name}, on {}", listener.local_addr()?);
        thread::spawn(move || serve(listener, file));
        return mini::block_on(mini::signal::termination()).map(drop);
    }
    println!(
        "{CLIENTS} clients; {:<18} {:>10} {:>9} {:>8} {:>8}   beside a slow client",
        "", "answers/s", "p99", "threads", "memory"
    );
    for (name, serve) in STEPS {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, file) = (listener.local_addr()?, file.clone());
        // It ends with the program.
        thread::spawn(move || serve(listener, file).inspect_err(|error| eprintln!("http_steps: {name}: {error}")));
        print_asked(name, address, span)?;
    }
    mini::block_on(full_queue())
}

/// Asks a server, alone and beside a slow client, and prints what the clients saw. Threads and memory are those that
/// this process has more than before.
fn print_asked(name: &str, server: SocketAddr, span: Duration) -> io::Result<()> {
    let (threads_before, memory_before) = (threads(), resident_memory().unwrap_or(0));
    let Asked { rate, latencies, threads, memory } = ask(server, span)?;
    let mut slow = TcpStream::connect(server)?;
    slow.write_all(&REQUEST[..20])?;
    let beside = ask(server, span)?;
    let p99 = latencies.quantile(0.99).as_secs_f64() * 1000.0;
    let threads = threads.saturating_sub(threads_before);
    let memory = memory.saturating_sub(memory_before) / 1024;
    println!("{name:<30} {rate:>10.0} {p99:>6.1} ms {threads:>8} {memory:>5} kB   {:>10.0} answers/s", beside.rate);
    Ok(())
}

/// Nobody accepts. The kernel makes connections all the same, as many as the listener's queue takes; more clients hear
/// nothing at all, and their kernel asks again after 1, 3, 7 s (listen(2), tcp(7)).
async fn full_queue() -> io::Result<()> {
    let socket = mini::net::TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let listener = socket.listen(1)?;
    let address = listener.local_addr()?;
    let (mut connected, mut refused, mut unanswered) = (Vec::new(), 0, 0);
    for _ in 0..5 {
        match mini::time::timeout(PATIENCE, mini::net::TcpStream::connect(address)).await {
            Ok(Ok(stream)) => connected.push(stream),
            Ok(Err(_)) => refused += 1,
            Err(_) => unanswered += 1,
        }
    }
    println!(
        "a listen queue of 1, and no accept: {} clients are connected, {refused} refused, {unanswered} not answered",
        connected.len()
    );
    Ok(())
}

/// The file that all servers answer with.
struct File {
    path: PathBuf,
    /// What the disk takes, besides what the system takes to read the file from memory.
    disk: Duration,
}

/// A file that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("mini-http-steps-{}", std::process::id()));
        fs::write(&path, vec![b'x'; 4096])?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl File {
    fn read(&self) -> io::Result<Vec<u8>> {
        if !self.disk.is_zero() {
            thread::sleep(self.disk);
        }
        fs::read(&self.path)
    }
}

fn head(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").into_bytes()
}

/// A request from its first byte to its answer. It blocks the thread.
fn answer(mut stream: TcpStream, file: &File) -> io::Result<()> {
    let (mut request, mut buf) = (Vec::new(), [0; 1024]);
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buf)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&buf[..count]),
        }
    }
    let body = file.read()?;
    stream.write_all(&[head(body.len()), body].concat())
}

fn one_after_the_other(listener: TcpListener, file: Arc<File>) -> io::Result<()> {
    loop {
        let _ = answer(listener.accept()?.0, &file); // an error is this client's
    }
}

fn thread_for_each(listener: TcpListener, file: Arc<File>) -> io::Result<()> {
    loop {
        let (stream, file) = (listener.accept()?.0, file.clone());
        thread::Builder::new().spawn(move || answer(stream, &file))?;
    }
}

fn in_a_loop(listener: TcpListener, file: Arc<File>, has_readers: bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    Builder::new_current_thread().max_blocking_threads(READERS).build()?.block_on(async {
        let listener = mini::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = mini::net::next_connection(&listener).await?;
            let file = file.clone();
            mini::spawn_local(async move {
                let _ = answer_in_a_task(stream, file, has_readers).await; // an error is this client's
            });
        }
    })
}

/// The same as [`answer`]: each `await` lets the other clients go on.
async fn answer_in_a_task(stream: mini::net::TcpStream, file: Arc<File>, has_readers: bool) -> io::Result<()> {
    let (mut request, mut buf) = (Vec::new(), [0; 1024]);
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            count => request.extend_from_slice(&buf[..count]),
        }
    }
    let body = match has_readers {
        true => mini::spawn_blocking(move || file.read()).await??,
        false => file.read()?,
    };
    stream.write_all(&[head(body.len()), body].concat()).await
}

/// What the clients saw.
#[derive(Default)]
struct Asked {
    rate: f64,
    latencies: Latencies,
    /// Of this process, in the middle.
    threads: usize,
    memory: u64,
}

/// The clients, each of which asks again when it has its answer, or has waited long enough.
fn ask(address: SocketAddr, span: Duration) -> io::Result<Asked> {
    Builder::new_current_thread().build()?.block_on(async {
        let (begin, mut clients) = (Instant::now(), JoinSet::new());
        for _ in 0..CLIENTS {
            clients.spawn(async move {
                let mut latencies = Vec::new();
                while begin.elapsed() < span {
                    let asked = Instant::now();
                    if let Ok(Ok(())) = mini::time::timeout(PATIENCE, get(address)).await {
                        latencies.push(asked.elapsed());
                    }
                }
                latencies
            });
        }
        mini::time::sleep(span / 2).await;
        let memory = resident_memory().unwrap_or(0);
        let mut asked = Asked { threads: threads(), memory, ..Asked::default() };
        let mut answers = 0;
        while let Some(client) = clients.join_next().await {
            for latency in client? {
                asked.latencies.record(latency);
                answers += 1;
            }
        }
        asked.rate = f64::from(answers) / begin.elapsed().as_secs_f64();
        Ok(asked)
    })
}

async fn get(address: SocketAddr) -> io::Result<()> {
    let stream = mini::net::TcpStream::connect(address).await?;
    stream.write_all(REQUEST).await?;
    let (mut length, mut buf) = (0, [0; 8192]);
    while let count @ 1.. = stream.read(&mut buf).await? {
        length += count;
    }
    if length > 4096 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// How many threads this process has, where the system tells.
fn threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
