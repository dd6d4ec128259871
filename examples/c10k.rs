//! Ten thousand connections on one thread, of which a hundred are busy: the others cost memory, and nothing else.
//!
//! The server is one `current_thread` runtime. Its clients are in a second process of the same program, which takes
//! orders from its standard input. The program prints what a message costs the server beside 100, 1,000 and all idle
//! connections, what an idle one takes of its memory, and what all of them take of its CPU time.
//!
//! ```text
//! c10k [--connections N] [--rounds N]
//! c10k load ADDRESS         the clients
//! ```
//!
//! Beside other runtimes the benches measure the same: the rows "idle TCP connection" and "beside N idle" of
//! `benches/RESULTS.md`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_lite::future::or;
use futures_lite::io::{AsyncBufReadExt, BufReader};
use mini::net::{TcpListener, TcpSocket, TcpStream, next_connection};
use mini::process::{Child, ChildStdout, Command};
use mini::runtime::Builder;
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, resident_memory, run_with_args};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const USAGE: &str = "usage: c10k [--connections N] [--rounds N]";

/// How many connections talk.
const BUSY: usize = 100;

/// Descriptors for other things than connections.
const SPARE: u64 = 64;

/// Connections from one address: each needs a port there.
const PER_ADDRESS: usize = 5_000;

fn main() -> ExitCode {
    run_with_args("c10k", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    if let [role, address] = &args[..]
        && role == "load"
    {
        return load(address.parse().map_err(|_| bad_usage(format_args!("what is {address}?"), USAGE))?);
    }
    let bad = |text| bad_usage(text, USAGE);
    let connections = number_option(&mut args, "--connections", 10_000).map_err(bad)?;
    let rounds = number_option(&mut args, "--rounds", 200).map_err(bad)?;
    refuse_more(&args, USAGE)?;
    if !(2_000..=1_000_000).contains(&connections) {
        return Err(bad("--connections has to be from 2000 to 1000000".into()));
    }
    allow_descriptors(connections + SPARE)?;
    Builder::new_current_thread().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        or(accept(&listener), measure(address, connections as usize, rounds)).await
    })
}

/// Raises the limit of open descriptors, as far as this process may.
fn allow_descriptors(count: u64) -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|limit| limit >= count) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum }).map_err(|error| {
        let limit = maximum.map_or("?".into(), |limit| limit.to_string());
        let advice = "raise it (ulimit -H -n), or ask for fewer --connections";
        let text = format!("{count} open descriptors are needed, and the limit is {limit}: {advice} ({error})");
        io::Error::new(error.kind(), text)
    })
}

/// Accepts for ever; each connection is a task.
async fn accept(listener: &TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = next_connection(listener).await?;
        drop(mini::spawn_local(serve(stream)));
    }
}

/// Sends back all bytes, until the peer closes. While it waits it has no buffer.
async fn serve(stream: TcpStream) -> io::Result<()> {
    loop {
        stream.readable().await?;
        match answer(&stream)? {
            None => return Ok(()),
            Some(rest) if rest.is_empty() => {}
            Some(rest) => Box::pin(stream.write_all(&rest)).await?, // rare: the peer doesn't read
        }
    }
}

/// Sends back what has arrived, with a buffer on the stack. Returns what could not be sent yet; `None` at the end.
fn answer(stream: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut buf = [0; 4096];
    let read = match stream.try_read(&mut buf) {
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        read => read?,
    };
    let sent = match stream.try_write(&buf[..read]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        sent => sent?,
    };
    Ok(Some(buf[sent..read].to_vec()))
}

