//! What a runtime is made of, from a single poll to a task that is cancelled while it is being cancelled.
//!
//! ```text
//! tour                          each section prints what it shows, and checks it; the program ends by itself
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mini::net::UnixStream;
use mini::task::{JoinHandle, yield_now};
use mini::time::{Instant, sleep};

#[mini::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    if let Some(arg) = std::env::args().nth(1) {
        return Err(std::io::Error::other(format!("what is {arg:?}? usage: tour")));
    }
    run().await
}

/// All sections, in order.
pub(crate) async fn run() -> std::io::Result<()> {
    polling_by_hand();
    an_executor();
    taking_turns().await;
    joining().await;
    a_panic().await;
    sleeping().await;
    hello_world().await?;
    cancelling().await;
    cleaning_up().await;
    cancelled_twice().await;
    Ok(())
}

/// Prints what has been shown.
fn shown(what: &str) {
    println!("- {what}");
}

/// A future is a value with one method. It does something only in `poll`.
fn polling_by_hand() {
    let mut left = 3;
    let mut countdown = pin!(poll_fn(move |_| {
        left -= 1;
        if left == 0 { Poll::Ready("lift-off") } else { Poll::Pending }
    }));
    let mut cx = Context::from_waker(Waker::noop());
    let mut polls = 1;
    let output = loop {
        match countdown.as_mut().poll(&mut cx) {
            Poll::Ready(output) => break output,
            Poll::Pending => polls += 1,
        }
    };
    assert_eq!((output, polls), ("lift-off", 3));
    shown("a future, polled by hand with a waker that does nothing, is ready at the third poll");
}

/// An executor is a queue of futures. A waker puts its future back into the queue.
fn an_executor() {
    type Queue = Arc<Mutex<VecDeque<Arc<Task>>>>;
    struct Task {
        future: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
        queue: Queue,
    }
    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.queue.lock().unwrap().push_back(self.clone());
        }
    }
    fn spawn(queue: &Queue, future: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Task { future: Mutex::new(Box::pin(future)), queue: queue.clone() }).wake();
    }
    fn run(queue: &Queue) {
        while let Some(task) = { queue.lock().unwrap().pop_front() } {
            let waker = Waker::from(task.clone());
            let _ = task.future.lock().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
        }
    }

    let (queue, log) = (Queue::default(), Arc::new(Mutex::new(String::new())));
    for name in ['a', 'b'] {
        let log = log.clone();
        spawn(&queue, async move {
            for _ in 0..3 {
                log.lock().unwrap().push(name);
                yield_now().await;
            }
        });
    }
    run(&queue);
    assert_eq!(*log.lock().unwrap(), "ababab");
    shown("an executor in thirty lines lets two tasks take turns");
}

/// mini's own executor, and its `yield_now`: the task goes behind all others that are ready.
///
/// A task that has computed for 100 µs would go behind those that have not, also if the system has only stopped the
/// thread for so long. Under a paused clock no turn takes any time.
async fn taking_turns() {
    mini::time::pause();
    sleep(Duration::from_millis(1)).await; // the worker looks at the clock when it has nothing to do
    let log = Rc::new(RefCell::new(String::new()));
    let start = |name| {
        let log = log.clone();
        mini::spawn_local(async move {
            for _ in 0..3 {
                log.borrow_mut().push(name);
                yield_now().await;
            }
        })
    };
    let (a, b) = (start('a'), start('b'));
    a.await.unwrap();
    b.await.unwrap();
    mini::time::resume();
    assert_eq!(*log.borrow(), "ababab");
    shown("so do two tasks of mini, in round robin");
}

/// A task has an output, and keeps it for the join handle.
async fn joining() {
    let task = mini::spawn(async { 6 * 7 });
    assert_eq!(task.await.unwrap(), 42);
    let early = mini::spawn(async { "over already" });
    while !early.is_finished() {
        yield_now().await;
    }
    assert_eq!(early.await.unwrap(), "over already");
    shown("join returns the result, even of a task that has ended before");
}

