//! One row under criterion, with its history and confidence intervals, while somebody works on that row.
//!
//! Called by [`run`](crate::run) for `--criterion`. It does not interleave the peers: no ratio comes from here.

use criterion::{Criterion, Throughput};

use crate::options::Options;
use crate::peer::Peer;
use crate::workload::Row;

/// Runs criterion on every wanted peer of every row.
pub(crate) fn run(rows: &[Row], options: &Options) {
    let mut criterion = Criterion::default();
    for row in rows {
        let mut group = criterion.benchmark_group(row.name());
        group.throughput(Throughput::Elements(row.operations()));
        for peer in Peer::ALL.into_iter().filter(|&peer| options.wants_peer(peer)) {
            let runner = row.start(peer);
            group.bench_function(peer.name(), |bencher| bencher.iter_custom(&runner));
        }
        group.finish();
    }
    criterion.final_summary();
}
