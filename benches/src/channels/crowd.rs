//! Many futures in one task: a scope, and `FuturesUnordered`.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::{Cell, Sample, cell, measure};
use crate::clock::Stopwatch;
use crate::rt::Rt;
use crate::rt::mini::Mini;
use crate::rt::tokio::Tokio;

/// Children of a scope.
const CHILDREN: u32 = 100;

async fn child<R: Rt>(number: u32, waits: u32) -> u64 {
    for _ in 0..waits {
        R::yield_now().await;
    }
    u64::from(black_box(number))
}

async fn in_scope<R: Rt, const WAITS: u32>(children: u32) -> Sample {
    let watch = Stopwatch::start();
    for _ in 0..children / CHILDREN {
        let sum = AtomicU64::new(0);
        mini::scope!(|s| {
            let sum = &sum;
            for number in 0..CHILDREN {
                s.spawn(async move { sum.fetch_add(child::<R>(number, WAITS).await, Relaxed) });
            }
        })
        .await;
        check(sum.into_inner());
    }
    Sample { took: watch.stop().wall, ..Sample::default() }
}

async fn in_unordered<R: Rt, const WAITS: u32>(children: u32) -> Sample {
    let watch = Stopwatch::start();
    for _ in 0..children / CHILDREN {
        let futures: FuturesUnordered<_> = (0..CHILDREN).map(|number| child::<R>(number, WAITS)).collect();
        check(futures.fold(0, async |sum, number| sum + number).await);
    }
    Sample { took: watch.stop().wall, ..Sample::default() }
}

fn check(sum: u64) {
    assert_eq!(sum, (0..u64::from(CHILDREN)).sum::<u64>());
}

/// Children that wait so often.
pub(super) fn waiting<const WAITS: u32>() -> Vec<Cell> {
    vec![
        cell("mini's scope", |flavour| measure::<Mini, _>(flavour, in_scope::<Mini, WAITS>)),
        cell("mini's scope", |flavour| measure::<Tokio, _>(flavour, in_scope::<Tokio, WAITS>)),
        cell("FuturesUnordered", |flavour| measure::<Mini, _>(flavour, in_unordered::<Mini, WAITS>)),
        cell("FuturesUnordered", |flavour| measure::<Tokio, _>(flavour, in_unordered::<Tokio, WAITS>)),
    ]
}
