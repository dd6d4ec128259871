//! The thread that prints a dump of every runtime when the process gets SIGQUIT: `kill -QUIT`, or Ctrl-\ at a terminal.
//!
//! A thread of its own, one in a process, since a dump is wanted when every worker is stuck. It sleeps in a read(2) of
//! what the handler writes (`signal/quits.rs`), and keeps no program from ending.
//!
//! It writes without the lock of stderr: whoever reads there may be slow, and the program's own messages must not wait
//! for that. So lines of the program may come between those of a dump. If there is no descriptor left for that way, it
//! takes the lock after all: then a dump is wanted most.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process;
use std::sync::Weak;
use std::thread;
use std::time::Duration;

use mini_context::contain;
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::threads;

use super::gather::dump;
use crate::signal::Quits;

/// The runtimes of this process that may be alive, in the order in which they began.
static RUNTIMES: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// The process that has tried to start the thread, or 0: the child of a fork(2) tries by itself.
static STARTED_IN: Mutex<u32> = Mutex::new(0);

/// How often a write is tried again that would block: where stderr does not, as a terminal that is shared with a
/// program which asked for that.
const TRIES: u32 = 100;

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
    let mut started_in = lock(&STARTED_IN);
    if std::mem::replace(&mut *started_in, process::id()) == process::id() {
        return;
    }
    let started = Quits::listen().and_then(|quits| {
        let body = Box::new(move || {
            quits.serve(|| {
                contain(print);
            })
        });
        threads::start("mini-dump".to_owned(), Some(256 * 1024), body)
    });
    if let Err(error) = started {
        say!("no dumps at SIGQUIT: {error}");
    }
}

fn print() {
    let mut text = String::new();
    let runtimes = lock(&RUNTIMES).clone();
    // Each is let go at once: it may end meanwhile, and then ends here.
    for shared in runtimes.iter().filter_map(Weak::upgrade) {
        text += &dump(&shared).to_string();
    }
    if text.is_empty() {
        "mini: no runtime is alive\n".clone_into(&mut text);
    }
    let _closed: io::Result<()> = write(text.as_bytes());
}

fn write(text: &[u8]) -> io::Result<()> {
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(own) => write_to(File::from(own), text),
        Err(_) => write_to(io::stderr(), text),
    }
}

fn write_to(mut stderr: impl Write, mut text: &[u8]) -> io::Result<()> {
    let mut tries = 0;
    while !text.is_empty() {
        match stderr.write(text) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => (text, tries) = (&text[written..], 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES => {
                tries += 1;
                thread::sleep(Duration::from_millis(10)); // real time: the reader of stderr is another process
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
