//! A runtime for tests, of which the test itself is the executor.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::{Blocking, Delay, EnterGuard, Events, Reactor, enter};

/// Longer than anything here takes: only a hang gets there.
const HANG: Duration = Duration::from_secs(20);

/// Its task is woken at once, to look again.
pub(crate) const NO_DELAY: Delay = |_, _| {
    let mut is_over = false;
    Box::pin(poll_fn(move |cx| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }))
};

pub(crate) struct Rig {
    pub(crate) reactor: Reactor,
    events: Events,
    _entered: EnterGuard,
}

/// A task that counts how often it is woken.
#[derive(Default)]
pub(crate) struct Task(AtomicUsize);

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with_pool(|job| drop(std::thread::spawn(job)))
    }

    pub(crate) fn with_pool(pool: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static) -> Rig {
        let reactor = Reactor::new().unwrap();
        let pool: Blocking = Arc::new(pool);
        let _entered = enter(&reactor, &pool, NO_DELAY);
        Rig { reactor, events: Events::new(), _entered }
    }

    /// One turn, which has to bring something.
    pub(crate) fn turn(&mut self) -> usize {
        let events = self.reactor.turn(&mut self.events, Some(HANG)).unwrap();
        assert!(events > 0, "nothing happened");
        events
    }

    /// Turns until there is nothing more.
    pub(crate) fn settle(&mut self) {
        while self.reactor.turn(&mut self.events, Some(Duration::ZERO)).unwrap() > 0 {}
    }

    /// Runs one future to its end.
    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = Arc::new(Notify(self.reactor.clone())).into();
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            let start = Instant::now();
            self.reactor.turn(&mut self.events, Some(HANG)).unwrap();
            assert!(start.elapsed() < HANG, "it hangs");
        }
    }
}

/// Wakes the thread that turns the reactor.
struct Notify(Reactor);

impl Wake for Notify {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

impl Task {
    pub(crate) fn new() -> Arc<Task> {
        Arc::default()
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub(crate) fn poll<F: Future + ?Sized>(self: &Arc<Task>, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&self.waker()))
    }

    pub(crate) fn waker(self: &Arc<Task>) -> Waker {
        Arc::clone(self).into()
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Runs two futures to their ends.
pub(crate) async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_done, mut b_done) = (None, None);
    poll_fn(move |cx| {
        if a_done.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(cx)
        {
            a_done = Some(output);
        }
        if b_done.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(cx)
        {
            b_done = Some(output);
        }
        if a_done.is_some() && b_done.is_some() {
            return Poll::Ready((a_done.take().unwrap(), b_done.take().unwrap()));
        }
        Poll::Pending
    })
    .await
}

/// Runs `test`, which is called `name`, in a process of its own, with at most `files` open files.
pub(crate) fn alone(name: &str, files: u32, test: impl FnOnce()) {
    const MARK: &str = "MINI_NET_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let this = std::env::current_exe().unwrap();
    let script = format!("ulimit -n {files} && exec \"$0\" --exact {name} --test-threads=1");
    let output = Command::new("sh").arg("-c").arg(script).arg(this).env(MARK, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// An unused path, removed at the end.
pub(crate) struct TempPath(pub(crate) std::path::PathBuf);

impl TempPath {
    pub(crate) fn new(name: &str) -> TempPath {
        let path = std::env::temp_dir().join(format!("mini-net-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        TempPath(path)
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn is_shut_down<T>(result: &Poll<io::Result<T>>) -> bool {
    matches!(result, Poll::Ready(Err(e)) if e.to_string().contains("has shut down"))
}