/// Makes the clients work, and measures what that costs the server.
async fn measure(address: SocketAddr, connections: usize, rounds: u64) -> io::Result<()> {
    let mut clients = Clients::start(address)?;
    let mut memory = Vec::new();
    println!("{BUSY} connections are busy; of the server, on one thread:");
    for idle in [100, 1_000, connections - BUSY] {
        clients.order(&format!("connect {}", idle + BUSY)).await?;
        clients.order("talk 100 1").await?;
        memory.push((idle, resident_memory()));
        let before = cpu_time();
        let latencies = clients.order(&format!("talk {BUSY} {rounds}")).await?;
        let each = (cpu_time() - before).as_secs_f64() * 1e6 / (BUSY as u64 * rounds) as f64;
        println!("beside {idle:>7} idle ones   {each:>6.2} µs of CPU per message   ({latencies})");
    }
    if let [.., (some, Some(before)), (all, Some(after))] = memory[..] {
        let each = after.saturating_sub(before) / (all - some) as u64;
        println!("memory per idle connection   {each:>6} B");
    }

    let before = cpu_time();
    mini::time::sleep(Duration::from_secs(1)).await;
    let used = cpu_time() - before;
    println!("CPU in a second of silence   {:>6.1} ms", used.as_secs_f64() * 1000.0);
    assert!(used < Duration::from_millis(5), "no message arrives, and the server computes");

    clients.order(&format!("talk {connections} 1")).await?;
    println!("all {connections} still answer");
    Ok(())
}

/// Returns the CPU time that this process has used. On NetBSD that is zero: rustix has no name for the clock.
fn cpu_time() -> Duration {
    #[cfg(target_os = "netbsd")]
    return Duration::ZERO;
    #[cfg(not(target_os = "netbsd"))]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// The process of the clients, as the server sees it.
struct Clients {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Clients {
    fn start(address: SocketAddr) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["load", &address.to_string()]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = child.stdout.take().expect("a pipe was asked for");
        Ok(Self { child, answers: BufReader::new(answers) })
    }

    /// Gives an order, and returns the answer.
    async fn order(&mut self, order: &str) -> io::Result<String> {
        let stdin = self.child.stdin.as_ref().expect("a pipe was asked for");
        stdin.write_all(format!("{order}\n").as_bytes()).await?;
        let mut answer = String::new();
        match self.answers.read_line(&mut answer).await? {
            0 => Err(io::Error::other(format!("the clients have given up at {order:?}"))),
            _ => Ok(answer.trim_end().into()),
        }
    }
}

/// The process of the clients: does what it is told, line by line. Between two lines its runtime rests.
fn load(address: SocketAddr) -> io::Result<()> {
    let runtime = Builder::new_current_thread().build()?;
    let mut streams = Vec::new();
    for order in io::stdin().lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        let answer = match (words[0], number(1), number(2)) {
            ("connect", Some(count), None) => runtime.block_on(connect(&mut streams, address, count))?,
            ("talk", Some(busy), Some(rounds)) => runtime.block_on(talk(&streams[..busy], rounds))?,
            _ => return Err(bad_usage(format_args!("no such order: {order}"), USAGE)),
        };
        println!("{answer}");
    }
    Ok(())
}

/// Connects until there are `count` connections, from one address after the other.
async fn connect(streams: &mut Vec<Rc<TcpStream>>, address: SocketAddr, count: usize) -> io::Result<String> {
    allow_descriptors(count as u64 + SPARE)?;
    while streams.len() < count {
        let from = Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + (streams.len() / PER_ADDRESS) as u32);
        let socket = TcpSocket::new_v4()?;
        socket.set_linger(Some(Duration::ZERO))?; // so that thousands of ports don't stay occupied for a minute
        socket.bind((from, 0).into())?;
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(Rc::new(stream));
    }
    Ok("connected".into())
}

/// Makes each connection send its messages, and wait for each to come back.
async fn talk(streams: &[Rc<TcpStream>], rounds: usize) -> io::Result<String> {
    let talks: Vec<_> = streams.iter().map(|stream| mini::spawn_local(rounds_of(stream.clone(), rounds))).collect();
    let mut latencies = Latencies::default();
    for talk in talks {
        latencies.merge(&talk.await??);
    }
    let us = |share| latencies.quantile(share).as_nanos() / 1000;
    Ok(format!("p50 {} µs, p99 {} µs", us(0.5), us(0.99)))
}

async fn rounds_of(stream: Rc<TcpStream>, rounds: usize) -> io::Result<Latencies> {
    let mut latencies = Latencies::default();
    for number in 0..rounds {
        let begin = Instant::now();
        let mut answer = [0; 8];
        stream.write_all(&number.to_ne_bytes()).await?;
        stream.read_exact(&mut answer).await?;
        if answer != number.to_ne_bytes() {
            return Err(io::Error::other("another message came back than was sent"));
        }
        latencies.record(begin.elapsed());
    }
    Ok(latencies)
}
