//! Queues that the kernel keeps: each event is handled once, however many wait for it.
//!
//! Three of them, each with several consumers at once: an `eventfd` as a semaphore, waited for through `AsyncFd`; Unix
//! datagrams between tasks; Unix `SOCK_SEQPACKET` sockets between processes, all of which share one end. An event wakes
//! all consumers, but the operation succeeds for only one of them, and the others go on waiting. The program asserts
//! that no job is done twice, and none is lost.
//!
//! ```text
//! queue [--jobs N] [--consumers N]
//! queue consume                       a child: takes jobs from the socket that is its standard input
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures_lite::future::try_zip;
use mini::io::{AsyncFd, Interest};
use mini::net::{UnixDatagram, UnixSeqpacket};
use mini::process::Command;
use mini::task::JoinSet;
use mini::time::timeout;
use mini_examples::{bad_usage, number_option, refuse_more, run_async};

const USAGE: &str = "usage: queue [--jobs N] [--consumers N]";

/// A child that takes longer for an answer is stuck.
const PATIENCE: Duration = Duration::from_secs(20);

#[mini::main]
async fn main() -> ExitCode {
    run_async("queue", run).await
}

async fn run(mut args: Vec<String>) -> io::Result<()> {
    if args == ["consume"] {
        return consume().await;
    }
    let bad = |text| bad_usage(text, USAGE);
    let jobs = number_option(&mut args, "--jobs", 1000).map_err(bad)? as usize;
    let consumers = number_option(&mut args, "--consumers", 4).map_err(bad)? as usize;
    refuse_more(&args, USAGE)?;
    if jobs > usize::from(u16::MAX) || consumers > 100 {
        return Err(bad("at most 65535 jobs and 100 consumers".into()));
    }
    println!("{jobs} jobs for {consumers} consumers; the jobs done by each:");
    print("eventfd, between tasks", semaphore(jobs, consumers).await?);
    print("SOCK_DGRAM, between tasks", datagrams(jobs, consumers).await?);
    print("SOCK_SEQPACKET, between processes", processes(jobs, consumers).await?);
    Ok(())
}

fn print(queue: &str, shares: Vec<usize>) {
    println!("{queue:<33} {shares:?}: each job once");
}

/// A semaphore that is a descriptor, eventfd(2): it can be waited for like a socket.
struct Semaphore(AsyncFd<OwnedFd>);

impl Semaphore {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let fd = eventfd(0, EventfdFlags::SEMAPHORE | EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self(AsyncFd::with_interest(fd, Interest::READABLE)?))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no eventfd"))
    }

    /// Gives one permit.
    fn release(&self) -> io::Result<()> {
        rustix::io::write(self.0.get_ref(), &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Takes one permit, when there is one.
    async fn acquire(&self) -> io::Result<()> {
        self.0.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut [0; 8])?)).await?;
        Ok(())
    }
}

