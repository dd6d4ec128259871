//! An echo server and its load, in two processes of one program.
//!
//! ```text
//! echo                          serve, load it for 3 seconds from a second process, print a table, end
//! echo serve ADDRESS            only serve, until killed           [--workers N]
//! echo load ADDRESS             only load, and print the table     [--connections N] [--seconds N] [--size BYTES]
//! ```
//!
//! Without a word for what to do it takes the options of both.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream, next_connection};
use mini::runtime::Builder;
use mini_examples::{Latencies, bad_usage, number_option, resident_memory, run_with_args};

const CONNECTIONS: u64 = 400;
const USAGE: &str =
    "usage: echo [serve ADDRESS | load ADDRESS] [--workers N] [--connections N] [--seconds N] [--size BYTES]";

fn main() -> ExitCode {
    run_with_args("echo", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text: String| bad_usage(text, USAGE);
    let workers = number_option(&mut args, "--workers", 1).map_err(bad)?;
    let connections = number_option(&mut args, "--connections", CONNECTIONS).map_err(bad)?;
    let seconds = number_option(&mut args, "--seconds", 3).map_err(bad)?;
    let size = number_option(&mut args, "--size", 64).map_err(bad)?;
    let load = Load { connections, size, seconds };
    let mut server = if workers == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    server.worker_threads(workers as usize);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => {
            println!(
                "echo: {connections} connections send {size} B each and wait until they are back, for {seconds} s"
            );
            println!("to type messages yourself: cargo run --release --example echo -- serve 127.0.0.1:7000\n");
            server.build()?.block_on(serve_and_load(&load))
        }
        ["serve", address] => server.build()?.block_on(async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            let (ip, port) = (address.ip(), address.port());
            println!("echo: serving on {address}; in another terminal: nc {ip} {port}");
            serve(&listener).await
        }),
        ["load", address] => Builder::new_current_thread().build()?.block_on(load.run(address)),
        _ => Err(bad(format!("what is {args:?}?"))),
    }
}

/// Accepts for ever; each connection is a task.
async fn serve(listener: &TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = next_connection(listener).await?;
        drop(mini::spawn(echo(stream)));
    }
}

/// Sends back all bytes, until the peer closes.
async fn echo(stream: TcpStream) {
    let mut buf = [0; 1024];
    while let Ok(n @ 1..) = stream.read(&mut buf).await {
        if stream.write_all(&buf[..n]).await.is_err() {
            break;
        }
    }
}

/// The whole show: this process serves, a second one loads.
async fn serve_and_load(options: &Load) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    mini::spawn(async move { serve(&listener).await });

    let before = resident_memory();
    let (load, mut lines) = start_load(&address.to_string(), options)?;
    let (line, mut lines) = next_line(&mut lines).await?; // all are connected, and have been served once
    assert_eq!(line.trim(), "connected");
    let after = resident_memory();
    loop {
        let (line, rest) = next_line(&mut lines).await?;
        lines = rest;
        if line.is_empty() {
            break;
        }
        print!("{line}");
    }
    if let (Some(before), Some(after)) = (before, after) {
        let each = after.saturating_sub(before) / options.connections;
        println!("memory per connection  {each:>9} B   (in the server, a buffer of 1024 B included)");
    }
    io::stdout().flush()?;
    let status = mini::spawn_blocking(move || { load }.wait()).await??;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the load ended with {status}"))) }
}

type Lines = Option<BufReader<std::process::ChildStdout>>;

fn start_load(address: &str, options: &Load) -> io::Result<(Child, Lines)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["load", address, "--connections", &options.connections.to_string()])
        .args(["--size", &options.size.to_string(), "--seconds", &options.seconds.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = child.stdout.take().map(BufReader::new);
    Ok((child, lines))
}

/// The next line of the load's output; empty at its end.
async fn next_line(lines: &mut Lines) -> io::Result<(String, Lines)> {
    let mut reader = lines.take();
    mini::spawn_blocking(move || {
        let mut line = String::new();
        if let Some(reader) = &mut reader {
            reader.read_line(&mut line)?;
        }
        Ok((line, reader))
    })
    .await?
}

struct Load {
    connections: u64,
    size: u64,
    seconds: u64,
}

impl Load {
    async fn run(&self, address: &str) -> io::Result<()> {
        let mut streams = Vec::new();
        for _ in 0..self.connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            round(&stream, &mut vec![0; self.size as usize], 0).await?;
            streams.push(stream);
        }
        println!("connected");

        let stop = Arc::new(AtomicBool::new(false));
        let begin = Instant::now();
        let tasks: Vec<_> =
            streams.into_iter().map(|stream| mini::spawn(talk(stream, self.size as usize, stop.clone()))).collect();
        mini::time::sleep(Duration::from_secs(self.seconds)).await;
        stop.store(true, Relaxed);
        let mut all = Latencies::default();
        for task in tasks {
            all.merge(&task.await??);
        }
        self.print(&all, begin.elapsed());
        Ok(())
    }

    fn print(&self, all: &Latencies, time: Duration) {
        let us = |share| all.quantile(share).as_nanos() as f64 / 1000.0;
        println!("connections            {:>9}", self.connections);
        println!(
            "messages per second    {:>9.0}   ({} B each, one at a time per connection)",
            all.count() as f64 / time.as_secs_f64(),
            self.size
        );
        println!("latency p50            {:>9.1} µs", us(0.50));
        println!("latency p99            {:>9.1} µs", us(0.99));
    }
}

/// Sends a message, waits for it to come back, and so on, until told to stop.
async fn talk(stream: TcpStream, size: usize, stop: Arc<AtomicBool>) -> io::Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut buf = vec![0; size];
    let mut number = 0;
    while !stop.load(Relaxed) {
        number += 1;
        let begin = Instant::now();
        round(&stream, &mut buf, number).await?;
        latencies.record(begin.elapsed());
    }
    Ok(latencies)
}

/// One message there and back; its number is in its bytes, and has to come back.
async fn round(stream: &TcpStream, buf: &mut [u8], number: u64) -> io::Result<()> {
    buf.fill(number as u8);
    stream.write_all(buf).await?;
    stream.read_exact(buf).await?;
    match buf.iter().all(|&byte| byte == number as u8) {
        true => Ok(()),
        false => Err(io::Error::other("the echo is not what was sent")),
    }
}
