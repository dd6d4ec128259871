//! `Command`: what to start, and how. A `std::process::Command` whose children are waited for with futures.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::panic::Location;
use std::path::Path;
use std::process::{self, ExitStatus, Stdio};

use mini_net::{CallSite, Site};

use super::child::{Child, site};
use super::simulated;

mod pre_exec;
mod slack;

use pre_exec::pre_exec_method;
use slack::Slack;

/// Describes a process, and starts it as often as you like.
///
/// By default, every process that mini starts inherits standard input, output and error ([`output`](Command::output)
/// has other defaults). All other descriptors of mini and of the standard library are closed in it.
///
/// # Examples
///
/// ```
/// use mini::process::Command;
///
/// # mini::block_on(async {
/// let output = Command::new("echo").args(["hello", "world"]).output().await?;
/// assert!(output.status.success());
/// assert_eq!(output.stdout, b"hello world\n");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Command {
    std: process::Command,
    kill_on_drop: bool,
}

impl Command {
    /// Creates a command that starts `program`, which is searched in `PATH` unless it contains a slash.
    ///
    /// # Examples
    ///
    /// See [`Command`].
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        process::Command::new(program).into()
    }

    /// Adds an argument. No shell sees it: it arrives as it is.
    ///
    /// # Examples
    ///
    /// See [`as_std`](Command::as_std).
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// Adds arguments.
    ///
    /// # Examples
    ///
    /// See [`Command`].
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.std.args(args);
        self
    }

    /// Sets the program's argument 0, the name that it sees as its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let output = mini::process::Command::new("sh").arg0("shell").args(["-c", "echo $0"]).output().await?;
    /// assert_eq!(output.stdout, b"shell\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(name);
        self
    }

    /// Sets a variable of its environment, which otherwise is that of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::process::Command;
    ///
    /// # mini::block_on(async {
    /// let mut command = Command::new("/bin/sh");
    /// command.env_clear().env("A", "1").envs([("B", "2"), ("C", "3")]).env_remove("C");
    /// let output = command.args(["-c", "echo $A$B$C"]).output().await?;
    /// assert_eq!(output.stdout, b"12\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(name, value);
        self
    }

    /// Sets variables of its environment.
    ///
    /// # Examples
    ///
    /// See [`env`](Command::env).
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(&mut self, variables: impl IntoIterator<Item = (K, V)>) -> &mut Self {
        self.std.envs(variables);
        self
    }

    /// Takes a variable out of its environment.
    ///
    /// # Examples
    ///
    /// See [`env`](Command::env).
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(name);
        self
    }

    /// Empties its environment. A program without a slash is then looked for in the directories of this process.
    ///
    /// # Examples
    ///
    /// See [`env`](Command::env).
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// Sets the directory that the process starts in. The system decides whether a relative path to the program is
    /// relative to that directory.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let output = mini::process::Command::new("pwd").current_dir("/").output().await?;
    /// assert_eq!(output.stdout, b"/\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// Sets its standard input. With [`Stdio::piped`], [`Child::stdin`] writes to it.
    ///
    /// # Examples
    ///
    /// See [`ChildStdin`](super::ChildStdin).
    pub fn stdin(&mut self, input: impl Into<Stdio>) -> &mut Self {
        self.std.stdin(input);
        self
    }

    /// Sets its standard output. With [`Stdio::piped`], [`Child::stdout`] reads from it.
    ///
    /// # Examples
    ///
    /// See [`Child::wait_with_output`].
    pub fn stdout(&mut self, output: impl Into<Stdio>) -> &mut Self {
        self.std.stdout(output);
        self
    }

    /// Sets its standard error. With [`Stdio::piped`], [`Child::stderr`] reads from it.
    ///
    /// # Examples
    ///
    /// See [`ChildOutput`](super::ChildOutput).
    pub fn stderr(&mut self, output: impl Into<Stdio>) -> &mut Self {
        self.std.stderr(output);
        self
    }

    /// Sets whether to kill a process whose [`Child`] is dropped before its status is known. By default the process
    /// keeps running.
    ///
    /// A killed process is reaped in the background; a failure of kill(2) is reported on standard error. Processes that
    /// the killed process has started keep running: see [`process_group`](Command::process_group).
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::time::Duration;
    ///
    /// let mut command = mini::process::Command::new("sleep");
    /// command.arg("1000").kill_on_drop(true);
    /// assert!(command.get_kill_on_drop());
    /// // When the time is over the future goes, its child with it, and the process is killed.
    /// assert!(mini::time::timeout(Duration::from_millis(1), command.status()).await.is_err());
    /// # });
    /// ```
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Returns the value set by [`kill_on_drop`](Command::kill_on_drop).
    ///
    /// # Examples
    ///
    /// See [`kill_on_drop`](Command::kill_on_drop).
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Sets the user it runs as: setuid(2) in the child, which makes `spawn` fail unless this process may do that.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # mini::block_on(async {
    /// mini::process::Command::new("id").gid(65534).uid(65534).status().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.std.uid(user);
        self
    }

    /// Sets the group it runs as: setgid(2) in the child, which makes `spawn` fail unless this process may do that.
    ///
    /// # Examples
    ///
    /// See [`uid`](Command::uid).
    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.std.gid(group);
        self
    }

    /// Sets its process group (setpgid(2)); 0 makes a new one, with the child's process id as its number.
    ///
    /// Ctrl-C and other signals of the terminal go to the foreground group, so a child in a group of its own does not
    /// get them. killpg(2) reaches the whole group.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let mut child = mini::process::Command::new("sleep").arg("1000").process_group(0).spawn()?;
    /// child.kill().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Starts the process.
    ///
    /// The thread is blocked until the program has been loaded: a fraction of a millisecond for most, more for a
    /// process with much memory of its own where fork(2) is needed ([`uid`](Command::uid), [`gid`](Command::gid) and
    /// [`pre_exec`](Command::pre_exec) do) or for a program on a slow disk.
    ///
    /// # Examples
    ///
    /// See [`Child`].
    ///
    /// # Errors
    ///
    /// Returns the errors of fork(2) and execve(2): `NotFound` if there is no such program or no such directory,
    /// `PermissionDenied` if it can't be run. Returns `InvalidInput` for a NUL byte in a name or an argument, and
    /// `Unsupported` in a simulation. If no descriptors are left to watch the process, or the runtime has shut down,
    /// the process is killed again.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.start("spawn")
    }

    /// Starts the process, for a call of `method`.
    #[track_caller]
    fn start(&mut self, method: &str) -> io::Result<Child> {
        simulated::check_start(method)?;
        let slack = Slack::usual();
        let child = self.std.spawn();
        drop(slack);
        Child::adopt(child?, self.kill_on_drop, Location::caller())
    }

    /// Starts the process and waits for its end.
    ///
    /// It is started by this call, not by the first poll. Pipes that were asked for are closed at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// assert!(mini::process::Command::new("true").status().await?.success());
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Command::spawn) and [`Child::wait`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Child::wait`].
    ///
    /// # Cancel safety
    ///
    /// Drops the child: see [`kill_on_drop`](Command::kill_on_drop).
    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send + use<> {
        let child = self.start("status").map(|mut child| {
            drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
            child
        });
        const SITE: &Site = &site("Command", "status");
        let call_site = CallSite::here(SITE);
        async move { started(child).await?.wait_for(call_site).await }
    }

    /// Starts the process, and waits for its end and for that of its output.
    ///
    /// The process is started by this call, not by the first poll. Standard output and error are piped, overriding
    /// earlier settings; standard input keeps its setting. See [`Child::wait_with_output`] for processes that leave
    /// others behind.
    ///
    /// # Examples
    ///
    /// See [`Command`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Command::spawn) and [`Child::wait_with_output`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Child::wait`].
    ///
    /// # Cancel safety
    ///
    /// Drops the child, and what was read of its output: see [`kill_on_drop`](Command::kill_on_drop).
    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<process::Output>> + Send + use<> {
        self.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.start("output");
        const SITE: &Site = &site("Command", "output");
        let call_site = CallSite::here(SITE);
        async move { started(child).await?.wait_with_output_for(call_site).await }
    }

    /// Borrows the command of the standard library in it.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut command = mini::process::Command::new("ls");
    /// assert_eq!(command.arg("-l").as_std().get_program(), "ls");
    /// ```
    pub fn as_std(&self) -> &process::Command {
        &self.std
    }

    /// Borrows the command of the standard library mutably, for settings that this type has no method for.
    ///
    /// # Examples
    ///
    /// See [`as_std`](Command::as_std).
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        &mut self.std
    }

    /// Becomes a command of the standard library. That knows nothing of [`kill_on_drop`](Command::kill_on_drop).
    ///
    /// # Examples
    ///
    /// See [`as_std`](Command::as_std).
    pub fn into_std(self) -> process::Command {
        self.std
    }

    pre_exec_method!();
}

impl From<process::Command> for Command {
    fn from(std: process::Command) -> Self {
        Self { std, kill_on_drop: false }
    }
}

/// The child, if it was started. A failed attempt takes as long as many operations: others run after each.
async fn started(child: io::Result<Child>) -> io::Result<Child> {
    if child.is_err() {
        crate::task::yield_now().await;
    }
    child
}
