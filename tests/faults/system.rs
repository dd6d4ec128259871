//! Scenarios with files, processes, signals, timers, wakes and threads.

use std::future::poll_fn;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use mini::fs;
use mini::process::Command;
use mini::runtime::Runtime;
use mini::signal::unix::{SignalKind, signal};
use mini::time::{Instant, interval, sleep, timeout};
use mini_tests::child_support::children as known_children;

use crate::verdict::Verdict;

/// Written, read in several ways, listed and removed.
pub(crate) async fn files(verdict: &Arc<Verdict>) {
    let dir = std::env::temp_dir().join(format!("mini-faults-files-{}", std::process::id()));
    for length in [0, 10, 5_000, 700_000] {
        let text: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let path = dir.join("file");
        let work = || async {
            fs::create_dir_all(&dir).await?;
            fs::write(&path, &text).await?;
            let mut file = fs::File::open(&path).await?;
            let (mut read, again) = (Vec::new(), fs::read(&path).await?);
            file.read_to_end(&mut read).await?;
            if file.metadata().await?.len() != text.len() as u64 || read != text || again != text {
                return Err(io::Error::other("the file differs"));
            }
            let mut entries = fs::read_dir(&dir).await?;
            while entries.next_entry().await?.is_some() {}
            fs::remove_dir_all(&dir).await
        };
        if verdict.insist("file", work).await.is_some() {
            verdict.done();
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
}

/// Children that echo, end, are killed, are dropped; and at the end none is left, not even as a zombie.
pub(crate) async fn children(verdict: &Arc<Verdict>) {
    let echo = || async {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"ping").await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        if output.stdout == b"ping" { Ok(()) } else { Err(io::Error::other("cat says something else")) }
    };
    let killed = || async { Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?.kill().await };
    let dropped = || async { Command::new("sleep").arg("1000").kill_on_drop(true).spawn().map(drop) };
    for _ in 0..4 {
        let done = [
            verdict.insist("echo", echo).await,
            verdict.insist("kill", killed).await,
            verdict.insist("drop", dropped).await,
        ];
        done.into_iter().flatten().for_each(|()| verdict.done());
    }
    for _ in 0..500 {
        if known_children().is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    verdict.wrong(format_args!("children are left: {:?}", known_children()));
}

/// Each signal is heard before the next one is sent.
pub(crate) async fn signals(verdict: &Arc<Verdict>) {
    let listen = || async { signal(SignalKind::user_defined1()) };
    let Some(mut signals) = verdict.insist("listen", listen).await else { return };
    let own = std::process::id().to_string();
    for _ in 0..10 {
        let raise = || async { Command::new("kill").args(["-USR1", &own]).status().await };
        if verdict.insist("kill", raise).await.is_none() {
            return;
        }
        match signals.recv().await {
            Some(()) => verdict.done(),
            None => verdict.wrong("a signal got lost"),
        }
    }
}

/// Never early, and not for ever.
pub(crate) async fn timers(verdict: &Arc<Verdict>) {
    for number in 1..30 {
        let (begin, nap) = (Instant::now(), Duration::from_micros(number * 211));
        sleep(nap).await;
        let is_over = timeout(nap, std::future::pending::<()>()).await.is_err();
        if begin.elapsed() < nap * 2 || !is_over {
            verdict.wrong("a timer was early");
        }
        let mut beat = interval(Duration::from_millis(1));
        for _ in 0..3 {
            beat.tick().await;
        }
        verdict.done();
    }
}

/// Another thread wakes a task that waits, while the runtime waits for sockets too: each wake calls the notifier.
pub(crate) fn wakes(runtime: &Runtime, verdict: &Arc<Verdict>) {
    const WAKES: usize = 200;
    let place = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
    let (asked, is_asked) = mpsc::channel::<usize>();
    let there = place.clone();
    let waker = insist_on_thread(move || {
        for number in &is_asked {
            thread::sleep(Duration::from_micros(300)); // so that the runtime has gone to rest
            there.0.store(number, SeqCst);
            if let Some(waker) = there.1.lock().expect("not poisoned").take() {
                waker.wake();
            }
        }
    });
    runtime.block_on(async {
        let bind = || mini::net::UdpSocket::bind("127.0.0.1:0");
        let Some(socket) = verdict.insist("bind", bind).await else { return };
        let quiet = mini::spawn(async move { socket.recv(&mut [0; 8]).await });
        for number in 1..=WAKES {
            asked.send(number).expect("the other thread");
            poll_fn(|cx| {
                *place.1.lock().expect("not poisoned") = Some(cx.waker().clone());
                if place.0.load(SeqCst) == number { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            verdict.done();
        }
        let _ = quiet.cancel().await;
    });
    drop(asked);
    waker.join().expect("no panic");
}

/// Starts a thread of the scenario's own, which may take several tries as well.
fn insist_on_thread(body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let body = Arc::new(Mutex::new(Some(body)));
    loop {
        let body = body.clone();
        let run = move || {
            if let Some(body) = body.lock().expect("not poisoned").take() {
                body();
            }
        };
        if let Ok(thread) = thread::Builder::new().spawn(run) {
            return thread;
        }
    }
}

/// How long a task may wait for a worker. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Jobs, and tasks without a thread in `block_on`: whether threads can be started or not, each ends with its value, or
/// a job with an error.
pub(crate) fn threads(runtime: &Runtime, verdict: &Arc<Verdict>) {
    for number in 0..30_u64 {
        let (said, hear) = mpsc::channel();
        drop(runtime.spawn(async move { said.send(number) }));
        let jobs: Vec<_> = (0..3).map(|part| runtime.spawn_blocking(move || number + part)).collect();
        runtime.block_on(async {
            for (part, job) in (0..).zip(jobs) {
                match job.await {
                    Ok(sum) if sum == number + part => verdict.done(),
                    Ok(sum) => verdict.wrong(format_args!("{sum} is not {number} + {part}")),
                    Err(lost) if lost.to_string().contains("no thread could be started") => verdict.over(),
                    Err(lost) => verdict.wrong(lost),
                }
            }
        });
        if number % 5 == 4 {
            runtime.block_on(sleep(Duration::from_millis(1)));
        }
        // With several workers the task runs by itself, as soon as there is a thread; otherwise it needs a thread in
        // `block_on`.
        let (has_watch, begin) = (runtime.metrics().num_workers() > 1, std::time::Instant::now());
        while hear.recv_timeout(Duration::from_millis(100)).is_err() {
            if !has_watch {
                runtime.block_on(mini::task::yield_now());
            } else if begin.elapsed() > PATIENCE {
                return verdict.wrong("a task is left alone");
            }
        }
        verdict.done();
    }
}
