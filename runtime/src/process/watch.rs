//! `Running`: a child that has not been reaped, and what notices its end.
//!
//! Called by `child`. On Linux a pidfd becomes readable, which the reactor of the runtime sees. If the
//! system has no pidfds (another system, a kernel before 5.3, a sandbox), each such child listens to SIGCHLD, and
//! checks for its own end at every one: many such children make many checks.
//!
//! Readiness only shows when to check; the answer of waitpid(2) decides, and `std::process::Child` keeps it. waitpid(2)
//! is called before each wait and after each wake, so neither a late nor a false wake does harm.

use std::fmt;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::process::{self, ExitStatus};
use std::task::{Context, Poll, ready};

use mini_net::future::FdReady;
use mini_net::{self as net, AsyncFd, Interest};

use super::sys::Pidfd;
use crate::signal::unix::{Recv, Signal, SignalKind, signal};

pub(super) struct Running {
    pub(super) child: process::Child,
    pub(super) watch: Watch,
    /// Where the child was started.
    pub(super) location: &'static Location<'static>,
}

#[derive(Debug)]
pub(super) enum Watch {
    Pidfd(AsyncFd<Pidfd>),
    Signal(Signal),
    /// There was no process to watch: other code has reaped it, or the system has, as the program ignores SIGCHLD.
    Gone,
}

/// One wait for the end of a child.
#[derive(Debug)]
pub(super) enum Notice<'a> {
    Pidfd(FdReady<'a, Pidfd>),
    Signal(Recv<'a>),
    Gone,
}

impl Running {
    /// Sends SIGKILL, unless it has ended.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        match &self.watch {
            Watch::Pidfd(fd) if fd.get_ref().kill().is_ok() => Ok(()),
            // The id cannot have been reused: the child has not been reaped yet.
            _ if matches!(try_wait(&mut self.child), Ok(None)) => self.child.kill(),
            _ => Ok(()),
        }
    }
}

impl Watch {
    /// Watches the child with this id, which has not been reaped here.
    pub(super) fn new(pid: u32) -> io::Result<Watch> {
        match Pidfd::open(pid) {
            Ok(fd) => AsyncFd::with_interest(fd, Interest::READABLE).map(Watch::Pidfd),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(Watch::Gone),
            Err(e) if has_no_pidfds(&e) => Watch::by_signal(),
            Err(e) => Err(e),
        }
    }

    fn by_signal() -> io::Result<Watch> {
        signal(SignalKind::child()).map(Watch::Signal)
    }

    pub(super) fn notice(&mut self, call_site: net::CallSite) -> Notice<'_> {
        match self {
            Watch::Pidfd(fd) => Notice::Pidfd(fd.ready_for(call_site, Interest::READABLE)),
            Watch::Signal(signal) => Notice::Signal(signal.recv_for(call_site)),
            Watch::Gone => Notice::Gone,
        }
    }
}

impl Notice<'_> {
    /// # Panics
    ///
    /// Where the watch may not wait: outside a mini runtime, unless it has joined one. The text names the call.
    fn need_runtime(&self) {
        match self {
            Notice::Pidfd(readable) => readable.need_runtime(),
            Notice::Signal(recv) => recv.need_runtime(),
            Notice::Gone => {}
        }
    }

    /// Reaps `child` when it has ended.
    pub(super) fn poll_reap(
        &mut self,
        cx: &mut Context<'_>,
        child: &mut process::Child,
    ) -> Poll<io::Result<ExitStatus>> {
        self.need_runtime(); // whether or not the child has ended
        loop {
            if let Some(status) = try_wait(child)? {
                return Poll::Ready(Ok(status));
            }
            match self {
                Notice::Signal(recv) => ready!(Pin::new(recv).poll(cx)).ok_or_else(over)?,
                // The process that runs is another child of ours, which has got the same id.
                Notice::Gone => return Poll::Ready(Err(io::Error::from_raw_os_error(libc::ECHILD))),
                Notice::Pidfd(readable) => {
                    let mut guard = ready!(Pin::new(readable).poll(cx))?;
                    if let Some(status) = try_wait(child)? {
                        return Poll::Ready(Ok(status));
                    }
                    guard.clear_ready();
                }
            }
        }
    }
}

/// Reaps `child` if it has ended. Asks again if a signal interrupts it.
pub(super) fn try_wait(child: &mut process::Child) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Running { child, watch, location } = self;
        f.debug_struct("Running")
            .field("id", &child.id())
            .field("watch", watch)
            .field("location", &format_args!("{location}"))
            .finish_non_exhaustive()
    }
}

/// Whether the system has no pidfds, or a sandbox forbids them. Any other error (`EMFILE`, say) is one of `spawn`.
fn has_no_pidfds(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(libc::EPERM | libc::EINVAL))
}

fn over() -> io::Error {
    io::Error::other("the mini runtime has shut down")
}

/// SIGCHLD in place of the pidfd, as on systems that have none.
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::future::poll_fn;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn start(program: &str, arg: &str) -> Running {
        let child = Command::new(program).arg(arg).stdin(Stdio::piped()).spawn().unwrap();
        Running { child, watch: Watch::by_signal().unwrap(), location: Location::caller() }
    }

    async fn end(running: &mut Running) -> ExitStatus {
        let Running { child, watch, .. } = running;
        let mut notice = watch.notice(crate::process::child::wait_call_site(Location::caller()));
        poll_fn(|cx| notice.poll_reap(cx, child)).await.unwrap()
    }

    #[test]
    fn children_are_told_apart_without_pidfds() {
        crate::block_on(async {
            let tasks: Vec<_> = (0..30)
                .map(|number| {
                    let mut running = start("cat", "-");
                    let input = running.child.stdin.take();
                    let task = crate::spawn(async move { end(&mut running).await.success().then_some(number) });
                    (task, input)
                })
                .collect();
            for (number, (task, input)) in tasks.into_iter().enumerate().rev() {
                drop(input);
                assert_eq!(task.await.unwrap(), Some(number));
            }
        });
    }

    #[test]
    fn a_child_is_killed_without_a_pidfd_and_only_once() {
        crate::block_on(async {
            let mut running = start("sleep", "10000");
            running.kill().unwrap();
            assert_eq!(end(&mut running).await.signal(), Some(9));
            running.kill().unwrap();
            assert_eq!(end(&mut running).await.signal(), Some(9));
        });
    }

    #[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
    #[test]
    fn a_child_that_has_been_reaped_is_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(matches!(Watch::new(child.id()), Ok(Watch::Gone)), "and no signal is listened to");
    }

    #[test]
    fn only_the_lack_of_pidfds_makes_signals_do() {
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(!has_no_pidfds(&io::Error::from_raw_os_error(code)));
        }
        assert!(has_no_pidfds(&io::Error::from_raw_os_error(libc::ENOSYS)));
        assert!(has_no_pidfds(&io::ErrorKind::Unsupported.into()));
    }
}
