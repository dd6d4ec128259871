//! Rows of QUIC: quinn, two endpoints of one runtime, 100 MB from the one to the other over the loopback.
//!
//! The same quinn, settings and transfer on mini and tokio; only the glue differs (`mini-quinn`, quinn's own). Both
//! ends are in one process, as both are the runtime's work; on two workers it may spread them. Called by
//! [`rows`](super::rows); [`main`] is the child. CPU time is the child's, encryption included, which is most of it.
//!
//! Rejected: a client beside the server on a runtime of its own. It would measure two runtimes at once.

use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, EndpointConfig, Runtime, ServerConfig};

use super::child::{self, Child};
use super::server::Layout;
use super::{ProcessRow, ROUNDS, machine};
use crate::measured::{Figure, Group, Unit};
use crate::options::Options;
use crate::peer::Peer;

/// Bytes of a transfer.
const TOTAL: u64 = 100_000_000;

/// The same where a smoke run asks.
const QUICK: u64 = 4_000_000;

/// Bytes of a write.
const BLOCK: usize = 64 << 10;

type Failure = Box<dyn Error + Send + Sync>;

pub(super) fn rows() -> [ProcessRow; 2] {
    [Layout::One, Layout::Shared].map(|layout| ProcessRow {
        group: Group::Sockets,
        name: format!("QUIC stream of 100 MB, {}", layout.name()),
        figures: vec![Figure::higher("MB for CPU time", Unit::PerCpuSecond), Figure::higher("MB", Unit::PerSecond)],
        peers: vec![Peer::Mini, Peer::Tokio],
        rounds: ROUNDS,
        sample: Box::new(move |peer, options| measure(peer, layout, options)),
    })
}

fn measure(peer: Peer, layout: Layout, options: &Options) -> Result<Vec<f64>, String> {
    let total = if options.quick { QUICK } else { TOTAL };
    let args = [peer.name().to_owned(), format!("{layout:?}"), total.to_string()];
    let [wall, cpu] = Child::start("quic", args)?.numbers()?;
    // Megabytes per second are bytes per microsecond.
    Ok([cpu, wall].map(|nanos| total as f64 / (nanos as f64 / 1e3)).into())
}

/// A child's life: transfers, says how long that took in nanoseconds of the clock and of its CPU time, and ends.
pub(super) fn main(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let mut word = || args.next().ok_or("QUIC needs a peer, a layout and a number of bytes");
    let (peer, layout, total) = (word()?, word()?, word()?);
    let layout = Layout::parse(&layout)?;
    let total = total.parse().map_err(|_| format!("`{total}` is not a number of bytes"))?;
    machine::pin(layout.server_cpus()).map_err(|error| error.to_string())?;
    let ended = match Peer::parse(&peer)? {
        Peer::Mini => on_mini(layout, total),
        Peer::Tokio => on_tokio(layout, total),
        _ => return Err(format!("quinn has no glue for {peer} here")),
    };
    let (wall, cpu) = ended.map_err(|error| error.to_string())?;
    child::say(&format!("{} {}", wall.as_nanos(), cpu.as_nanos()));
    Ok(())
}

fn on_mini(layout: Layout, total: u64) -> Result<(Duration, Duration), Failure> {
    use mini::runtime::Builder;
    let runtime = match layout {
        Layout::One | Layout::PerCore => Builder::new_current_thread().build(),
        Layout::Shared => Builder::new_multi_thread().worker_threads(2).build(),
    };
    runtime?.block_on(async { mini::spawn(transfer(Arc::new(mini_quinn::MiniRuntime), total)).await? })
}

fn on_tokio(layout: Layout, total: u64) -> Result<(Duration, Duration), Failure> {
    use tokio::runtime::Builder;
    let runtime = match layout {
        Layout::One | Layout::PerCore => Builder::new_current_thread().enable_all().build(),
        Layout::Shared => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
    };
    runtime?.block_on(async { tokio::spawn(transfer(Arc::new(quinn::TokioRuntime), total)).await? })
}

/// How long `total` bytes take, after a connection has been made and some have gone over it.
async fn transfer(runtime: Arc<dyn Runtime>, total: u64) -> Result<(Duration, Duration), Failure> {
    let (server, client) = endpoints(&runtime)?;
    let at = server.local_addr()?;
    runtime.spawn(Box::pin(async move { serve(server).await.expect("the client stays") }));
    let connection = client.connect(at, "localhost")?.await?;
    fetch(&connection, QUICK).await?;
    let (before, start) = (machine::cpu_time(), Instant::now());
    fetch(&connection, total).await?;
    let took = (start.elapsed(), machine::cpu_time() - before);
    connection.close(0_u32.into(), b"");
    client.wait_idle().await;
    Ok(took)
}

fn endpoints(runtime: &Arc<dyn Runtime>) -> Result<(Endpoint, Endpoint), Failure> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let open = |server| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        Endpoint::new(EndpointConfig::default(), server, socket, runtime.clone())
    };
    let mut client = open(None)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    Ok((open(Some(config))?, client))
}

/// Sends as many bytes as it is asked for, on each stream of one connection.
async fn serve(server: Endpoint) -> Result<(), Failure> {
    let connection = server.accept().await.ok_or("no client")?.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut count = [0; 8];
        receive.read_exact(&mut count).await?;
        let (mut left, block) = (u64::from_le_bytes(count), vec![7; BLOCK]);
        while left > 0 {
            let length = left.min(BLOCK as u64);
            send.write_all(&block[..length as usize]).await?;
            left -= length;
        }
        send.finish()?;
    }
    Ok(())
}

async fn fetch(connection: &quinn::Connection, total: u64) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&total.to_le_bytes()).await?;
    let mut count = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        count += chunk.bytes.len() as u64;
    }
    if count == total { Ok(()) } else { Err(format!("{count} bytes of {total} came").into()) }
}
