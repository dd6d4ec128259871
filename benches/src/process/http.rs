//! The rows of real libraries: hyper 1 with HTTP/1 and HTTP/2, and axum, with a hello for each request, under the loads
//! of `wrk` and `h2load`.
//!
//! The same crates, services and settings on mini and tokio; only the glue differs (mini's feature `hyper`,
//! hyper-util). The limit of HTTP/1 is hyper without a runtime, in a bare loop; for HTTP/2 it would need an executor.
//! Called by [`rows`](super::rows); [`hello`] and [`app`] by the servers. Without the program of the load on this
//! machine a row stays empty and says so.

use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};

use super::server::{Kind, Layout};
use super::{ProcessRow, ROUNDS, Server, beside, plan};
use crate::measured::{Figure, Group, Unit};
use crate::peer::Peer;

/// What every request is answered with.
pub(super) async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"Hello, world!"))))
}

/// The same of axum.
pub(super) fn app() -> Router {
    Router::new().route("/", get(async || "Hello, world!"))
}

pub(super) fn rows() -> Vec<ProcessRow> {
    let rows = |(kind, name)| [Layout::One, Layout::Shared].map(|layout| row(kind, name, layout));
    let (hyper, axum) = ((Kind::Http, "hyper hello, 64 conns"), (Kind::Axum, "axum hello, 64 conns"));
    [hyper, axum, (Kind::Http2, "HTTP/2 hello, 8 conns of 16 streams")].into_iter().flat_map(rows).collect()
}

fn row(kind: Kind, name: &str, layout: Layout) -> ProcessRow {
    ProcessRow {
        group: Group::Sockets,
        name: format!("{name}, {}", layout.name()),
        figures: vec![
            Figure::higher("requests for CPU time", Unit::PerCpuSecond),
            Figure::higher("requests", Unit::PerSecond),
        ],
        peers: if kind == Kind::Http2 {
            vec![Peer::Mini, Peer::Tokio]
        } else {
            vec![Peer::Mini, Peer::Tokio, Peer::Limit]
        },
        rounds: ROUNDS,
        sample: Box::new(move |peer, _| beside(layout, || measure(peer, layout, kind))),
    }
}

fn measure(peer: Peer, layout: Layout, kind: Kind) -> Result<Vec<f64>, String> {
    let mut server = Server::start(plan(peer, layout, kind))?;
    let before = server.child.cpu_time()?;
    let answered = load(kind, server.port)?;
    let cpu = server.child.cpu_time()? - before;
    Ok(vec![answered.requests as f64 / cpu.as_secs_f64(), answered.requests as f64 / answered.took.as_secs_f64()])
}

/// What a load reports.
#[derive(Debug, PartialEq)]
struct Answered {
    requests: u64,
    took: Duration,
}

/// Loads a server for a second, the least that the programs take. Runs on the CPUs of the calling thread.
fn load(kind: Kind, port: u16) -> Result<Answered, String> {
    let url = format!("http://127.0.0.1:{port}/");
    if kind == Kind::Http2 {
        return run("h2load", &["-t1", "-c8", "-m16", "-D1", &url], of_h2load);
    }
    run("wrk", &["-t1", "-c64", "-d1s", &url], of_wrk)
}

fn run(program: &str, args: &[&str], parse: fn(&str) -> Option<Answered>) -> Result<Answered, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("{program} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match parse(&text).filter(|answered| answered.requests > 0) {
        Some(answered) if output.status.success() => Ok(answered),
        _ => Err(format!("{program} failed: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// From `  12345 requests in 1.10s, 1.2MB read`. None if there were errors.
fn of_wrk(text: &str) -> Option<Answered> {
    if text.contains("Socket errors") || text.contains("Non-2xx") {
        return None;
    }
    let (requests, rest) = text.lines().find_map(|line| line.split_once(" requests in "))?;
    Some(Answered { requests: requests.trim().parse().ok()?, took: seconds(rest)? })
}

/// From `finished in 1.00s, ..` and `requests: .. 12345 succeeded, 0 failed, 0 errored, ..`. None if there were errors.
fn of_h2load(text: &str) -> Option<Answered> {
    let took = text.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let (requests, _) = text.split_once(" succeeded, 0 failed, 0 errored, 0 timeout")?;
    let (_, requests) = requests.rsplit_once(' ')?;
    Some(Answered { requests: requests.parse().ok()?, took: seconds(took)? })
}

fn seconds(text: &str) -> Option<Duration> {
    let (seconds, _) = text.split_once("s,")?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_wrk() {
        let report =
            "  1 threads and 64 connections\n  113523 requests in 1.10s, 14.2MB read\nRequests/sec: 103201.0\n";
        assert_eq!(of_wrk(report), Some(Answered { requests: 113_523, took: Duration::from_millis(1100) }));
        assert_eq!(of_wrk(&format!("{report}  Socket errors: connect 0, read 3")), None);
    }

    #[test]
    fn a_report_of_h2load() {
        let report = "finished in 1.00s, 87000.00 req/s, 2.50MB/s\nrequests: 87100 total, 87100 started, 87000 done, \
                      87000 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(of_h2load(report), Some(Answered { requests: 87_000, took: Duration::from_secs(1) }));
        assert_eq!(of_h2load(&report.replace("0 failed", "3 failed")), None);
    }
}
