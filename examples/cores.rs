//! One event loop per core: an echo server whose connections the kernel spreads over the cores.
//!
//! Each core has a listener of its own on the same port (`SO_REUSEPORT`), and keeps what it accepts: nothing is shared,
//! locked or handed over, so tasks count in plain cells. The clients are in this process too, on a thread of their own.
//!
//! ```text
//! cores [--cores N] [--connections N] [--messages N]
//! ```

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use async_channel::Receiver;
use futures_lite::future::or;
use mini::net::{TcpListener, TcpSocket, TcpStream, next_connection};
use mini::runtime::{Builder, PerCore};
use mini::task::JoinSet;
use mini_examples::{bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: cores [--cores N] [--connections N] [--messages N]";

/// No answer takes that long, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    run_with_args("cores", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let count = number_option(&mut args, "--cores", processors).map_err(bad)?;
    let connections = number_option(&mut args, "--connections", 200).map_err(bad)?;
    let messages = number_option(&mut args, "--messages", 100).map_err(bad)?;
    refuse_more(&args, USAGE)?;

    let cores = Builder::new_per_core().worker_threads(count as usize).pin_cores(true).build()?;
    let listeners = listen(&cores)?;
    let address = listeners[0].local_addr()?;
    println!("{count} cores listen on {address}: {connections} connections send {messages} messages each");

    let begin = Instant::now();
    let (running, over) = async_channel::bounded::<()>(1); // closed when the clients are done
    let (served, load) = thread::scope(|scope| {
        let clients = scope.spawn(move || {
            let _running = running;
            mini::block_on(load(address, connections, messages))
        });
        let served = cores.run(|index| serve(&listeners[index], &over));
        (served, clients.join())
    });
    load.map_err(|_| io::Error::other("the clients have panicked"))??;

    let mut all = (0, 0);
    for (index, core) in served?.into_iter().enumerate() {
        let (accepted, answered) = core?;
        println!("core {index:<2} served {accepted:>6} connections {answered:>9} messages");
        all = (all.0 + accepted, all.1 + answered);
    }
    assert_eq!(all, (connections, connections * messages));
    println!("all messages came back, in {:.2} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// A listener for each core, which belongs to its event loop; all on one port.
fn listen(cores: &PerCore) -> io::Result<Vec<TcpListener>> {
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let bind = |index| {
        let _inside = cores.handle(index).enter();
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        address = socket.local_addr()?;
        socket.listen(1024)
    };
    (0..cores.num_workers()).map(bind).collect()
}

/// What one core has done. Only its own tasks use it.
#[derive(Default)]
struct Served {
    connections: Cell<u64>,
    messages: Cell<u64>,
}

/// One core: serves what the kernel gives to its listener, until the clients are done. Returns the numbers of
/// connections and messages.
async fn serve(listener: &TcpListener, over: &Receiver<()>) -> io::Result<(u64, u64)> {
    let served = Rc::new(Served::default());
    let end = async {
        let _closed = over.recv().await;
        Ok(())
    };
    or(accept(listener, &served), end).await?;
    Ok((served.connections.get(), served.messages.get()))
}

/// Accepts for ever; each connection is a task that never leaves this core.
async fn accept(listener: &TcpListener, served: &Rc<Served>) -> io::Result<()> {
    loop {
        let (stream, _) = next_connection(listener).await?;
        served.connections.set(served.connections.get() + 1);
        drop(mini::spawn_local(echo(stream, served.clone())));
    }
}

/// Sends back all bytes, until the peer closes.
async fn echo(stream: TcpStream, served: Rc<Served>) {
    let mut message = [0; 8];
    while stream.read_exact(&mut message).await.is_ok() {
        served.messages.set(served.messages.get() + 1);
        if stream.write_all(&message).await.is_err() {
            break;
        }
    }
}

/// All clients at once.
async fn load(address: SocketAddr, connections: u64, messages: u64) -> io::Result<()> {
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        clients.spawn(async move { mini::time::timeout(PATIENCE, talk(address, messages)).await? });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// One client: numbered messages, each of which has to come back.
async fn talk(address: SocketAddr, messages: u64) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    for number in 0..messages {
        let mut answer = [0; 8];
        stream.write_all(&number.to_ne_bytes()).await?;
        stream.read_exact(&mut answer).await?;
        if answer != number.to_ne_bytes() {
            return Err(io::Error::other("another message came back than was sent"));
        }
    }
    Ok(())
}
