//! A program that lives an ordinary life and in which something hangs, to look at in a browser.
//!
//! `cargo run -p mini-console --example hang -- [ADDRESS]`, then open what it prints.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, next_connection};
use mini::runtime::Handle;
use mini::sync::{Mutex, mpsc, oneshot};
use mini::task::Builder;
use mini::time::sleep;
use mini_console::Console;

#[mini::main(worker_threads = 4)]
async fn main() -> io::Result<()> {
    let addr = std::env::args().nth(1);
    run(addr.as_deref().unwrap_or("127.0.0.1:7669")).await
}

/// The program, with its page at `addr`. The tests of the page run it too.
pub(crate) async fn run(addr: &str) -> io::Result<()> {
    let lines = concat!("vscode://file", env!("CARGO_MANIFEST_DIR"), "/../../{file}:{line}:{column}");
    let console = Console::of(&Handle::current()).source_links(lines).serve(addr)?;
    println!("open http://{}/ in a browser; Ctrl-C ends the program", console.local_addr());
    live().await?;
    hang();
    mini::signal::ctrl_c().await?;
    std::process::exit(0) // a runtime waits for its tasks to leave their polls
}

/// Clients that ask a server now and then, and what a server counts.
async fn live() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let (counts, mut counted) = mpsc::channel(64);
    Builder::new().name("accept").spawn(async move {
        while let Ok((stream, _)) = next_connection(&listener).await {
            mini::spawn(echo(stream, counts.clone()));
        }
    });
    Builder::new().name("count").spawn(async move {
        let mut sum = 0;
        while let Some(bytes) = counted.recv().await {
            sum += bytes;
        }
        sum
    });
    for client in 0..40 {
        mini::spawn(ask(addr, Duration::from_millis(20 + 10 * client)));
    }
    Ok(())
}

async fn echo(stream: TcpStream, counts: mpsc::Sender<usize>) -> io::Result<()> {
    let mut buf = [0; 64];
    loop {
        let read = stream.read(&mut buf).await?;
        if read == 0 || counts.send(read).await.is_err() {
            return Ok(());
        }
        stream.write_all(&buf[..read]).await?;
    }
}

async fn ask(addr: std::net::SocketAddr, pause: Duration) -> io::Result<()> {
    let stream = TcpStream::connect(addr).await?;
    loop {
        stream.write_all(b"ping").await?;
        stream.read_exact(&mut [0; 4]).await?;
        sleep(pause).await;
    }
}

/// Two locks that are taken in both orders, a task that drops its waker, and a task that blocks its worker.
fn hang() {
    let (one, other) = (Arc::new(Mutex::new(100)), Arc::new(Mutex::new(100)));
    let (first, second) = (oneshot::channel(), oneshot::channel());
    let there = transfer(one.clone(), other.clone(), first.0, second.1);
    let there = Builder::new().name("transfer there").spawn(there);
    let back = Builder::new().name("transfer back").spawn(transfer(other, one, second.0, first.1));
    Builder::new().name("audit").spawn(async move {
        let _ = there.await;
    });
    Builder::new().name("<b>report</b> & \"quotes\"").spawn(async move {
        let _ = back.await;
    });
    Builder::new().name("forgotten").spawn(pending::<()>());
    Builder::new().name("resize").spawn(async {
        sleep(Duration::from_millis(500)).await;
        thread::sleep(Duration::from_secs(3600)); // in a task, where it does not belong
    });
    for _ in 0..3 {
        drop(mini::spawn_blocking(|| thread::sleep(Duration::from_secs(3600)))); // jobs that do not end
    }
}

async fn transfer(
    from: Arc<Mutex<u32>>,
    to: Arc<Mutex<u32>>,
    locked: oneshot::Sender<()>,
    others: oneshot::Receiver<()>,
) {
    let mut from = from.lock().await;
    let _ = locked.send(());
    let _ = others.await; // now either task has one lock
    let mut to = to.lock().await;
    *from -= 1;
    *to += 1;
}
