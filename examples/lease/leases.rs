//! `Leases`: who holds which lock, until when.
//!
//! Each grant has a token, a number that is larger than all before it: what the lock protects refuses a holder whose
//! token is older than one that it has seen, as that holder's time is over though it does not know (a *fencing token*;
//! Burrows, The Chubby lock service for loosely-coupled distributed systems, OSDI 2006, "sequencers").
//!
//! A request that comes again, as its answer was lost, gets the answer of the first. After a restart nobody knows how
//! much time has passed: a lease that was not given back counts from its beginning.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use mini::time::{Duration, Instant};

use super::log::{Durability, Log};

#[derive(Debug)]
pub(crate) struct Leases {
    log: Log,
    held: BTreeMap<String, Lease>,
    last_token: u64,
}

#[derive(Debug)]
struct Lease {
    /// The request that got it: who, and which of his.
    request: String,
    token: u64,
    length: Duration,
    until: Instant,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The lock is the caller's, for this long.
    Held(u64, Duration),
    /// It is somebody else's, at most for this long.
    Busy(Duration),
    /// It was given back.
    Free,
    /// It is not the caller's any more.
    Lost,
}

impl Leases {
    pub(crate) async fn open(folder: &Path, durability: Durability) -> io::Result<Self> {
        let (log, records) = Log::open(folder, durability).await?;
        let mut leases = Self { log, held: BTreeMap::new(), last_token: 0 };
        for record in records {
            leases.replay(&record).ok_or_else(|| io::Error::other(format!("the log has a record `{record}`")))?;
        }
        Ok(leases)
    }

    /// For `request`, which is the same when it comes again.
    pub(crate) async fn lock(&mut self, name: &str, request: &str, length: Duration) -> io::Result<Answer> {
        let now = Instant::now();
        if let Some(lease) = self.held.get(name).filter(|lease| lease.until > now) {
            let left = lease.until - now;
            return Ok(if lease.request == request { Answer::Held(lease.token, left) } else { Answer::Busy(left) });
        }
        let token = self.last_token + 1;
        self.log.append(&format!("lock {name} {token} {} {request}", length.as_millis())).await?;
        self.hold(name, token, length, request);
        Ok(Answer::Held(token, length))
    }

    pub(crate) async fn renew(&mut self, name: &str, token: u64) -> io::Result<Answer> {
        let now = Instant::now();
        match self.held.get_mut(name) {
            // Nothing for the log: a restart renews it, too.
            Some(lease) if lease.token == token && lease.until > now => {
                lease.until = now + lease.length;
                Ok(Answer::Held(token, lease.length))
            }
            _ => Ok(Answer::Lost),
        }
    }

    pub(crate) async fn unlock(&mut self, name: &str, token: u64) -> io::Result<Answer> {
        match self.held.get(name) {
            Some(lease) if lease.token == token => {
                self.log.append(&format!("unlock {name} {token}")).await?;
                self.held.remove(name);
                Ok(Answer::Free)
            }
            _ => Ok(Answer::Lost),
        }
    }

    fn hold(&mut self, name: &str, token: u64, length: Duration, request: &str) {
        let lease = Lease { request: request.to_owned(), token, length, until: Instant::now() + length };
        self.held.insert(name.to_owned(), lease);
        self.last_token = token;
    }

    fn replay(&mut self, record: &str) -> Option<()> {
        let mut words = record.split(' ');
        match (words.next()?, words.next()?, words.next()?.parse().ok()?) {
            ("lock", name, token) => {
                let length = Duration::from_millis(words.next()?.parse().ok()?);
                self.hold(name, token, length, words.next()?);
            }
            ("unlock", name, token) => {
                if self.held.get(name).is_some_and(|lease| lease.token == token) {
                    self.held.remove(name);
                }
            }
            _ => return None,
        }
        Some(())
    }
}
