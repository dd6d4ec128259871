//! An event loop from scratch: tasks, timers, sockets, join and cancellation. It uses the standard library, epoll(7)
//! and the wakers of `futures-task`, and nothing of mini.
//!
//! ```text
//! loop
//! ```
//!
//! The program checks and prints six results, and ends: two tasks that take turns, three sleeps that end in order, a
//! text sent over a socket, an error and a panic that reach the task that joins them, a cancelled sleep, and a task
//! that nothing can wake. The guide's chapter "how an event loop works" explains the loop, and lists what mini does
//! differently.
#![allow(unsafe_code)] // four calls of the system

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{pending, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_task::{ArcWake, waker_ref};

// 1. Tasks, and the queue of those that are ready.

struct Task {
    /// `None` while it is polled.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    wake: Arc<Wake>,
    spawned_at: &'static Location<'static>,
}

/// What is behind a task's waker.
struct Wake {
    task: u64,
    ready: ReadyQueue,
}

/// The numbers of the tasks that are to be polled, in the order in which they were woken.
type ReadyQueue = Arc<Mutex<VecDeque<u64>>>;

/// To wake a task is to put its number into the queue. (From another thread that is not enough: the loop may sleep in
/// the kernel, and somebody has to wake it there. mini writes to an eventfd.)
impl ArcWake for Wake {
    fn wake_by_ref(this: &Arc<Self>) {
        let mut ready = this.ready.lock().unwrap();
        if !ready.contains(&this.task) {
            ready.push_back(this.task);
        }
    }
}

/// Lets all others that are ready go first.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

// 2. The loop.

/// All that the loop of a thread knows.
struct EventLoop {
    /// The tasks that are alive, by number.
    tasks: HashMap<u64, Task>,
    ready: ReadyQueue,
    /// The wakers of sleeping tasks, by time. The first entry is due first.
    timers: BTreeMap<(Instant, u64), Waker>,
    /// The waits for descriptors: the number of the wait, and the task's waker.
    waits: HashMap<RawFd, (u64, Waker)>,
    epoll: OwnedFd,
    /// For tasks, timers and waits.
    last_number: u64,
}

thread_local!(static LOOP: RefCell<EventLoop> = RefCell::new(EventLoop::new().expect("an epoll descriptor")));

/// The loop of this thread. In `f` nothing of a user's is called or dropped, as that may need the loop too.
fn with<R>(f: impl FnOnce(&mut EventLoop) -> R) -> R {
    LOOP.with_borrow_mut(f)
}

/// Runs all tasks until nothing is left to do. Returns the lines that spawned the tasks that nothing can wake any more.
pub(crate) fn run() -> io::Result<Vec<u32>> {
    loop {
        run_ready_tasks();
        let Some(timeout) = with(|this| this.longest_wait()) else {
            let lost: Vec<Task> = with(|this| this.tasks.drain().map(|(_, task)| task).collect());
            return Ok(lost.iter().map(|task| task.spawned_at.line()).collect());
        };
        with(|this| this.wait_for_events(timeout))?;
        with(|this| this.fire_timers());
    }
}

/// Polls the tasks that are ready now. Those that are woken meanwhile come in the next turn: a task that always wakes
/// itself must not keep the others from their sockets and timers.
fn run_ready_tasks() {
    let batch = with(|this| std::mem::take(&mut *this.ready.lock().unwrap()));
    for number in batch {
        let find = |this: &mut EventLoop| {
            let task = this.tasks.get_mut(&number)?; // it may have ended, or been cancelled
            Some((task.future.take()?, task.wake.clone()))
        };
        let Some((mut future, wake)) = with(find) else { continue };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker_ref(&wake)));
        let mut left = Some(future);
        let _ended = with(|this| match polled {
            Poll::Ready(()) => this.tasks.remove(&number),
            Poll::Pending => {
                if let Some(task) = this.tasks.get_mut(&number) {
                    task.future = left.take();
                }
                None // or it has been cancelled while it ran, and `left` is dropped
            }
        });
    }
}

