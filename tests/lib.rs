//! What the integration tests share: a time limit, every flavour, futures that count, a channel between any two
//! threads.
//!
//! Called by the files in `tests/`. Each test body runs under a limit: what hangs, fails.
//!
//! Rejected: the limits of a test runner (plain `cargo test` has none).

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use mini::runtime::{Builder, Runtime};

pub mod child_support;
pub mod net_support;
#[cfg(feature = "sim")]
pub mod seeds_support;

/// How long a test may take before it counts as a hang. Generous: no part of any assertion.
///
/// A minute, or as many seconds as `MINI_TEST_LIMIT` said when this was built: under a sanitizer all takes longer.
pub const LIMIT: Duration = Duration::from_secs(match option_env!("MINI_TEST_LIMIT") {
    Some(seconds) => match u64::from_str_radix(seconds, 10) {
        Ok(seconds) => seconds,
        Err(_) => panic!("MINI_TEST_LIMIT is a number of seconds"),
    },
    None => 60,
});

/// Runs `body` on a thread of its own and passes its panic on.
///
/// # Panics
///
/// If `body` does, or takes longer than `limit`.
pub fn within(limit: Duration, body: impl FnOnce() + Send + 'static) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    run(test, limit, body);
}

fn run(name: String, limit: Duration, body: impl FnOnce() + Send + 'static) {
    let (running, ended) = mpsc::channel::<()>();
    let thread = thread::Builder::new()
        .name(name.clone())
        .spawn(move || {
            let _running = running;
            body();
        })
        .expect("a thread for the test");
    if ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("{name} hangs: it is not done after {limit:?}");
    }
    if let Err(payload) = thread.join() {
        panic::resume_unwind(payload);
    }
}

/// Builders of all flavours, with names. Shutdowns wait as long as it takes, so that one that hangs is seen.
pub fn flavours() -> Vec<(String, Builder)> {
    let mut all = vec![("current_thread".to_owned(), Builder::new_current_thread().shutdown_grace(LIMIT * 10).clone())];
    for workers in [1, 2, 4] {
        all.push((format!("multi_thread({workers})"), multi_thread(workers)));
    }
    all
}

/// A builder of a multi-threaded runtime, as [`flavours`] has them.
pub fn multi_thread(workers: usize) -> Builder {
    Builder::new_multi_thread().worker_threads(workers).shutdown_grace(LIMIT * 10).clone()
}

/// Waits without awaiting: what a user must not do, and what the stall rule is for.
pub fn spin_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// Runs `body` with a builder of each flavour, each time [within](within()) the [`LIMIT`].
pub fn on_each_flavour(body: impl Fn(Builder) + Send + Sync + 'static) {
    on_those(flavours(), body);
}

/// As [`on_each_flavour`], with the flavours that have one worker, which runs tasks in a fixed order.
pub fn on_single_workers(body: impl Fn(Builder) + Send + Sync + 'static) {
    on_those(flavours().into_iter().take(2).collect(), body);
}

/// As [`on_each_flavour`], with the flavour in which `block_on` runs all tasks.
pub fn on_current_thread(body: impl Fn(Builder) + Send + Sync + 'static) {
    on_those(flavours().into_iter().take(1).collect(), body);
}

fn on_those(flavours: Vec<(String, Builder)>, body: impl Fn(Builder) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let test = thread::current().name().unwrap_or("a test").to_owned();
    for (flavour, builder) in flavours {
        let body = body.clone();
        run(format!("{test} on {flavour}"), LIMIT, move || body(builder));
    }
}

/// Set in the process that [`in_child`] starts.
const CHILD: &str = "MINI_TEST_CHILD";

/// Runs `body`, a part of the test called `test`, in a process of its own, and returns what the process wrote to
/// stderr.
///
/// In that process it returns `None`, and the test is over.
///
/// # Panics
///
/// If the process does not end well.
pub fn in_child(test: &str, body: impl FnOnce() + Send + 'static) -> Option<String> {
    if std::env::var_os(CHILD).is_some() {
        within(LIMIT, body);
        return None;
    }
    let output = child_support::own_test(test).env(CHILD, "1").output().expect("a child process");
    let (said, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its child process:\n{said}\n{stderr}");
    assert!(said.contains("1 passed"), "there is no test called {test}:\n{said}");
    Some(stderr.into_owned())
}

/// A panic, as a user sees it.
#[derive(Clone, Debug, Default)]
pub struct Caught {
    /// What it said.
    pub message: String,
    /// The file it blames.
    pub file: String,
    /// The line it blames.
    pub line: u32,
}

/// The number of the only line in `source` that ends with `mark`.
///
/// # Panics
///
/// If there is none, or more than one.
pub fn line_of(source: &str, mark: &str) -> u32 {
    let lines = (1..).zip(source.lines());
    let found: Vec<u32> = lines.filter(|(_, line)| line.ends_with(mark)).map(|(number, _)| number).collect();
    assert_eq!(found.len(), 1, "{mark} marks one line");
    found[0]
}

thread_local! { static LAST: RefCell<Caught> = RefCell::default() }

/// The panic of `body`, which must panic.
///
/// # Panics
///
/// If `body` does not.
pub fn caught<T>(body: impl FnOnce() -> T) -> Caught {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map_or((String::new(), 0), |at| (at.file().to_owned(), at.line()));
            let text = text_of(info.payload()).to_owned();
            LAST.with_borrow_mut(|last| *last = Caught { message: text, file: place.0, line: place.1 });
            before(info);
        }));
    });
    assert!(panic::catch_unwind(AssertUnwindSafe(body)).is_err(), "this should have panicked");
    LAST.take()
}

