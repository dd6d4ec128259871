//! What was begun and how it came out, by kind of work: nothing may be lost.
//!
//! Called by the actors. Each message is a [`Ticket`]: it is received, or dropped by code that may do that, or lost. A
//! ticket that is never dropped shows as well, as the sums differ then.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp,
    Idle,
    Unix,
    Udp,
    Channel,
    Job,
    Child,
    File,
    Timer,
    Task,
}

const KINDS: [Kind; 10] = {
    use Kind::*;
    [Tcp, Idle, Unix, Udp, Channel, Job, Child, File, Timer, Task]
};

/// How many failures are kept as text.
const KEPT: usize = 20;

#[derive(Debug, Default)]
struct Row {
    sent: AtomicU64,
    received: AtomicU64,
    cancelled: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    rows: [Row; KINDS.len()],
    /// From now on tickets may be dropped with their runtime.
    ending: AtomicBool,
    failed: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// A message on its way.
#[derive(Debug)]
pub(crate) struct Ticket {
    ledger: Arc<Ledger>,
    kind: Kind,
    is_expendable: bool,
    is_received: bool,
}

impl Ledger {
    pub(crate) fn begin(self: &Arc<Self>, kind: Kind) -> Ticket {
        self.row(kind).sent.fetch_add(1, Relaxed);
        Ticket { ledger: self.clone(), kind, is_expendable: false, is_received: false }
    }

    fn row(&self, kind: Kind) -> &Row {
        &self.rows[kind as usize]
    }

    /// From now on, or from now on no more, drops and errors come from a shutdown.
    pub(crate) fn set_ending(&self, is_ending: bool) {
        self.ending.store(is_ending, SeqCst);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(SeqCst)
    }

    /// Something went wrong that should not have.
    pub(crate) fn fail(&self, text: impl fmt::Display) {
        self.failed.fetch_add(1, Relaxed);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < KEPT {
            failures.push(text.to_string());
        }
    }

    /// Whether all came out well: nothing is under way, nothing was lost, nothing failed, and each kind did something.
    pub(crate) fn is_balanced(&self) -> bool {
        let is_balanced = |row: &Row| {
            let [sent, received, cancelled, lost] = row.counts();
            lost == 0 && received > 0 && sent == received + cancelled
        };
        self.rows.iter().all(is_balanced) && self.failed.load(SeqCst) == 0
    }

    pub(crate) fn received(&self) -> u64 {
        self.rows.iter().map(|row| row.counts()[1]).sum()
    }
}

impl Row {
    fn counts(&self) -> [u64; 4] {
        [&self.sent, &self.received, &self.cancelled, &self.lost].map(|count| count.load(SeqCst))
    }
}

impl Ticket {
    /// The message has come back as it was sent.
    pub(crate) fn receive(mut self) {
        self.is_received = true;
    }

    /// Marks a message that may be dropped on its way.
    pub(crate) fn expendable(mut self) -> Self {
        self.is_expendable = true;
        self
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let row = self.ledger.row(self.kind);
        let count = match () {
            () if self.is_received => &row.received,
            () if self.is_expendable || self.ledger.is_ending() => &row.cancelled,
            () => &row.lost,
        };
        count.fetch_add(1, SeqCst);
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<8} {:>10} {:>10} {:>10} {:>6}", "", "sent", "received", "cancelled", "lost")?;
        for (kind, row) in KINDS.iter().zip(&self.rows) {
            let [sent, received, cancelled, lost] = row.counts();
            let name = format!("{kind:?}").to_lowercase();
            writeln!(f, "  {name:<8} {sent:>10} {received:>10} {cancelled:>10} {lost:>6}")?;
        }
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "  {} failures", self.failed.load(SeqCst))?;
        failures.iter().try_for_each(|text| write!(f, "\n    {text}"))
    }
}
