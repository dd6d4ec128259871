//! `Quits`: the requests for a dump, for a thread that waits for them.

use std::io;
use std::sync::atomic::Ordering::SeqCst;

use libc::SIGQUIT;

use super::mailbox::Mailbox;
use super::second::listeners;

/// Hears SIGQUIT unless the program listens to it by itself.
#[derive(Debug)]
pub(crate) struct Quits(Mailbox);

impl Quits {
    pub(crate) fn listen() -> io::Result<Self> {
        let mailbox = Mailbox::open(SIGQUIT)?;
        mailbox.set_blocking()?;
        Ok(Self(mailbox))
    }

    /// Blocks until a request comes.
    pub(crate) fn wait(&self) -> io::Result<()> {
        loop {
            self.0.take()?;
            // This listener is one.
            if listeners(SIGQUIT).is_none_or(|count| count.load(SeqCst) <= 1) {
                return Ok(());
            }
        }
    }
}