/// What a panic payload says, if it is text.
pub fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}

/// Counts what happened to one future, one output or one waker.
#[derive(Debug, Default)]
pub struct Counts {
    polls: AtomicUsize,
    wakes: AtomicUsize,
    drops: AtomicUsize,
}

impl Counts {
    /// All zero.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// How often the future was polled.
    pub fn polls(&self) -> usize {
        self.polls.load(SeqCst)
    }

    /// How often the waker made of these counts was woken.
    pub fn wakes(&self) -> usize {
        self.wakes.load(SeqCst)
    }

    /// How often the future, or a [`Token`], was dropped.
    pub fn drops(&self) -> usize {
        self.drops.load(SeqCst)
    }
}

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, SeqCst);
    }
}

/// A future that counts its polls and drops.
pub fn counted<T, F: FnMut(&mut Context<'_>) -> Poll<T>>(counts: &Arc<Counts>, poll: F) -> Counted<F> {
    Counted { token: Token::new(counts), poll }
}

/// A [`counted`] future that is never ready.
pub fn never(counts: &Arc<Counts>) -> Counted<impl FnMut(&mut Context<'_>) -> Poll<()> + Send + 'static> {
    counted(counts, |_| Poll::Pending)
}

/// Made by [`counted`].
#[derive(Debug)]
pub struct Counted<F> {
    token: Token,
    poll: F,
}

impl<F> Unpin for Counted<F> {}

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T>> Future for Counted<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.token.0.polls.fetch_add(1, SeqCst);
        (self.poll)(cx)
    }
}

/// Counts its drop.
#[derive(Debug)]
pub struct Token(Arc<Counts>);

impl Token {
    /// A token that adds to the drops of `counts`.
    pub fn new(counts: &Arc<Counts>) -> Self {
        Self(counts.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, SeqCst);
    }
}

/// Calls a closure when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: FnMut()> fmt::Debug for OnDrop<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDrop")
    }
}

/// Polls `future` once; wakes are counted.
pub fn poll_with<F: Future + Unpin>(future: &mut F, counts: &Arc<Counts>) -> Poll<F::Output> {
    let waker = Waker::from(counts.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Yields until `is_so`.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        mini::task::yield_now().await;
    }
}

/// Waits on a plain thread, as a foreign executor would.
pub fn block_on_elsewhere<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Runs `body` while another thread is in `block_on`, as soon as `first` has ended there.
///
/// # Panics
///
/// If `first` or `body` does.
pub fn beside_block_on(runtime: &Runtime, first: impl Future<Output = ()> + Send, body: impl FnOnce()) {
    let (entered, has_entered) = mpsc::channel();
    let (end, ended) = oneshot::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            runtime.block_on(async {
                first.await;
                entered.send(()).expect("the other thread waits for it");
                ended.await
            })
        });
        has_entered.recv().expect("the other thread comes to it");
        body();
        drop(end);
    });
}

/// A channel for one value, made of a mutex and a waker: it knows nothing of any runtime.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None, is_over: false }));
    (Sender(slot.clone()), Receiver(slot))
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    is_over: bool,
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the value of a [`oneshot`]. If it is dropped without sending, the wait ends with `None`.
#[must_use = "dropping it ends the wait"]
pub struct Sender<T>(Arc<Mutex<Slot<T>>>);

impl<T> Sender<T> {
    /// Sends `value` and wakes the receiver.
    pub fn send(self, value: T) {
        lock(&self.0).value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.0);
        slot.is_over = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Waits for the value of a [`oneshot`].
pub struct Receiver<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mine = cx.waker().clone();
        let mut slot = lock(&self.0);
        if slot.is_over {
            return Poll::Ready(slot.value.take());
        }
        let displaced = slot.waker.replace(mine);
        drop(slot);
        drop(displaced);
        Poll::Pending
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver")
    }
}
