//! The row of a real library: hyper 1, HTTP/1 with keep-alive, a hello for each request, under the load of `wrk`.
//!
//! The same hyper, service and settings on mini and tokio; only the glue differs (`hyper_io.rs`, hyper-util). Called by
//! [`rows`](super::rows); [`hello`] by the servers. Without `wrk` on this machine the row stays empty and says so.

use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;

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

pub(super) fn rows() -> [ProcessRow; 2] {
    [Layout::One, Layout::Shared].map(|layout| ProcessRow {
        group: Group::Sockets,
        name: format!("hyper hello, 64 conns, {}", layout.name()),
        figures: vec![
            Figure::higher("requests for CPU time", Unit::PerCpuSecond),
            Figure::higher("requests", Unit::PerSecond),
        ],
        peers: vec![Peer::Mini, Peer::Tokio],
        rounds: ROUNDS,
        sample: Box::new(move |peer, _| beside(layout, || measure(peer, layout))),
    })
}

fn measure(peer: Peer, layout: Layout) -> Result<Vec<f64>, String> {
    let mut server = Server::start(plan(peer, layout, Kind::Http))?;
    let before = server.child.cpu_time()?;
    let wrk = Wrk::run(server.port)?;
    let cpu = server.child.cpu_time()? - before;
    Ok(vec![wrk.requests as f64 / cpu.as_secs_f64(), wrk.requests as f64 / wrk.took.as_secs_f64()])
}

/// What `wrk` reports.
#[derive(Debug, PartialEq)]
struct Wrk {
    requests: u64,
    took: Duration,
}

impl Wrk {
    /// A second, the least that it takes. Runs on the CPUs of the calling thread.
    fn run(port: u16) -> Result<Self, String> {
        let url = format!("http://127.0.0.1:{port}/");
        let output = Command::new("wrk").args(["-t1", "-c64", "-d1s", &url]).output();
        let output = output.map_err(|error| format!("wrk cannot be run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match Self::parse(&text) {
            Some(report) if output.status.success() => Ok(report),
            _ => Err(format!("wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// From `  12345 requests in 1.10s, 1.2MB read`. None if there were errors, or no request at all.
    fn parse(text: &str) -> Option<Self> {
        if text.contains("Socket errors") || text.contains("Non-2xx") {
            return None;
        }
        let (requests, rest) = text.lines().find_map(|line| line.split_once(" requests in "))?;
        let (seconds, _) = rest.split_once("s,")?;
        let took = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        let requests = requests.trim().parse().ok()?;
        (requests > 0).then_some(Self { requests, took })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_wrk() {
        let report =
            "  1 threads and 64 connections\n  113523 requests in 1.10s, 14.2MB read\nRequests/sec: 103201.0\n";
        assert_eq!(Wrk::parse(report), Some(Wrk { requests: 113_523, took: Duration::from_millis(1100) }));
        assert_eq!(Wrk::parse(&format!("{report}  Socket errors: connect 0, read 3")), None);
        assert_eq!(Wrk::parse("  0 requests in 1.10s, 0.00B read"), None);
    }
}