impl EventLoop {
    fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer; the sections run it.
        let epoll = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just made this descriptor, so nobody else owns it; the sections run it.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let (tasks, ready) = (HashMap::new(), ReadyQueue::default());
        Ok(Self { tasks, ready, timers: BTreeMap::new(), waits: HashMap::new(), epoll, last_number: 0 })
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// How long to wait for events: not at all if a task is ready, else until the first timer, or (-1) without end; in
    /// milliseconds. `None` if nothing can come.
    fn longest_wait(&self) -> Option<i32> {
        if !self.ready.lock().unwrap().is_empty() {
            return Some(0);
        }
        let Some(((first, _), _)) = self.timers.first_key_value() else {
            return (!self.waits.is_empty()).then_some(-1);
        };
        let left = first.saturating_duration_since(Instant::now()).as_nanos();
        Some(i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)) // rounded up, or it would spin at the end
    }

    /// Asks the kernel what has happened, and wakes those that wait for it.
    fn wait_for_events(&mut self, timeout: i32) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: the kernel writes at most 64 events, for which there is room; the sections run it.
        let count = checked(unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 64, timeout) });
        match count {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
            Ok(count) => {
                for event in &events[..count as usize] {
                    if let Some((_, waker)) = self.forget(event.u64 as RawFd) {
                        waker.wake();
                    }
                }
            }
        }
        Ok(())
    }

    fn fire_timers(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            first.remove().wake();
        }
    }

    fn watch(&mut self, fd: RawFd, interest: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: fd as u64 };
        // SAFETY: `event` lives as long as the call; `hello_world` runs it.
        checked(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) }).map(drop)
    }

    fn forget(&mut self, fd: RawFd) -> Option<(u64, Waker)> {
        let wait = self.waits.remove(&fd)?;
        // SAFETY: a removal takes no event; `hello_world` runs it.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
        Some(wait)
    }

    /// Whether the event of this wait has not come.
    fn is_waiting(&self, fd: RawFd, number: u64) -> bool {
        self.waits.get(&fd).is_some_and(|(of, _)| *of == number)
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

// 3. To start a task, to wait for its end, and to end it.

/// The handle of a task: a future of its result.
pub(crate) struct JoinHandle<T> {
    task: u64,
    outcome: Rc<RefCell<Outcome<T>>>,
}

struct Outcome<T> {
    result: Option<Result<T, Failure>>,
    waiter: Option<Waker>,
}

/// Why a task has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Cancelled,
    Panicked(Box<dyn Any + Send>),
}

impl<T> Outcome<T> {
    fn set(&mut self, result: Result<T, Failure>) {
        self.result = Some(result);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
}

/// Starts a task. An error or a panic in it is its result, and stops nobody else.
#[track_caller]
pub(crate) fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    let outcome = Rc::new(RefCell::new(Outcome { result: None, waiter: None }));
    let (ended, spawned_at) = (outcome.clone(), Location::caller());
    let body = async move {
        let mut future = Box::pin(future);
        let polling = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(Failure::Panicked(panic))),
        });
        let result = polling.await;
        ended.borrow_mut().set(result);
    };
    let task = with(|this| {
        let task = this.number();
        let wake = Arc::new(Wake { task, ready: this.ready.clone() });
        ArcWake::wake_by_ref(&wake); // so that it is polled a first time
        this.tasks.insert(task, Task { future: Some(Box::pin(body)), wake, spawned_at });
        task
    });
    JoinHandle { task, outcome }
}

impl<T> JoinHandle<T> {
    /// Drops the task where it waits, with all that it owns. Does nothing if it has ended.
    pub(crate) fn cancel(&self) {
        if let Some(task) = with(|this| this.tasks.remove(&self.task)) {
            drop(task);
            self.outcome.borrow_mut().set(Err(Failure::Cancelled));
        }
    }
}

impl<T> JoinHandle<T> {
    /// The result, if the task has ended. For those outside of the loop.
    fn result(&self) -> Option<Result<T, Failure>> {
        self.outcome.borrow_mut().result.take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.outcome.borrow_mut();
        outcome.waiter = Some(cx.waker().clone());
        outcome.result.take().map_or(Poll::Pending, Poll::Ready)
    }
}

// 4. Time.

/// Waits until a time has come.
pub(crate) struct Sleep(Instant, u64);

pub(crate) fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration)
}

fn sleep_until(deadline: Instant) -> Sleep {
    Sleep(deadline, with(|this| this.number()))
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.0 {
            return Poll::Ready(());
        }
        with(|this| this.timers.insert((self.0, self.1), cx.waker().clone()));
        Poll::Pending
    }
}

/// A sleep that is dropped is forgotten: no loop stays for an hour because of a timeout that nobody needs any more.
impl Drop for Sleep {
    fn drop(&mut self) {
        with(|this| this.timers.remove(&(self.0, self.1)));
    }
}

// 5. Sockets.

/// Waits until a descriptor can be read from, or written to.
struct Readiness {
    fd: RawFd,
    interest: i32,
    /// Once it waits.
    number: Option<u64>,
}

impl Future for Readiness {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waker = cx.waker().clone();
        with(|this| {
            let number = match self.number {
                Some(number) if this.is_waiting(self.fd, number) => number,
                Some(_) => return Poll::Ready(Ok(())), // the event has come
                None => {
                    this.watch(self.fd, self.interest)?; // an error if another task waits for it: clone the socket
                    *self.number.insert(this.number())
                }
            };
            this.waits.insert(self.fd, (number, waker));
            Poll::Pending
        })
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            with(|this| if this.is_waiting(self.fd, number) { this.forget(self.fd) } else { None });
        }
    }
}

