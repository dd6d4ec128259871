//! What went well, what failed as it may, and what is wrong.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use mini::time::sleep;

/// The errors that can be named, by errno(3) and the numbers of Linux.
const NUMBERS: [(&str, i32); 26] = [
    ("EPERM", 1),
    ("EINTR", 4),
    ("EIO", 5),
    ("EBADF", 9),
    ("ECHILD", 10),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("ENOSPC", 28),
    ("EPIPE", 32),
    ("ENOSYS", 38),
    ("EPROTO", 71),
    ("EOPNOTSUPP", 95),
    ("EADDRINUSE", 98),
    ("EADDRNOTAVAIL", 99),
    ("ENETUNREACH", 101),
    ("ECONNABORTED", 103),
    ("ECONNRESET", 104),
    ("ENOBUFS", 105),
    ("ENOTCONN", 107),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTUNREACH", 113),
];

/// What the other end may see of a connection that one end has given up.
const CONSEQUENCES: [ErrorKind; 3] = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];

/// How often an operation is made again.
const TRIES: usize = 300;

#[derive(Debug)]
pub(crate) struct Verdict {
    allowed: Vec<i32>,
    done: AtomicU64,
    failed: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl Verdict {
    /// The errors named are allowed.
    pub(crate) fn new(names: &[String]) -> Verdict {
        let number = |name: &String| NUMBERS.iter().find(|known| known.0 == name).expect("a known error").1;
        let allowed = names.iter().map(number).collect();
        Verdict { allowed, done: AtomicU64::new(0), failed: AtomicU64::new(0), wrong: Mutex::default() }
    }

    /// The value, or nothing if it failed in a way that is allowed, or else wrong.
    pub(crate) fn check<T>(&self, what: &str, result: io::Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let is_named = mini_tests::net_support::raw_os_error(&error).is_some_and(|code| self.allowed.contains(&code));
        let is_consequence = !self.allowed.is_empty() && CONSEQUENCES.contains(&error.kind());
        if is_named || is_consequence {
            self.failed.fetch_add(1, SeqCst);
        } else {
            self.wrong(format_args!("{what}: {error}"));
        }
        None
    }

    /// Makes the operation until it succeeds, and returns its value; `None` if it never does, or fails in a way that is
    /// wrong.
    pub(crate) async fn insist<T, F: Future<Output = io::Result<T>>>(
        &self,
        what: &str,
        mut operation: impl FnMut() -> F,
    ) -> Option<T> {
        for _ in 0..TRIES {
            if let Some(value) = self.check(what, operation().await) {
                return Some(value);
            }
            if !self.is_well() {
                return None;
            }
            sleep(Duration::from_millis(1)).await;
        }
        self.over();
        None
    }

    /// A part of the work is done.
    pub(crate) fn done(&self) {
        self.done.fetch_add(1, SeqCst);
    }

    pub(crate) fn wrong(&self, text: impl fmt::Display) {
        self.wrong.lock().expect("not poisoned").push(text.to_string());
    }

    /// An operation has failed each time; that is wrong unless it may.
    pub(crate) fn over(&self) {
        self.failed.fetch_add(1, SeqCst);
    }

    pub(crate) fn is_well(&self) -> bool {
        self.wrong.lock().expect("not poisoned").is_empty()
    }

    /// Tells how it was; writes may fail, the exit code says it too.
    pub(crate) fn tell(&self) -> ExitCode {
        let wrong = self.wrong.lock().expect("not poisoned");
        let (done, failed) = (self.done.load(SeqCst), self.failed.load(SeqCst));
        let text = format!("done={done} failed={failed}\n");
        let lines = wrong.iter().take(5).map(|line| format!("wrong: {line}\n"));
        let text = lines.fold(text, |all, line| all + &line);
        for _ in 0..10 {
            if io::Write::write_all(&mut io::stderr(), text.as_bytes()).is_ok() {
                break;
            }
        }
        match (wrong.is_empty(), done) {
            (true, 1..) => ExitCode::SUCCESS,
            (true, 0) => ExitCode::from(3), // all failed, as it may
            (false, _) => ExitCode::FAILURE,
        }
    }
}
