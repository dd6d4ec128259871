//! A service for locks that are leased: who holds one has it for a time, also if the server crashes meanwhile.
//!
//! ```text
//! lease                                            two clients share a lock, and say so
//! lease --port N --folder FOLDER [--lazy]          serve until Ctrl-C; with --lazy a crash of the machine may forget
//! ```
//!
//! `tests/tests/interposed/lease.rs` runs it in simulations, under faults, and checks what it promises.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use mini::net::TcpListener;
use mini::time::{Duration, sleep};
use mini_examples::{bad_usage, run_with_args};

use client::Client;
use server::{Durability, serve};

#[path = "lease/client.rs"]
mod client;
#[path = "lease/server.rs"]
mod server;

const USAGE: &str = "usage: lease [--port N --folder FOLDER [--lazy]]";

fn main() -> ExitCode {
    run_with_args("lease", |args| run(args.into_iter()))
}

fn run(mut args: impl Iterator<Item = String>) -> io::Result<()> {
    let bad = |problem: String| bad_usage(problem, USAGE);
    let (mut port, mut folder, mut durability) = (None, None, Durability::Synced);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| bad(format!("{option} needs a value")));
        match &*option {
            "--port" => {
                let value = value()?;
                port = Some(value.parse().map_err(|_| bad(format!("--port is 0 to 65535, not {value:?}")))?);
            }
            "--folder" => folder = Some(PathBuf::from(value()?)),
            "--lazy" => durability = Durability::Lazy,
            _ => return Err(bad(format!("what is {option:?}?"))),
        }
    }
    match (port, folder) {
        (Some(port), Some(folder)) => mini::block_on(serve_until_told(port, folder, durability)),
        (None, None) => mini::block_on(show()),
        _ => Err(bad("--port and --folder go together".to_owned())),
    }
}

async fn serve_until_told(port: u16, folder: PathBuf, durability: Durability) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("lease: serving on {}", listener.local_addr()?);
    mini::race! {
        end = serve(listener, folder, durability) => end,
        told = mini::signal::termination() => told.map(drop),
    }
}

/// Two clients take a lock in turn; one forgets to give it back.
async fn show() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("mini-lease-{}", std::process::id()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let server = mini::spawn(serve(listener, folder.clone(), Durability::Synced));
    let (mut careful, mut careless) = (Client::new(&address, "careful"), Client::new(&address, "careless"));

    let held = careful.lock("printer", Duration::from_secs(10)).await?;
    println!("careful has the printer, token {}", held.token);
    careful.unlock(held).await?;
    let held = careless.lock("printer", Duration::from_millis(200)).await?;
    println!("careless has the printer, token {}, for 200 ms, and is silent from now on", held.token);
    let mut held = careful.lock("printer", Duration::from_millis(300)).await?;
    println!("careful has the printer again, token {}", held.token);
    sleep(Duration::from_millis(200)).await;
    assert!(careful.renew(&mut held).await?, "it was still held");
    println!("careful has it for longer");
    careful.unlock(held).await?;

    server.abort();
    mini::fs::remove_dir_all(&folder).await
}