/// One event at a time, for which all consumers wait. Returns how many jobs each of them has done, as do the functions
/// below.
pub(crate) async fn semaphore(jobs: usize, consumers: usize) -> io::Result<Vec<usize>> {
    let (ready, done) = (Arc::new(Semaphore::new()?), Arc::new(Semaphore::new()?));
    let (at_it, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    for _ in 0..consumers {
        let (ready, done, at_it, is_over) = (ready.clone(), done.clone(), at_it.clone(), is_over.clone());
        tasks.spawn(async move {
            let mut share = 0;
            loop {
                ready.acquire().await?;
                if is_over.load(SeqCst) {
                    return Ok(share);
                }
                assert_eq!(at_it.fetch_add(1, SeqCst), 0, "one event, and two tasks at it");
                mini::task::yield_now().await;
                at_it.fetch_sub(1, SeqCst);
                share += 1;
                done.release()?;
            }
        });
    }
    for _ in 0..jobs {
        ready.release()?;
        done.acquire().await?;
    }
    is_over.store(true, SeqCst);
    for _ in 0..consumers {
        ready.release()?;
    }
    all(tasks).await
}

/// What the tasks have done.
async fn all(mut tasks: JoinSet<io::Result<usize>>) -> io::Result<Vec<usize>> {
    let mut shares = Vec::new();
    while let Some(share) = tasks.join_next().await {
        shares.push(share??);
    }
    Ok(shares)
}

/// Which jobs are done.
struct Done(Vec<AtomicBool>);

impl Done {
    fn new(jobs: usize) -> Self {
        Self((0..jobs).map(|_| AtomicBool::new(false)).collect())
    }

    fn note(&self, job: u16) {
        assert!(!self.0[usize::from(job)].swap(true, SeqCst), "job {job} was done twice");
    }

    fn assert_all(&self) {
        assert!(self.0.iter().all(|done| done.load(SeqCst)), "a job was lost");
    }
}

/// A datagram is a job. The kernel keeps a few; a sender of more waits. An empty one tells a consumer to stop.
pub(crate) async fn datagrams(jobs: usize, consumers: usize) -> io::Result<Vec<usize>> {
    let (producer, queue) = UnixDatagram::pair()?;
    let (queue, done) = (Arc::new(queue), Arc::new(Done::new(jobs)));
    let mut tasks = JoinSet::new();
    for _ in 0..consumers {
        let (queue, done) = (queue.clone(), done.clone());
        tasks.spawn(async move {
            let (mut job, mut share) = ([0; 2], 0);
            while queue.recv(&mut job).await? == job.len() {
                done.note(u16::from_ne_bytes(job));
                share += 1;
            }
            Ok(share)
        });
    }
    for job in 0..jobs as u16 {
        producer.send(&job.to_ne_bytes()).await?;
    }
    for _ in 0..consumers {
        producer.send(b"").await?;
    }
    let shares = all(tasks).await?;
    done.assert_all();
    Ok(shares)
}

/// Consumers that are processes. They share one end of the socket, take jobs from it, and answer with process and job.
async fn processes(jobs: usize, consumers: usize) -> io::Result<Vec<usize>> {
    let (queue, theirs) = UnixSeqpacket::pair()?;
    let mut children = Vec::new();
    for _ in 0..consumers {
        let stdin = Stdio::from(theirs.as_fd().try_clone_to_owned()?);
        let mut command = Command::new(std::env::current_exe()?);
        children.push(command.arg("consume").stdin(stdin).kill_on_drop(true).spawn()?);
    }
    drop(theirs);
    for _ in 0..consumers {
        answer(&queue, &mut [0; 5]).await?; // so that all of them are there from the first job on
    }
    let produce = async {
        for job in 0..jobs as u16 {
            queue.send(&job.to_ne_bytes()).await?;
        }
        Ok(())
    };
    let ((), shares) = try_zip(produce, gather(&queue, jobs)).await?;
    drop(queue); // the end, for all of them
    let mut all = Vec::new();
    for mut child in children {
        all.push(child.id().and_then(|pid| shares.get(&pid).copied()).unwrap_or(0));
        match child.wait().await? {
            status if status.success() => {}
            status => return Err(io::Error::other(format!("a consumer has ended with {status}"))),
        }
    }
    Ok(all)
}

/// Takes the answers to all jobs. Returns which process has done how many.
async fn gather(queue: &UnixSeqpacket, jobs: usize) -> io::Result<BTreeMap<u32, usize>> {
    let (done, mut shares) = (Done::new(jobs), BTreeMap::new());
    for _ in 0..jobs {
        let mut message = [0; 6];
        answer(queue, &mut message).await?;
        let [low, high, pid @ ..] = message;
        done.note(u16::from_ne_bytes([low, high]));
        *shares.entry(u32::from_ne_bytes(pid)).or_insert(0) += 1;
    }
    done.assert_all();
    Ok(shares)
}

/// One message from any of the children.
async fn answer(queue: &UnixSeqpacket, message: &mut [u8]) -> io::Result<()> {
    let received = timeout(PATIENCE, queue.recv(message)).await;
    match received.map_err(|_| io::Error::other(format!("no consumer has reported anything for {PATIENCE:?}")))?? {
        0 => Err(io::Error::other("all consumers have gone")),
        _ => Ok(()),
    }
}

/// A child: takes jobs until there are no more.
async fn consume() -> io::Result<()> {
    let queue = UnixSeqpacket::from_std(io::stdin().as_fd().try_clone_to_owned()?)?;
    queue.send(b"ready").await?;
    let mut job = [0; 2];
    while queue.recv(&mut job).await? == job.len() {
        let answer = [&job[..], &std::process::id().to_ne_bytes()].concat();
        queue.send(&answer).await?;
    }
    Ok(())
}
