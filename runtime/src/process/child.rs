//! `Child`: a process that was started here, until its status is known.
//!
//! Made by `Command::spawn`. It owns the right to reap (see `process`), and gives it to `orphans` when it is dropped.

use std::fmt;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::process::{self, ExitStatus};
use std::task::{Context, Poll, ready};

use mini_net::{IoKind, Site};

use super::orphans;
use super::output::{self, ChildStderr, ChildStdout};
use super::stdin::ChildStdin;
use super::watch::{self, Notice, Running, Watch};

/// A process that was started by [`Command::spawn`](super::Command::spawn).
///
/// Dropping it leaves the process running, unless [`kill_on_drop`](super::Command::kill_on_drop) was set. When the
/// child ends, it is reaped in the background by a thread that is started to wait for it. So a thousand children that
/// are dropped and keep running are a thousand threads. At the end of the program the system reaps them.
///
/// The runtime that a child was started in waits for the child and its pipes, even if another runtime awaits them. So
/// that runtime must keep running: a `current_thread` runtime without a thread in `block_on` notices nothing.
///
/// # Examples
///
/// ```
/// use mini::process::Command;
///
/// # mini::block_on(async {
/// let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn()?;
/// assert_eq!(child.wait().await?.code(), Some(3));
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Child {
    /// The end to write to of the pipe that is the child's standard input, if that was asked for.
    pub stdin: Option<ChildStdin>,
    /// The end to read from of the pipe that is the child's standard output, if that was asked for.
    pub stdout: Option<ChildStdout>,
    /// The end to read from of the pipe that is the child's standard error, if that was asked for.
    pub stderr: Option<ChildStderr>,
    life: Life,
}

/// A child that is not reaped, or how it ended.
#[derive(Debug)]
struct Life {
    /// `None` some time after `status` is known.
    running: Option<Running>,
    status: Option<ExitStatus>,
    kill_on_drop: bool,
    /// That has started it.
    process: mini_net::Process,
}

/// Future of [`Child::wait`]: resolves to `io::Result<ExitStatus>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Wait<'a> {
    stdin: &'a mut Option<ChildStdin>,
    status: &'a mut Option<ExitStatus>,
    running: Option<(&'a mut process::Child, Notice<'a>)>,
}

/// A call that waits for a child.
pub(super) const fn site(owner: &'static str, method: &'static str) -> Site {
    Site { owner, method, kind: IoKind::Child }
}

/// Names the call of [`Child::wait`] at `location`.
pub(super) fn wait_call_site(location: &'static Location<'static>) -> mini_net::CallSite {
    const SITE: &Site = &site("Child", "wait");
    mini_net::CallSite::at(SITE, location)
}

