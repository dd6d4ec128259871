//! What a loop can wait for beside sockets: eventfd, timerfd, signals, pipes; and what it cannot: plain files.
//!
//! ```text
//! descriptors                   each section prints what it shows, and checks it; the program ends by itself
//! ```
//!
//! Everything that epoll(7) takes goes through `AsyncFd`, unless mini has a type for it. Linux only: other systems have
//! no eventfd and no timerfd, but kqueue(2), which has both built in.

use std::cell::Cell;
use std::io;
use std::process::ExitCode;

use mini_examples::run_async;

#[mini::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run_async("descriptors", async |args| {
        mini_examples::refuse_more(&args, "usage: descriptors")?;
        #[cfg(target_os = "linux")]
        linux::all().await?;
        #[cfg(not(target_os = "linux"))]
        println!("this system has no eventfd");
        Ok(())
    })
    .await
}

/// Which task holds which lock, and which waits for which: enough to see a deadlock before it is one.
#[derive(Default)]
struct Holders {
    /// Of each lock: the task that holds it.
    holder: [Cell<Option<usize>>; 2],
    /// Of each task: the lock that it waits for.
    waits_for: [Cell<Option<usize>>; 2],
}

impl Holders {
    /// `task` is about to wait for `lock`. An error if the holder of that lock waits for another, whose holder waits
    /// ... for a lock of `task`: each waits for the next, and nobody can go on.
    fn check(&self, task: usize, lock: usize) -> io::Result<()> {
        let mut wanted = Some(lock);
        while let Some(holder) = wanted.and_then(|lock| self.holder[lock].get()) {
            if holder == task {
                let text = format!("deadlock: task {task} waits for lock {lock}, and so, in the end, for itself");
                return Err(io::Error::new(io::ErrorKind::Deadlock, text));
            }
            wanted = self.waits_for[holder].get();
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::Cell;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

    use mini::io::{AsyncFd, Interest};
    use mini::net::unix::pipe;
    use mini::signal::unix::{SignalKind, signal};
    use mini::task::{JoinSet, yield_now};
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

    use super::Holders;

    pub(super) async fn all() -> io::Result<()> {
        completion().await?;
        lock().await?;
        deadlock().await?;
        timer().await?;
        signals().await?;
        pipes().await?;
        a_file().await
    }

    /// A counter of the kernel's, eventfd(2), with `count` in it. As a semaphore each read takes one, else all.
    fn counter(count: u32, flags: EventfdFlags) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(
            eventfd(count, flags | EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            Interest::READABLE,
        )
    }

    /// Waits until it is not zero, and takes what is in it.
    async fn take(counter: &AsyncFd<OwnedFd>) -> io::Result<u64> {
        let mut count = [0; 8];
        counter.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut count)?)).await?;
        Ok(u64::from_ne_bytes(count))
    }

    fn add(counter: &AsyncFd<OwnedFd>, more: u64) -> io::Result<()> {
        rustix::io::write(counter.get_ref(), &more.to_ne_bytes())?;
        Ok(())
    }

    /// Threads that know nothing of mini say when they are done. Several ends may come as one event: the count tells.
    async fn completion() -> io::Result<()> {
        let (done, sum) = (Arc::new(counter(0, EventfdFlags::empty())?), Arc::new(AtomicU64::new(0)));
        for number in 1..=10 {
            let (done, sum) = (done.clone(), sum.clone());
            thread::spawn(move || {
                sum.fetch_add(number * number, SeqCst);
                add(&done, 1)
            });
        }
        let (mut left, mut events) = (10, 0);
        while left > 0 {
            left -= take(&done).await?;
            events += 1;
        }
        assert_eq!(sum.load(SeqCst), 385);
        println!("completion: 10 threads have ended, told by {events} events of one eventfd");
        Ok(())
    }

    /// A semaphore of one is a lock: between processes too, as a descriptor can be passed on.
    async fn lock() -> io::Result<()> {
        let (lock, balance) = (Rc::new(counter(1, EventfdFlags::SEMAPHORE)?), Rc::new(Cell::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..10 {
            let (lock, balance) = (lock.clone(), balance.clone());
            tasks.spawn_local(async move {
                take(&lock).await?;
                let before = balance.get();
                yield_now().await; // without the lock all ten would have read 0
                balance.set(before + 1);
                add(&lock, 1)
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        assert_eq!(balance.get(), 10);
        println!("lock: 10 tasks have each added one, with an `await` in the middle");
        Ok(())
    }

    /// Two tasks take two locks, one in this order and one in the other. Each gets its first one; then they would wait
    /// for each other for ever, and no descriptor would ever become ready.
    async fn deadlock() -> io::Result<()> {
        let locks = Rc::new([counter(1, EventfdFlags::SEMAPHORE)?, counter(1, EventfdFlags::SEMAPHORE)?]);
        let holders = Rc::new(Holders::default());
        let mut tasks = JoinSet::new();
        for (task, order) in [[0, 1], [1, 0]].into_iter().enumerate() {
            let (locks, holders) = (locks.clone(), holders.clone());
            tasks.spawn_local(async move {
                let mut taken = Vec::new();
                let mut end = Ok(());
                for lock in order {
                    end = holders.check(task, lock);
                    if end.is_err() {
                        break;
                    }
                    holders.waits_for[task].set(Some(lock));
                    take(&locks[lock]).await?;
                    holders.waits_for[task].set(None);
                    holders.holder[lock].set(Some(task));
                    taken.push(lock);
                    yield_now().await; // so that both have one
                }
                for lock in taken {
                    holders.holder[lock].set(None);
                    add(&locks[lock], 1)?;
                }
                end
            });
        }
        let mut refused = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            refused.extend(ended.map_err(io::Error::other)?.err());
        }
        // The one that was told has given its lock back, and the other has gone on.
        let [error] = &refused[..] else { panic!("one of the two is refused: {refused:?}") };
        assert_eq!(error.kind(), io::ErrorKind::Deadlock);
        println!("{error}; the other task has finished");
        Ok(())
    }

    /// A timer of the kernel's, timerfd_create(2). mini's own timers need no descriptor; this is one that can be handed
    /// to other programs, and it counts what a slow reader has missed.
    async fn timer() -> io::Result<()> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let every = Duration::from_millis(2).try_into().map_err(io::Error::other)?;
        let times = Itimerspec { it_interval: every, it_value: every };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        let (mut ticks, mut reads) = (0, 0);
        while ticks < 5 {
            ticks += take(&timer).await?;
            reads += 1;
        }
        println!("timerfd: {ticks} times 2 ms, in {reads} reads");
        Ok(())
    }

    /// Two signals that come before they are heard may be one; the listener sees that there was some.
    async fn signals() -> io::Result<()> {
        let mut usr1 = signal(SignalKind::user_defined1())?;
        for _ in 0..2 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1)?;
        }
        usr1.recv().await.ok_or_else(|| io::Error::other("the runtime has ended"))?;
        println!("signals: {:?} was heard", SignalKind::user_defined1());
        Ok(())
    }

    async fn pipes() -> io::Result<()> {
        let (writer, reader) = pipe::pipe()?;
        let writing = mini::spawn(async move { writer.write_all(b"through a pipe").await });
        let (mut said, mut buf) = (Vec::new(), [0; 4]);
        while let read @ 1.. = reader.read(&mut buf).await? {
            said.extend_from_slice(&buf[..read]);
        }
        writing.await??;
        assert_eq!(said, b"through a pipe");
        println!("pipe: {:?}, in pieces of 4", String::from_utf8_lossy(&said));
        Ok(())
    }

    /// A plain file is always "ready": a read may wait for the disk all the same. So epoll refuses it, and mini reads
    /// on a thread, unless the kernel has the bytes in memory (`RWF_NOWAIT`, preadv2(2)).
    async fn a_file() -> io::Result<()> {
        let refused = AsyncFd::new(File::open("/proc/self/exe")?).expect_err("a file cannot be waited for");
        let bytes = mini::fs::read("/proc/self/exe").await?;
        assert_eq!(&bytes[..4], b"\x7fELF");
        println!("a file: {refused}; `mini::fs` reads its {} bytes", bytes.len());
        Ok(())
    }
}
