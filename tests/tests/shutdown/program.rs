//! A server as people write it, asked to end while it is at work: it ends within its grace, and names the one task that
//! does not listen. Each run is a process.
//!
//! `MINI_RUNS=1000 cargo test -p mini-tests --test shutdown program:: -- --nocapture` runs it that often.

use std::io;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;

use mini::net::{TcpListener, TcpStream};
use mini::task::{CancelToken, Group, shield};
use mini::time::{Duration, sleep};
use mini_tests::child_support::own_test;
use mini_tests::line_of;
use rustix::process::{Signal, getpid, kill_process};

/// Accepts until it is asked to end; the connections are tasks of the group.
async fn serve(listener: TcpListener, clients: Group, jobs: async_channel::Sender<u32>) -> io::Result<()> {
    while let Ok(accepted) = clients.token().run(listener.accept()).await {
        let (stream, _) = accepted?;
        clients.spawn(answer(stream, jobs.clone()));
    }
    Ok(())
}

async fn answer(stream: TcpStream, jobs: async_channel::Sender<u32>) -> io::Result<()> {
    let mut request = [0; 1024];
    while stream.read(&mut request).await? > 0 {
        let _ = jobs.send(1).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await?;
    }
    Ok(())
}

/// Works on jobs; each is finished once it was begun.
async fn work(jobs: async_channel::Receiver<u32>, token: CancelToken) -> u32 {
    let mut done = 0;
    while let Ok(Ok(job)) = token.run(jobs.recv()).await {
        done += shield(Duration::from_secs(1), async move {
            sleep(Duration::from_millis(1)).await;
            job
        })
        .await;
    }
    done
}

/// Waits for a program that takes longer than this one may.
async fn child(token: CancelToken) -> io::Result<()> {
    let mut child = mini::process::Command::new("sleep").arg("1000").spawn()?;
    if token.run(child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}

/// Asks over and over, until the server is gone.
fn client(address: SocketAddr, answered: impl Fn()) -> io::Result<()> {
    loop {
        let mut stream = std::net::TcpStream::connect(address)?;
        for _ in 0..3 {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            if stream.read(&mut [0; 1024])? == 0 {
                return Ok(());
            }
            answered();
        }
    }
}

#[mini::main(grace = "300ms")]
async fn main() -> io::Result<()> {
    let (send, receive) = async_channel::bounded(16);
    let (group, listener) = (Group::new().name("server"), TcpListener::bind("127.0.0.1:0").await?);
    let (address, token) = (listener.local_addr()?, group.token());
    group.spawn_named("api", serve(listener, group.child().name("clients"), send));
    for _ in 0..2 {
        group.spawn_any(work(receive.clone(), token.clone()));
    }
    drop(receive); // else clients would wait for room among the jobs when the workers are gone
    group.spawn_named("child", child(token.clone()));
    let asked = token.clone();
    group.spawn_blocking(move || {
        while !asked.is_cancelled() {
            thread::sleep(Duration::from_millis(1)); // a computation
        }
    });
    group.spawn_named("deaf", async { deaf().await }); // deaf was spawned here
    let (served, enough) = async_channel::bounded(1000);
    for _ in 0..3 {
        let served = served.clone();
        let answered = move || {
            let _ = served.try_send(());
        };
        thread::spawn(move || client(address, answered));
    }
    for _ in 0..20 {
        let _ = enough.recv().await;
    }
    kill_process(getpid(), Signal::TERM)?;
    mini::shutdown().cancelled().await;
    group.wait().await; // for ever, because of one
    Ok(())
}

async fn deaf() {
    loop {
        sleep(Duration::from_secs(3600)).await; // deaf waits here
    }
}

#[test]
fn a_server_ends_within_its_grace_and_names_the_task_that_does_not_listen() {
    const CHILD: &str = "MINI_TEST_PROGRAM";
    if std::env::var_os(CHILD).is_some() {
        let code: ExitCode = main();
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(124)));
        return;
    }
    let runs = std::env::var("MINI_RUNS").map_or(3, |runs| runs.parse().expect("a number"));
    let [spawned, waits, body] = ["// deaf was spawned here", "// deaf waits here", "#[mini::main(grace = \"300ms\")]"]
        .map(|mark| line_of(include_str!("program.rs"), mark));
    for run in 0..runs {
        let mut program = own_test("a_server_ends_within_its_grace_and_names_the_task_that_does_not_listen");
        let output = program.env(CHILD, "1").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "run {run}: {stderr}");
        let lines: Vec<_> = stderr.lines().skip_while(|line| !line.starts_with("mini: shutdown after ")).collect();
        let file = "tests/tests/shutdown/program.rs";
        let [first, main, deaf] = lines[..] else { panic!("run {run}: {stderr}") };
        assert!(first.contains(&format!(", signal at {file}:{body}:1: ")), "run {run}: {stderr}");
        assert!(first.ends_with(", 2 aborted") && main.contains("aborted  \"main\" spawned at"), "run {run}: {stderr}");
        let expected = format!("  aborted  \"deaf\" of group \"server\" spawned at {file}:{spawned}:11, waiting for ");
        assert!(deaf.starts_with(&expected), "run {run}: {stderr}");
        assert!(deaf.ends_with(&format!(" Timer at {file}:{waits}:9")), "run {run}: {stderr}");
    }
}