/// A panic ends its task, and no other.
async fn a_panic() {
    let other = mini::spawn(async {
        yield_now().await;
        "still here"
    });
    let line = line!() + 1;
    let child: JoinHandle<()> = mini::spawn(async { panic!("on purpose") });
    let error = child.await.unwrap_err();
    assert!(error.is_panic() && error.location().line() == line);
    assert!(error.to_string().contains("on purpose"));
    assert_eq!(other.await.unwrap(), "still here");
    shown("a panic stops its own task, and reaches the task that joins it");
}

/// Sleeping may take longer, but never less.
async fn sleeping() {
    let sleepers: Vec<_> = [1300, 10, 0, 700]
        .map(|micros| {
            mini::spawn(async move {
                let (begin, time) = (Instant::now(), Duration::from_micros(micros));
                sleep(time).await;
                begin.elapsed() >= time
            })
        })
        .into();
    for sleeper in sleepers {
        assert!(sleeper.await.unwrap());
    }
    shown("no sleeper wakes early");
}

/// A task that waits for a socket is woken by the kernel.
async fn hello_world() -> std::io::Result<()> {
    let (near, far) = UnixStream::pair()?;
    let reader = mini::spawn(async move {
        let mut text = [0; 13];
        far.read_exact(&mut text).await.map(|()| text)
    });
    yield_now().await; // the reader waits by now
    near.write_all(b"Hello, ").await?;
    yield_now().await;
    near.write_all(b"world!").await?;
    let text = reader.await??;
    assert_eq!(&text, b"Hello, world!");
    shown("\"Hello, world!\" comes over a pair of sockets, in two pieces");
    Ok(())
}

/// A task can be stopped wherever it awaits.
async fn cancelling() {
    let suspended = mini::spawn(pending::<()>());
    yield_now().await;
    assert!(suspended.cancel().await.unwrap_err().is_cancelled());
    let queued: JoinHandle<()> = mini::spawn(async { unreachable!("it is never polled") });
    assert!(queued.cancel().await.unwrap_err().is_cancelled());
    let finished = mini::spawn(async { 7 });
    while !finished.is_finished() {
        yield_now().await;
    }
    assert_eq!(finished.cancel().await.unwrap(), 7);
    shown("cancelled: one that is suspended, one that is queued; one that has finished keeps its result");
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Work that has to be done at the end, whatever the end is, belongs into a destructor.
async fn cleaning_up() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let task = mini::spawn_local({
        let log = log.clone();
        async move {
            let _outer = OnDrop(|| log.borrow_mut().push("outer"));
            let _inner = OnDrop(|| log.borrow_mut().push("inner"));
            pending::<()>().await;
            log.borrow_mut().push("never");
        }
    });
    yield_now().await;
    assert!(task.cancel().await.is_err());
    assert_eq!(*log.borrow(), ["inner", "outer"]);
    shown("cancel() returns when the clean-up has been done, in the order of destructors");
}

/// The clean-up of a cancelled task cancels it once more: that changes nothing, and the clean-up is done once.
async fn cancelled_twice() {
    let (handle, cleanups) = (Rc::new(RefCell::new(None::<mini::task::AbortHandle>)), Rc::new(RefCell::new(0)));
    let task: JoinHandle<()> = mini::spawn_local({
        let (handle, cleanups) = (handle.clone(), cleanups.clone());
        async move {
            let _cleanup = OnDrop(|| {
                *cleanups.borrow_mut() += 1;
                handle.borrow().as_ref().expect("set below").abort();
            });
            pending().await
        }
    });
    *handle.borrow_mut() = Some(task.abort_handle());
    yield_now().await;
    task.abort();
    assert!(task.cancel().await.unwrap_err().is_cancelled());
    assert_eq!(*cleanups.borrow(), 1);
    shown("a task that is cancelled while it is being cancelled is cleaned up once");
}
