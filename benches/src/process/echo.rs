//! Rows of connections that talk: few and many, one worker and two, streams, and with idle ones beside.
//!
//! CPU time is the server's alone, over all of its threads. Called by [`rows`](super::rows).

use std::time::Duration;

use super::load::{Load, Report, Run, Shape};
use super::server::{Kind, Layout};
use super::{ProcessRow, ROUNDS, Server, beside, peers, plan, window};
use crate::measured::{Figure, Group, Unit};
use crate::options::Options;
use crate::peer::Peer;

/// Messages on each connection before anything is measured, idle ones included, so that all wait in a read.
const WARM_UP: u64 = 3;

/// Connections of a server, and what they do.
#[derive(Clone, Copy)]
struct Talk {
    layout: Layout,
    active: usize,
    idle: usize,
    shape: fn(bool) -> Shape,
}

pub(super) fn rows(options: &Options) -> Vec<ProcessRow> {
    let mut rows = Vec::new();
    for active in [1, 64, 1000] {
        rows.push(echo(Layout::One, active));
    }
    for layout in [Layout::Shared, Layout::PerCore] {
        rows.extend([64, 1000].map(|active| echo(layout, active)));
    }
    rows.push(stream());
    let crowds: &[usize] = if options.quick { &[100] } else { &[100, 1000, 10_000] };
    rows.extend(crowds.iter().map(|&idle| beside_idle(idle)));
    rows
}

fn echo(layout: Layout, active: usize) -> ProcessRow {
    let connections = if active == 1 { "1 conn".to_owned() } else { format!("{active} conns") };
    let figures = vec![
        Figure::lower("CPU per message", Unit::Nanoseconds),
        Figure::higher("messages", Unit::PerSecond),
        Figure::lower("p99", Unit::Microseconds),
    ];
    let talk = Talk { layout, active, idle: 0, shape: Shape::echo };
    row(format!("echo server, {connections}, {}", layout.name()), figures, talk, |cpu, report| {
        let p99 = report.latency.percentile(99.0).as_secs_f64() * 1e6;
        vec![per_message(cpu, report), report.per_second(), p99]
    })
}

fn stream() -> ProcessRow {
    let figures =
        vec![Figure::lower("CPU per message", Unit::Nanoseconds), Figure::higher("messages", Unit::PerSecond)];
    let talk = Talk { layout: Layout::One, active: 4, idle: 0, shape: Shape::stream };
    row("stream of 512 B, 4 conns, 1 worker".to_owned(), figures, talk, |cpu, report| {
        vec![per_message(cpu, report), report.per_second()]
    })
}

fn beside_idle(idle: usize) -> ProcessRow {
    let figures = vec![Figure::lower("CPU per message", Unit::Nanoseconds)];
    let talk = Talk { layout: Layout::One, active: 64, idle, shape: Shape::echo };
    row(format!("echo server, 64 conns beside {idle} idle"), figures, talk, |cpu, report| {
        vec![per_message(cpu, report)]
    })
}

fn row(name: String, figures: Vec<Figure>, talk: Talk, values: fn(Duration, &Report) -> Vec<f64>) -> ProcessRow {
    let sample = move |peer: Peer, options: &Options| {
        let (cpu, report) = beside(talk.layout, || measure(peer, talk, window(options)))?;
        Ok(values(cpu, &report))
    };
    let peers = peers(talk.layout);
    ProcessRow { group: Group::Sockets, name, figures, peers, rounds: ROUNDS, sample: Box::new(sample) }
}

/// CPU time of the server, and what the client saw.
fn measure(peer: Peer, talk: Talk, window: Duration) -> Result<(Duration, Report), String> {
    let mut server = Server::start(plan(peer, talk.layout, Kind::Echo))?;
    let shape = (talk.shape)(talk.layout == Layout::One);
    let fail = |error| format!("load: {error}");
    let all = talk.active + talk.idle;
    let mut load = Load::connect(server.port, all, shape).map_err(fail)?;
    load.run(all, Run::Messages(WARM_UP)).map_err(fail)?;
    load.run(talk.active, Run::For(window / 4)).map_err(fail)?;
    let before = server.child.cpu_time()?;
    let report = load.run(talk.active, Run::For(window)).map_err(fail)?;
    Ok((server.child.cpu_time()? - before, report))
}

/// Nanoseconds.
fn per_message(cpu: Duration, report: &Report) -> f64 {
    cpu.as_nanos() as f64 / report.messages as f64
}
