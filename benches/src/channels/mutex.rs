//! Locks of several libraries behind one trait, and the loads on them.

use std::future::Future;
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::{Cell, LongestWait, Sample, cell, measure};
use crate::clock::Stopwatch;
use crate::rt::Rt;
use crate::rt::mini::Mini;
use crate::rt::tokio::Tokio;

/// Tasks that want one lock.
pub(super) const CROWD: u32 = 64;

trait Mutex: Send + Sync + 'static {
    fn make() -> Self;
    fn lock(&self) -> impl Future<Output = impl DerefMut<Target = u64> + Send> + Send;
}

macro_rules! mutex {
    ($($mutex:ty),+) => {
        $(impl Mutex for $mutex {
            fn make() -> Self {
                Self::new(0)
            }

            async fn lock(&self) -> impl DerefMut<Target = u64> + Send {
                self.lock().await
            }
        })+
    };
}

mutex!(mini::sync::Mutex<u64>, tokio::sync::Mutex<u64>, async_lock::Mutex<u64>);

async fn lock_alone<R: Rt, M: Mutex>(times: u32) -> Sample {
    let mutex = M::make();
    let watch = Stopwatch::start();
    R::spawn(async move {
        for _ in 0..times {
            *mutex.lock().await += 1;
        }
        assert_eq!(*mutex.lock().await, u64::from(times));
    })
    .await;
    Sample { took: watch.stop().wall, ..Sample::default() }
}

async fn lock_in_crowd<R: Rt, M: Mutex>(times: u32) -> Sample {
    let crowd = Arc::new((M::make(), AtomicU64::new(0)));
    let watch = Stopwatch::start();
    let tasks: Vec<_> = (0..CROWD).map(|_| R::spawn(take_turns::<R, M>(crowd.clone(), times / CROWD))).collect();
    let mut longest = LongestWait::default();
    for task in tasks {
        longest.note(task.await);
    }
    assert_eq!(*crowd.0.lock().await, u64::from(times / CROWD * CROWD));
    Sample { took: watch.stop().wall, longest }
}

/// The longest wait. The first is left out: then not all tasks are there.
async fn take_turns<R: Rt, M: Mutex>(crowd: Arc<(M, AtomicU64)>, times: u32) -> LongestWait {
    let (mutex, served) = &*crowd;
    let mut longest = LongestWait::default();
    for turn in 0..times {
        let (start, served_before) = (Instant::now(), served.load(Relaxed));
        let mut count = mutex.lock().await;
        if turn > 0 {
            let others = served.load(Relaxed) - served_before;
            longest.note(LongestWait { time: start.elapsed(), others });
        }
        served.fetch_add(1, Relaxed);
        *count += 1;
        R::yield_now().await;
    }
    longest
}

macro_rules! cells {
    ($load:ident) => {
        cells!($load: "mini" mini::sync::Mutex<u64>, "tokio" tokio::sync::Mutex<u64>,
            "async-lock" async_lock::Mutex<u64>)
    };
    ($load:ident: $($name:literal $mutex:ty),+) => {
        vec![$(
            cell($name, |flavour| measure::<Mini, _>(flavour, $load::<Mini, $mutex>)),
            cell($name, |flavour| measure::<Tokio, _>(flavour, $load::<Tokio, $mutex>)),
        )+]
    };
}

pub(super) fn alone() -> Vec<Cell> {
    cells!(lock_alone)
}

pub(super) fn crowd() -> Vec<Cell> {
    cells!(lock_in_crowd)
}