/// Tries, and waits only where the socket is not ready. Then it tries again.
async fn retry<T>(socket: &UnixStream, interest: i32, mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Readiness { fd: socket.as_raw_fd(), interest, number: None }.await?;
            }
            done => return done,
        }
    }
}

async fn read(mut socket: &UnixStream, buf: &mut [u8]) -> io::Result<usize> {
    retry(socket, libc::EPOLLIN, || socket.read(buf)).await
}

async fn write(mut socket: &UnixStream, buf: &[u8]) -> io::Result<usize> {
    retry(socket, libc::EPOLLOUT, || socket.write(buf)).await
}

// What it can do.

fn main() -> io::Result<()> {
    if let Some(arg) = std::env::args().nth(1) {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("what is {arg:?}? usage: loop")));
    }
    check()
}

/// All sections, in order.
pub(crate) fn check() -> io::Result<()> {
    taking_turns()?;
    sleeping()?;
    hello_world()?;
    failing()?;
    cancelling()?;
    nothing_can_wake_it()
}

fn taking_turns() -> io::Result<()> {
    let log = Rc::new(RefCell::new(String::new()));
    for name in ['a', 'b'] {
        let log = log.clone();
        spawn(async move {
            for _ in 0..3 {
                log.borrow_mut().push(name);
                yield_now().await;
            }
        });
    }
    assert!(run()?.is_empty());
    assert_eq!(*log.borrow(), "ababab");
    println!("two tasks take turns: {}", log.borrow());
    Ok(())
}

fn sleeping() -> io::Result<()> {
    let (begin, log) = (Instant::now(), Rc::new(RefCell::new(Vec::new())));
    for ms in [30, 10, 20] {
        let log = log.clone();
        spawn(async move {
            sleep_until(begin + Duration::from_millis(ms)).await;
            log.borrow_mut().push(ms);
        });
    }
    assert!(run()?.is_empty());
    assert!(begin.elapsed() >= Duration::from_millis(30));
    assert_eq!(*log.borrow(), [10, 20, 30]);
    println!("three sleeps end in the order of their times: {:?} ms", log.borrow());
    Ok(())
}

fn hello_world() -> io::Result<()> {
    let (a, b) = UnixStream::pair()?;
    a.set_nonblocking(true)?;
    b.set_nonblocking(true)?;
    let reader = spawn(async move {
        let (mut said, mut buf) = (Vec::new(), [0; 5]);
        while let count @ 1.. = read(&b, &mut buf).await? {
            said.extend_from_slice(&buf[..count]);
        }
        io::Result::Ok(String::from_utf8_lossy(&said).into_owned())
    });
    spawn(async move {
        for word in ["Hello, ", "world!"] {
            sleep(Duration::from_millis(1)).await; // the reader is there first, and waits
            write(&a, word.as_bytes()).await?;
        }
        io::Result::Ok(())
    });
    assert!(run()?.is_empty());
    let said = reader.result().expect("it has ended").expect("no panic")?;
    assert_eq!(said, "Hello, world!");
    println!("one task has heard from another: {said:?}");
    Ok(())
}

fn failing() -> io::Result<()> {
    let fails = spawn(async { "three".parse::<i32>() });
    let panics = spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
    let goes_on = spawn(async { 6 * 7 });
    let joins = spawn(async move { (fails.await, panics.await) });
    assert!(run()?.is_empty());
    let (error, panic) = joins.result().expect("it has ended").expect("no panic");
    let error = error.expect("no panic").expect_err("it is no number");
    let Err::<(), _>(Failure::Panicked(panic)) = panic else { unreachable!("it has panicked") };
    let panic = panic.downcast_ref::<&str>().expect("a text");
    println!("an error stays where it is awaited: {error}; a panic too: {panic}");
    assert_eq!(goes_on.result().expect("it has ended").expect("it is not concerned"), 42);
    Ok(())
}

fn cancelling() -> io::Result<()> {
    let begin = Instant::now();
    let hour = spawn(sleep(Duration::from_secs(3600)));
    let end = spawn(async move {
        yield_now().await;
        hour.cancel();
        hour.await
    });
    assert!(run()?.is_empty());
    assert!(matches!(end.result(), Some(Ok(Err(Failure::Cancelled)))));
    assert!(begin.elapsed() < Duration::from_secs(3600));
    println!("a task that would sleep for an hour is cancelled, and the loop ends");
    Ok(())
}

fn nothing_can_wake_it() -> io::Result<()> {
    let line = line!() + 1;
    spawn(pending::<()>());
    assert_eq!(run()?, [line]);
    println!("no waker is left for the task of line {line}: the loop reports it, and ends");
    Ok(())
}
