//! A web server for files, in one thread: HTTP/1.1 with keep-alive and pipelining, on a `current_thread` runtime.
//!
//! ```text
//! http                          serve a temporary directory, check it over real sockets, say what was found, end
//! http --root DIR --port N      serve DIR on 127.0.0.1:N until Ctrl-C        [--address IP]
//! http --schedulers             callbacks once, periodic, idle and chained, as tasks
//! ```
//!
//! Files that are cached are read where the request is served; for the others there are four threads that may block.
//! Large ones are sent in pieces of 64 KiB. Symbolic links below the root are followed wherever they lead.
//!
//! `http/server.rs` accepts and stops in order, `connection.rs` is one client, `request.rs`, `response.rs` and
//! `files.rs` are what their names say. `schedulers.rs` and `check.rs` are the other two modes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use futures_lite::future::or;
use mini::net::TcpListener;
use mini::runtime::Builder;
use mini::signal::unix::{self, SignalKind};
use mini_examples::{bad_usage, refuse_more, run_with_args, text_option};

#[path = "http/check.rs"]
pub(crate) mod check;
#[path = "http/client.rs"]
pub(crate) mod client;
#[path = "http/schedulers.rs"]
pub(crate) mod schedulers;
#[path = "http/server.rs"]
pub(crate) mod server;

use server::{Limits, Server};

/// The most threads that wait for disks.
const BLOCKING_THREADS: usize = 4;

const USAGE: &str = "usage: http [--root DIR --port N [--address IP] | --schedulers]";

fn main() -> ExitCode {
    run_with_args("http", run)
}

/// What the program does with these arguments.
pub(crate) fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |problem: String| bad_usage(problem, USAGE);
    let root = text_option(&mut args, "--root").map_err(bad)?;
    let address = text_option(&mut args, "--address").map_err(bad)?.unwrap_or_else(|| "127.0.0.1".to_owned());
    let address: IpAddr =
        address.parse().map_err(|_| bad(format!("--address needs an IP address, not {address:?}")))?;
    let port = text_option(&mut args, "--port").map_err(bad)?;
    let wants_schedulers = args.first().is_some_and(|arg| arg == "--schedulers");
    if wants_schedulers {
        args.remove(0);
    }
    refuse_more(&args, USAGE)?;
    let runtime = Builder::new_current_thread().max_blocking_threads(BLOCKING_THREADS).build()?;
    runtime.block_on(async {
        match (root, port) {
            (Some(root), Some(port)) => {
                let port = port.parse().map_err(|_| bad(format!("--port needs a number up to 65535, not {port:?}")))?;
                serve(root, (address, port).into()).await
            }
            (None, None) if wants_schedulers => schedulers::show().await,
            (None, None) => check::all().await,
            _ => Err(bad("--root and --port go together".to_owned())),
        }
    })
}

/// Serves until Ctrl-C or SIGTERM; after a second one it does not finish what was begun.
async fn serve(root: String, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    // From the root the paths are short.
    std::env::set_current_dir(&root).map_err(|error| io::Error::new(error.kind(), format!("{root}: {error}")))?;
    let mut interrupt = unix::signal(SignalKind::interrupt())?;
    let mut terminate = unix::signal(SignalKind::terminate())?;
    println!("serving {root} on http://{}", listener.local_addr()?);
    let server = Server::new(".", Limits::default());
    let (stop, stopped) = async_channel::bounded(1);
    let serving = async { format!("{} connections cut off", server.serve(listener, stopped).await) };
    let signals = async {
        or(interrupt.recv(), terminate.recv()).await;
        println!("stopping: requests in flight are finished (Ctrl-C again: they are not)");
        stop.close();
        or(interrupt.recv(), terminate.recv()).await;
        "all that was in flight cut off".to_owned()
    };
    let end = or(serving, signals).await;
    println!("{} requests answered, {end}", server.requests());
    Ok(())
}
