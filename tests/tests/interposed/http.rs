//! `http`: each answer is a whole file or an error, also beside clients that misbehave, and the server ends in order.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_channel::Sender;
use mini::net::TcpListener;
use mini::sim::current;
use mini::time::{sleep, timeout};

use crate::storm::{CLIENTS, SERVER, storm, upto};
use client::{Client, MISDEEDS, misbehave};
use server::{Limits, Server};

#[allow(dead_code)]
#[path = "../../../examples/http/client.rs"]
mod client;
#[allow(dead_code)]
#[path = "../../../examples/http/server.rs"]
mod server;

/// The last one is more than what a client gets in one piece.
const FILES: [(&str, usize); 3] = [("small.txt", 20), ("page.html", 5000), ("big.bin", 100_000)];

const PATIENCE: Duration = Duration::from_secs(2);

/// The content of a file of that length: no two blocks of it are the same.
fn content(length: usize) -> Vec<u8> {
    (0..length / 20).map(|block| [(block as u32).to_be_bytes(); 5]).collect::<Vec<_>>().concat().concat()
}

/// The files of the server, gone when this is dropped.
struct Site(PathBuf);

impl Site {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(100_000); // names of one length, and none that was there before
        let name = format!("mini-sim-http-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the test ends a server, and what it said at its end: how many connections it has cut off.
#[derive(Clone, Default)]
struct Control {
    stop: Rc<RefCell<Option<Sender<Infallible>>>>,
    cut: Rc<Cell<Option<usize>>>,
}

async fn serve(root: PathBuf, control: Control) -> io::Result<()> {
    mini::fs::create_dir_all(&root).await?;
    for (name, length) in FILES {
        mini::fs::write(root.join(name), content(length)).await?;
    }
    let (stop, stopped) = async_channel::bounded(1);
    control.stop.replace(Some(stop));
    let listener = TcpListener::bind("0.0.0.0:80").await?;
    let cut = Server::new(root, Limits::default()).serve(listener, stopped).await;
    control.cut.set(Some(cut));
    Ok(())
}

/// Gets one file after the other, until the faults are over, and then until it gets one. Returns how many it got, and
/// how many not.
async fn browse(server: SocketAddr, are_over: Rc<Cell<bool>>) -> (u32, u32) {
    let (mut got, mut failed, mut connection) = (0, 0, None);
    for round in 0..1000 {
        let (is_last, (name, length)) = (are_over.get(), FILES[round % FILES.len()]);
        match timeout(PATIENCE, get(&mut connection, server, name)).await {
            Ok(Ok(body)) => {
                assert_eq!(body.len(), length, "{name}");
                assert!(body == content(length), "{name} has other bytes");
                got += 1;
                if is_last {
                    return (got, failed);
                }
            }
            Ok(Err(_)) | Err(_) => {
                failed += 1;
                connection = None;
            }
        }
        sleep(upto(400)).await;
    }
    panic!("nobody answers, though the faults are over");
}

async fn get(connection: &mut Option<Client>, server: SocketAddr, name: &str) -> io::Result<Vec<u8>> {
    if connection.is_none() {
        *connection = Some(Client::connect(server).await?);
    }
    let answer = connection.as_mut().expect("it was just made").get(&format!("/{name}")).await?;
    assert_eq!(answer.status, 200);
    Ok(answer.body)
}

#[mini::test(sim, seeds = 100)]
async fn answers_are_whole_files() {
    let (sim, site, control, are_over) = (current(), Site::new(), Control::default(), Rc::new(Cell::new(false)));
    let (root, given) = (site.0.clone(), control.clone());
    sim.host(SERVER, move || serve(root.clone(), given.clone()));
    let address = SocketAddr::new(sim.lookup(SERVER), 80);
    sleep(Duration::from_millis(100)).await; // it has written its files, and listens
    let client = |number| sim.client(&crate::storm::client(number), browse(address, are_over.clone()));
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let over = are_over.clone();
    let vandal = sim.client("vandal", async move {
        for way in (0..MISDEEDS).cycle() {
            if over.get() {
                break;
            }
            let _ = timeout(PATIENCE, misbehave(address, way, "/big.bin")).await;
            sleep(upto(500)).await;
        }
    });
    storm().await;
    are_over.set(true);
    let (mut got, mut failed) = (0, 0);
    for client in clients {
        let (good, bad) = client.await.unwrap();
        (got, failed) = (got + good, failed + bad);
    }
    assert!(got > 2 * CLIENTS && failed > 0, "{got} and {failed}");
    vandal.await.unwrap();
    drop(control.stop.take());
    sleep(2 * Limits::default().grace).await;
    assert_eq!(control.cut.get(), Some(0), "all connections have ended in order");
}
