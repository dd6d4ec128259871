//! The thread that prints a dump of every runtime when the process gets SIGQUIT: `kill -QUIT`, or Ctrl-\ at a terminal.
//!
//! A thread of its own, one in a process, since a dump is wanted when every worker is stuck. It sleeps in a read(2) of
//! what the handler writes (`signal/mailbox.rs`), and keeps no program from ending.
//!
//! A program that listens to SIGQUIT itself, by [`signal`](crate::signal), keeps it for itself.

use std::io::{self, Write};
use std::sync::{Once, Weak};

use crate::primitives::{Mutex, lock};
use crate::scheduler::shared::Shared;
use crate::signal::Quits;
use crate::threads;

/// The runtimes of this process that may be alive, in the order in which they began.
static RUNTIMES: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Notes a runtime, for dumps of all.
pub(crate) fn note(shared: Weak<Shared>) {
    let mut runtimes = lock(&RUNTIMES);
    if runtimes.len() == runtimes.capacity() {
        runtimes.retain(|runtime| runtime.strong_count() > 0); // before it grows
    }
    runtimes.push(shared);
}

/// Starts the thread, once in a process. Without one the process ends by SIGQUIT, as any other.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let started = Quits::listen().and_then(|quits| {
            let body = Box::new(move || {
                while quits.wait().is_ok() {
                    print();
                }
            });
            threads::start("mini-dump".to_owned(), Some(256 * 1024), body)
        });
        if let Err(error) = started {
            say!("no dumps at SIGQUIT: {error}");
        }
    });
}

fn print() {
    let runtimes: Vec<_> = lock(&RUNTIMES).iter().filter_map(Weak::upgrade).collect();
    let mut text = String::new();
    for shared in &runtimes {
        text += &shared.dump().to_string();
    }
    if runtimes.is_empty() {
        "mini: no runtime is alive\n".clone_into(&mut text);
    }
    let _: io::Result<()> = io::stderr().write_all(text.as_bytes()); // in one piece
}
