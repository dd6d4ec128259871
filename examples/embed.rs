//! mini inside another program's event loop.
//!
//! The host is a loop around poll(2), as a window system's would be. It waits for its own descriptor (here: "keys" that
//! a thread types) and for the runtime's, until the runtime's next deadline; when it wakes up it gives the runtime a
//! turn. The runtime serves a TCP echo, timers and tasks meanwhile. With nothing to do the host sleeps, in one call.
//!
//! ```text
//! embed [--messages N]
//! ```

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Runtime};
use mini::task::JoinHandle;
use mini_examples::{bad_usage, number_option, refuse_more, run_with_args};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

const USAGE: &str = "usage: embed [--messages N]";
const KEYS: &[u8] = b"hello";
const TICK: Duration = Duration::from_millis(50);
const TICKS: u32 = 5;
const QUIET: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    run_with_args("embed", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let messages = number_option(&mut args, "--messages", 1000).map_err(|text| bad_usage(text, USAGE))?;
    refuse_more(&args, USAGE)?;

    let (keyboard, keys) = UnixStream::pair()?;
    keys.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().build()?;
    let mut host = Host { runtime, keys, typed: 0, counts: Counts::default() };

    // Work for the runtime: a server, its client, a clock. Tasks are spawned from outside; they run in the host's
    // turns.
    let listener = host.runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let server = host.runtime.spawn(async move { echo(listener.accept().await?.0).await });
    let client = host.runtime.spawn(talk(address, messages));
    let clock = host.runtime.spawn(tick());
    let typist = thread::spawn(move || type_keys(keyboard));

    host.run_until(None, |host| host.typed == KEYS.len() && is_done(&server) && is_done(&client) && is_done(&clock))?;
    let Counts { waits, turns, polls } = host.counts;
    println!("busy:  {messages} messages echoed, {TICKS} ticks, {} keys typed", host.typed);
    println!("       {waits} calls of poll(2), {turns} turns, {polls} polls of tasks");
    for task in [server, client, clock] {
        host.runtime.block_on(task)??;
    }
    let keyboard = typist.join().map_err(|_| io::Error::other("the typist has panicked"))??;

    // All that is left waits: a connection without traffic, and a timer that is far away. The host sleeps.
    let idle = host.runtime.spawn(async { mini::time::sleep(Duration::from_secs(3600)).await });
    host.run_until(Some(Duration::ZERO), |_| false)?; // the task gets as far as its timer
    host.counts = Counts::default();
    host.run_until(Some(QUIET), |_| false)?;
    println!("quiet: the host has slept for {} ms in {} call of poll(2)", QUIET.as_millis(), host.counts.waits);
    assert_eq!((host.counts.waits, host.counts.polls), (1, 0), "nothing has happened, and the runtime was not polled");
    assert!(!idle.is_finished());
    drop(keyboard);
    Ok(())
}

/// The program that has an event loop already.
struct Host {
    runtime: Runtime,
    keys: UnixStream,
    typed: usize,
    counts: Counts,
}

/// What the host has done.
#[derive(Default)]
struct Counts {
    waits: u64,
    turns: u64,
    polls: usize,
}

impl Host {
    /// The loop: runs for at most `limit`, or until `is_over`.
    fn run_until(&mut self, limit: Option<Duration>, is_over: impl Fn(&Self) -> bool) -> io::Result<()> {
        let end = limit.map(|limit| Instant::now() + limit);
        loop {
            let turn = self.runtime.turn(Duration::ZERO);
            self.counts.turns += 1;
            self.counts.polls += turn.polls();
            if is_over(self) || end.is_some_and(|end| end <= Instant::now()) {
                return Ok(());
            }
            let due = self.runtime.next_deadline().map(Into::into);
            self.wait([end, due].into_iter().flatten().min())?;
        }
    }

    /// Waits for the host's own events and for the runtime's, in the host's own way.
    fn wait(&mut self, until: Option<Instant>) -> io::Result<()> {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec::try_from(left).map_err(io::Error::other)).transpose()?;
        let mut fds = [PollFd::new(&self.keys, PollFlags::IN), PollFd::new(&self.runtime, PollFlags::IN)];
        self.counts.waits += 1;
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => return Ok(()), // a signal: the loop looks what is due
            ready => ready?,
        };
        if !fds[0].revents().is_empty() {
            self.typed += self.keys.read(&mut [0; 16])?;
        }
        Ok(())
    }
}

fn is_done<T>(task: &JoinHandle<T>) -> bool {
    task.is_finished()
}

/// A user types, and pauses for a while.
fn type_keys(mut keyboard: UnixStream) -> io::Result<UnixStream> {
    for key in KEYS {
        thread::sleep(Duration::from_millis(20));
        keyboard.write_all(&[*key])?;
    }
    Ok(keyboard)
}

async fn tick() -> io::Result<()> {
    let mut clock = mini::time::interval(TICK);
    for _ in 0..TICKS {
        clock.tick().await;
    }
    Ok(())
}

async fn talk(address: SocketAddr, messages: u64) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    for number in 0..messages {
        let mut answer = [0; 8];
        stream.write_all(&number.to_ne_bytes()).await?;
        stream.read_exact(&mut answer).await?;
        assert_eq!(answer, number.to_ne_bytes());
    }
    Ok(())
}

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; 64];
    while let n @ 1.. = stream.read(&mut buf).await? {
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}
