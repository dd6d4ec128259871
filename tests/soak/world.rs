//! What the actors of one runtime share: where the servers are, the ledger, whether it is time to stop; and their dice.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use mini::time::sleep;

use crate::ledger::{Kind, Ledger, Ticket};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) tcp: SocketAddr,
    pub(crate) udp: SocketAddr,
    /// For files and sockets.
    pub(crate) dir: PathBuf,
    pub(crate) over: AtomicBool,
    pub(crate) names: AtomicU64,
}

impl World {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    pub(crate) fn begin(&self, kind: Kind) -> Ticket {
        self.ledger.begin(kind)
    }

    /// A path that nothing else uses.
    pub(crate) fn new_path(&self) -> PathBuf {
        self.dir.join(self.names.fetch_add(1, Relaxed).to_string())
    }

    /// Notes the error of an actor, unless the runtime is being shut down.
    pub(crate) fn check<T>(&self, what: &str, result: std::io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !self.ledger.is_ending() {
                    self.ledger.fail(format_args!("{what}: {error}"));
                }
                None
            }
        }
    }
}

/// Dice (Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003): the same seed throws the same.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// `0..limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Up to `limit`, to the microsecond.
    pub(crate) fn time(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros() as u64 + 1))
    }

    /// Bytes that differ from message to message. Mostly few, at times many.
    pub(crate) fn message(&mut self) -> Vec<u8> {
        let limit = if self.one_in(20) { 200_000 } else { 2_000 };
        let (length, begin) = (1 + self.below(limit) as usize, self.below(251));
        (0..length).map(|at| ((begin + at as u64) % 251) as u8).collect()
    }

    /// Waits for a while; other tasks go on meanwhile.
    pub(crate) async fn pause(&mut self) {
        sleep(self.time(Duration::from_millis(4))).await;
    }
}

/// Runs two futures at once, to the end of both.
pub(crate) async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(value) = a.as_mut().poll(cx)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = b.as_mut().poll(cx)
        {
            second = Some(value);
        }
        if first.is_some() && second.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (first.expect("ready"), second.expect("ready"))
}