impl Child {
    /// Takes over a child. If it can't be watched, or its pipes can't be made non-blocking, it is killed.
    pub(super) fn adopt(
        mut child: process::Child,
        kill_on_drop: bool,
        location: &'static Location<'static>,
    ) -> io::Result<Child> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watch = match Watch::new(child.id()) {
            Ok(watch) => watch,
            Err(error) => {
                let _ = child.kill();
                orphans::leave(child, location);
                return Err(error);
            }
        };
        let running = Running { child, watch, location };
        // If an error below drops it, it kills the child.
        let life =
            Life { running: Some(running), status: None, kill_on_drop: true, process: mini_net::Process::current() };
        let mut child = Child {
            stdin: pipes.0.map(ChildStdin::from_std).transpose()?,
            stdout: pipes.1.map(ChildStdout::from_std).transpose()?,
            stderr: pipes.2.map(ChildStderr::from_std).transpose()?,
            life,
        };
        child.life.kill_on_drop = kill_on_drop;
        Ok(child)
    }

    /// Returns the process id, or `None` once the status is known: from then on the id may be another process's.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut child = mini::process::Command::new("true").spawn()?;
    /// assert!(child.id().is_some());
    /// child.wait().await?;
    /// assert_eq!(child.id(), None);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn id(&self) -> Option<u32> {
        match &self.life {
            Life { running: Some(running), status: None, .. } => Some(running.child.id()),
            _ => None,
        }
    }

    /// Waits for the end of the process. Closes [`stdin`](Child#structfield.stdin) first, so that a child that reads to
    /// the end of its input does not wait for us.
    ///
    /// Only the process itself counts: processes that it has started may keep running, and hold its pipes open. The
    /// output is not read during the wait, so a child that writes more than a pipe holds (64 KiB on Linux, pipe(7))
    /// waits for a reader; see [`wait_with_output`](Child::wait_with_output).
    ///
    /// The status is kept: each later wait returns it again.
    ///
    /// # Examples
    ///
    /// See [`Child`].
    ///
    /// # Errors
    ///
    /// Returns the errors of waitpid(2): `ECHILD` if other code has reaped the child, or if the program ignores
    /// SIGCHLD. Returns an error if the runtime in which the child was started has shut down;
    /// [`try_wait`](Child::try_wait) still works.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime, unless the child was started in one, or its status is known.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has closed `stdin`, if it was polled, and done nothing else.
    #[track_caller]
    pub fn wait(&mut self) -> Wait<'_> {
        self.wait_for(wait_call_site(Location::caller()))
    }

    /// As `wait`, for a call that messages name instead of it.
    pub(super) fn wait_for(&mut self, call_site: mini_net::CallSite) -> Wait<'_> {
        self.life.forget_ended();
        let Life { running, status, .. } = &mut self.life;
        let running = running.as_mut().map(|Running { child, watch, .. }| (child, watch.notice(call_site)));
        Wait { stdin: &mut self.stdin, status, running }
    }

    /// Returns the status if the process has ended, otherwise `None`. Does not wait, and leaves `stdin` open.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::process::Command;
    /// use std::process::Stdio;
    ///
    /// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
    /// assert!(child.try_wait()?.is_none());
    /// assert!(child.wait().await?.success());
    /// assert!(child.try_wait()?.is_some());
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of waitpid(2), like [`wait`](Child::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if let (Some(running), None) = (&mut self.life.running, self.life.status) {
            self.life.status = watch::try_wait(&mut running.child)?;
        }
        self.life.forget_ended();
        Ok(self.life.status)
    }

    /// Sends SIGKILL, and does not wait for the end. A process that has ended is left alone, and that is no error.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut child = mini::process::Command::new("sleep").arg("1000").spawn()?;
    /// child.start_kill()?;
    /// assert_eq!(child.wait().await?.signal(), Some(9));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of kill(2): `EPERM` if the process has become another user's.
    pub fn start_kill(&mut self) -> io::Result<()> {
        self.life.forget_ended();
        let Some(running) = &mut self.life.running else { return Ok(()) };
        running.kill()
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut child = mini::process::Command::new("sleep").arg("1000").spawn()?;
    /// child.kill().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start_kill`](Child::start_kill) and [`wait`](Child::wait).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`wait`](Child::wait).
    ///
    /// # Cancel safety
    ///
    /// Safe: the signal is sent at the first poll, and the end can be waited for anew.
    #[track_caller]
    pub fn kill(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        const SITE: &Site = &site("Child", "kill");
        let call_site = mini_net::CallSite::here(SITE);
        async move {
            self.start_kill()?;
            self.wait_for(call_site).await?;
            Ok(())
        }
    }

    /// Waits for the end of the process and reads its output to the end. Closes `stdin` first.
    ///
    /// An output that was not piped is empty in the result. The output ends when the last process that can write to it
    /// has closed it: a grandchild that has inherited the pipe and keeps running (a daemon, say) delays this call,
    /// where [`wait`](Child::wait) would return.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::process::Command;
    /// use std::process::Stdio;
    ///
    /// let child = Command::new("echo").arg("ping").stdout(Stdio::piped()).spawn()?;
    /// let output = child.wait_with_output().await?;
    /// assert!(output.status.success());
    /// assert_eq!(output.stdout, b"ping\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`wait`](Child::wait) and of read(2). The child is dropped then.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`wait`](Child::wait).
    ///
    /// # Cancel safety
    ///
    /// Drops the child, and what was read of its output.
    #[track_caller]
    pub fn wait_with_output(self) -> impl Future<Output = io::Result<process::Output>> + Send {
        const SITE: &Site = &site("Child", "wait_with_output");
        self.wait_with_output_for(mini_net::CallSite::here(SITE))
    }

    /// As `wait_with_output`, for a call that messages name instead of it.
    pub(super) async fn wait_with_output_for(mut self, call_site: mini_net::CallSite) -> io::Result<process::Output> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        output::collect(self.wait_for(call_site), call_site, stdout, stderr).await
    }
}

impl Life {
    /// Gives back the descriptor that has noticed the end, once nothing refers to it.
    fn forget_ended(&mut self) {
        if self.status.is_some() {
            self.running = None;
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.forget_ended();
        let Some(mut running) = self.running.take().filter(|_| self.process.is_current()) else { return };
        if self.kill_on_drop
            && let Err(error) = running.kill()
        {
            let (id, location) = (running.child.id(), running.location);
            say!("failed to kill the dropped child process {id}, started at {location}: {error}");
        }
        orphans::leave(running.child, running.location);
    }
}

impl Future for Wait<'_> {
    type Output = io::Result<ExitStatus>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let Wait { stdin, status, running } = self.get_mut();
        drop(stdin.take());
        ready!(mini_context::check_budget(cx, running));
        if let (Some((child, notice)), None) = (running, &status) {
            let reaped = ready!(notice.poll_reap(cx, child));
            mini_context::spend_call();
            **status = Some(reaped?);
        } else {
            mini_context::spend(1);
        }
        Poll::Ready(Ok(status.expect("a child that does not run has a status")))
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("running", &self.running).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Child, Wait<'_>)>();
};
