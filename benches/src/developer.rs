//! One row under criterion, with its history and confidence intervals, while somebody works on that row.
//!
//! Called by [`run`](crate::run) for `--criterion`. It does not interleave the peers: no ratio comes from here. Only
//! timed rows, since criterion chooses the number of rounds.

use criterion::{Criterion, Throughput};

use crate::cpus;
use crate::load::Load;
use crate::options::Options;
use crate::workload::{Row, Started};

/// Runs criterion on every wanted peer of every row.
pub(crate) fn run(rows: &[Row], load: Load, options: &Options) -> Result<(), String> {
    let mut criterion = Criterion::default();
    for row in rows {
        cpus::pin(row.pin(), options.cpus()).map_err(|error| error.to_string())?;
        let mut group = criterion.benchmark_group(row.name());
        for peer in row.peers().into_iter().filter(|&peer| options.wants_peer(peer)) {
            match row.start(peer, load) {
                Ok(Started::Timed(runner)) => {
                    group.throughput(Throughput::Elements(runner.operations));
                    group.bench_function(peer.name(), |bencher| {
                        bencher.iter_custom(|rounds| (runner.run)(rounds).wall);
                    });
                }
                Ok(Started::Probe(_)) => eprintln!("{}: chooses its rounds by itself, not for criterion", row.name()),
                Err(error) => eprintln!("{}: without {}: {error}", row.name(), peer.name()),
            }
        }
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}
