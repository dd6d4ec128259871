//! Servers that the examples and tests start for themselves, each in a directory of its own: [`Server::redis`],
//! [`Server::postgres`].
//!
//! A server listens on a free port of the loopback and on a Unix socket, and is gone when its [`Server`] is dropped; a
//! program that is killed leaves it running. Starting one blocks: call it before there is a runtime. The hard part is
//! PostgreSQL, which refuses to be root: then it runs as the user `postgres`, who owns the directory.
//!
//! Rejected: a server for all tests of a file (who stops it? statics are not dropped); `pg_ctl` (the server would be no
//! child of this process).

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// How long a server may take to start. One that is that slow counts as broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server process. The drop ends it, removes its directory, and waits for that.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Ends it at once. PostgreSQL leaves shared memory behind if it is killed, and has a signal of its own for that.
    end: Signal,
    port: u16,
    socket: PathBuf,
    _dir: Dir,
}

impl Server {
    /// Starts a Redis that keeps nothing on disk; `None` if there is no `redis-server` here.
    ///
    /// # Errors
    ///
    /// If it doesn't start; what it printed is in the error.
    pub fn redis() -> io::Result<Option<Self>> {
        let Some(program) = find("redis-server", &[]) else { return Ok(None) };
        let start = |dir: &Path, port: u16| {
            let mut command = Command::new(&program);
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--unixsocket"]);
            command.arg(dir.join("redis.sock")).args(["--save", "", "--appendonly", "no", "--dir"]).arg(dir);
            command
        };
        Self::start(Dir::new("redis")?, Signal::KILL, "redis.sock", "Ready to accept connections", start).map(Some)
    }

    /// Starts a PostgreSQL with an empty database cluster, whose superuser `mini` needs no password; `None` if there is
    /// none here.
    ///
    /// # Errors
    ///
    /// If it doesn't start; what it printed is in the error.
    pub fn postgres() -> io::Result<Option<Self>> {
        let versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("bin"))
            .collect();
        let (Some(initdb), Some(program)) = (find("initdb", &versions), find("postgres", &versions)) else {
            return Ok(None);
        };
        let dir = Dir::new("postgres")?;
        let user = if geteuid().is_root() { Some(user_and_group("postgres")?) } else { None };
        if let Some((user, group)) = user {
            chown(&dir.0, Some(user), Some(group))?;
        }
        let data = dir.0.join("data");
        let made = as_user(Command::new(initdb), user)
            .args(["--auth=trust", "--username=mini", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
            .arg(&data)
            .current_dir(&dir.0)
            .output()?;
        if !made.status.success() {
            return Err(io::Error::other(format!("initdb: {}", String::from_utf8_lossy(&made.stderr))));
        }
        let start = |dir: &Path, port: u16| {
            let mut command = as_user(Command::new(&program), user);
            command.args(["-F", "-h", "127.0.0.1", "-p", &port.to_string(), "-k"]).arg(dir).arg("-D").arg(&data);
            command
        };
        Self::start(dir, Signal::QUIT, ".s.PGSQL.{port}", "database system is ready to accept connections", start)
            .map(Some)
    }

    /// The only address it listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends the server at once, as a crash would, and waits until it is gone.
    pub fn crash(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), self.end);
        }
        let _ = self.child.wait();
    }

    /// Starts the process on a free port. Another process may take the port meanwhile: then the process ends, and the
    /// next one tries another.
    fn start(
        dir: Dir,
        end: Signal,
        socket: &str,
        ready: &str,
        command: impl Fn(&Path, u16) -> Command,
    ) -> io::Result<Self> {
        let log = dir.0.join("log");
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let output = File::create(&log)?;
            let mut child = command(&dir.0, port)
                .current_dir(&dir.0)
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output)
                .spawn()?;
            if is_ready(&mut child, &log, ready) {
                let socket = dir.0.join(socket.replace("{port}", &port.to_string()));
                return Ok(Self { child, end, port, socket, _dir: dir });
            }
        }
        Err(io::Error::other(format!("it does not start: {}", fs::read_to_string(log)?)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Unwraps a server for a test; without one the test is over, unless the variable `MINI_TEST_SERVERS` says that there
/// must be one.
///
/// # Panics
///
/// If the server doesn't start, or is not installed though it must be.
pub fn or_skip(server: io::Result<Option<Server>>) -> Option<Server> {
    let server = server.expect("a server that starts");
    if server.is_none() {
        assert!(std::env::var_os("MINI_TEST_SERVERS").is_none(), "the server is not installed");
        println!("skipped: the server is not installed");
    }
    server
}

/// Waits until `log` says `ready`: `false` if the process ends instead, or takes too long.
fn is_ready(child: &mut Child, log: &Path, ready: &str) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let said = fs::read(log).unwrap_or_default();
        if said.windows(ready.len()).any(|part| part == ready.as_bytes()) {
            return true;
        }
        let Ok(None) = child.try_wait() else { return false };
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Where a program is: in `PATH`, or else in the last of `dirs` that has it.
fn find(program: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = dirs.to_vec();
    dirs.sort();
    let all = std::env::split_paths(&path).chain(dirs.into_iter().rev());
    all.map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The numbers of a user and its group, from passwd(5).
fn user_and_group(name: &str) -> io::Result<(u32, u32)> {
    let numbers = |line: &str| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        let numbers = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        is_it.then_some(numbers)
    };
    let found = fs::read_to_string("/etc/passwd")?.lines().find_map(numbers);
    found.ok_or_else(|| io::Error::new(ErrorKind::NotFound, format!("there is no user {name} to run the server")))
}

fn as_user(mut command: Command, user: Option<(u32, u32)>) -> Command {
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

/// A new directory, which is removed with all that is in it.
#[derive(Debug)]
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> io::Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mini-{name}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
