//! A server in a simulation, with the features of tokio that the feature `client` turns on.

use std::future::pending;
use std::process::Command;

use axum::{Router, routing::get};
use mini::net::{TcpListener, TcpStream};
use mini::signal::unix::SignalKind;

mini::sim::interpose!();

/// All connections of a server hear of its end at once.
#[mini::test(sim, seeds = 10)]
async fn many_connections_hear_of_the_end() {
    let sim = mini::sim::current();
    sim.host("web", || async {
        let router = Router::new().route("/", get(async || "hello"));
        let server = mini_hyper::serve(TcpListener::bind("0.0.0.0:80").await?, router);
        server.with_graceful_shutdown(mini::signal::termination()).await?;
        pending::<std::io::Result<()>>().await
    });
    sim.settle().await;
    let clients: Vec<_> = (0..16).map(|number| sim.client(&format!("client-{number}"), keep_alive())).collect();
    mini::time::sleep(std::time::Duration::from_secs(5)).await;
    sim.signal("web", SignalKind::terminate());
    for client in clients {
        client.await.unwrap();
    }
}

async fn keep_alive() {
    let stream = TcpStream::connect("web:80").await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    while stream.read(&mut [0; 1000]).await.unwrap() > 0 {}
}

#[test]
fn two_runs_of_a_server_take_the_same_steps() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["many_connections_hear_of_the_end", "--exact"]).env("MINI_SIM_CHECK", "1").env_remove("MINI_SEED");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
