//! The row of what a user pays before the program runs: a cold release build of an echo server, and its size.
//!
//! One scratch package per runtime, outside of this workspace: cargo's default release profile with `strip = true`, two
//! jobs, a target directory of its own, the versions of this workspace's `Cargo.lock`. The download is not counted.
//! Called by [`rows`](super::rows).

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Instant;

use super::server::Layout;
use super::{ProcessRow, beside};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;

/// Builds take long and differ little.
const ROUNDS: usize = 3;

const MINI: &str = r#"
#[mini::main]
async fn main() -> std::io::Result<()> {
    let listener = mini::net::TcpListener::bind("127.0.0.1:7000").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        mini::spawn(async move {
            let mut buf = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buf).await {
                stream.write_all(&buf[..n]).await?;
            }
            std::io::Result::Ok(())
        });
    }
}
"#;

const TOKIO: &str = r#"
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:7000").await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut buf = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buf).await {
                stream.write_all(&buf[..n]).await?;
            }
            std::io::Result::Ok(())
        });
    }
}
"#;

const SMOL: &str = r#"
use smol::io::{AsyncReadExt, AsyncWriteExt};

fn main() -> std::io::Result<()> {
    smol::block_on(async {
        let listener = smol::net::TcpListener::bind("127.0.0.1:7000").await?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            smol::spawn(async move {
                let mut buf = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut buf).await {
                    stream.write_all(&buf[..n]).await?;
                }
                std::io::Result::Ok(())
            })
            .detach();
        }
    })
}
"#;

pub(super) fn row() -> ProcessRow {
    ProcessRow {
        group: Group::Build,
        name: "cold release build of an echo server".to_owned(),
        figures: vec![Figure::lower("-j2", Unit::Seconds), Figure::lower("stripped", Unit::Bytes)],
        peers: vec![Peer::Mini, Peer::Tokio, Peer::Smol],
        rounds: ROUNDS,
        sample: Box::new(|peer, _| beside(Layout::Shared, || measure(peer))),
    }
}

/// The program on `peer`, and what its package depends on.
fn program(peer: Peer, workspace: &Path) -> Result<(&'static str, String), String> {
    match peer {
        Peer::Mini => {
            Ok((MINI, format!("mini-rt = {{ path = {:?}, default-features = false }}", workspace.join("runtime"))))
        }
        Peer::Tokio => {
            let features = r#"["io-util", "macros", "net", "rt-multi-thread"]"#;
            Ok((TOKIO, format!("tokio = {{ version = \"1\", features = {features} }}")))
        }
        Peer::Smol => Ok((SMOL, "smol = \"2\"".to_owned())),
        other => Err(format!("there is no program for {}", other.name())),
    }
}

fn measure(peer: Peer) -> Result<Vec<f64>, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (program, dependency) = program(peer, &workspace)?;
    let scratch = Scratch::new(program, &dependency, &workspace).map_err(|error| format!("scratch: {error}"))?;
    scratch.cargo(&["fetch"])?;
    let start = Instant::now();
    scratch.cargo(&["build", "--release", "-j2", "--offline", "--target-dir", "built"])?;
    let took = start.elapsed();
    let binary = fs::metadata(scratch.0.join("built/release/echo")).map_err(|error| format!("no binary: {error}"))?;
    Ok(vec![took.as_secs_f64(), binary.len() as f64])
}

/// A package in a directory of its own, which goes when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(program: &str, dependency: &str, workspace: &Path) -> io::Result<Self> {
        let scratch = Self(env::temp_dir().join(format!("mini-benches-build-{}", process::id())));
        fs::create_dir_all(scratch.0.join("src"))?;
        let head = "[package]\nname = \"echo\"\nedition = \"2024\"\n\n[workspace]\n\n[profile.release]\nstrip = true\n";
        fs::write(scratch.0.join("Cargo.toml"), format!("{head}\n[dependencies]\n{dependency}\n"))?;
        fs::write(scratch.0.join("src/main.rs"), program)?;
        fs::copy(workspace.join("Cargo.lock"), scratch.0.join("Cargo.lock"))?;
        Ok(scratch)
    }

    fn cargo(&self, args: &[&str]) -> Result<(), String> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo).args(args).current_dir(&self.0).output();
        let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("cargo {} failed: {}", args[0], String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}
