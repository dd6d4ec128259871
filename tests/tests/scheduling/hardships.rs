//! What the user's code may do to a worker without ending it: wakers and payloads that panic, tasks that keep each
//! other awake, tasks that still sleep when the runtime ends. `panics.rs` has the panics of tasks.

use std::future::{pending, poll_fn};
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use mini::net::UdpSocket;
use mini::runtime::Runtime;
use mini::task::{JoinError, yield_now};
use mini::time::{Duration, Sleep, sleep};
use mini_tests::net_support::{ANY_PORT, udp, watched};
use mini_tests::{
    Counts, LIMIT, OnDrop, Receiver, Sender, block_on_elsewhere, counted, multi_thread, on_each_flavour, oneshot,
    until, within,
};

const MS: Duration = Duration::from_millis(1);

/// A waker that says that it was woken, and then panics.
fn bad() -> (Waker, Receiver<()>) {
    struct Bad(Mutex<Option<Sender<()>>>);
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            let tell = self.0.lock().unwrap().take();
            tell.expect("woken once").send(());
            panic!("a waker of the user's own");
        }
    }
    let (tell, told) = oneshot();
    (Waker::from(Arc::new(Bad(Mutex::new(Some(tell))))), told)
}

/// A timer that will wake `waker` when `time` has passed.
fn timer(time: Duration, waker: &Waker) -> Sleep {
    loop {
        let mut nap = sleep(time);
        if Pin::new(&mut nap).poll(&mut Context::from_waker(waker)).is_pending() {
            return nap;
        }
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A wait for `socket` that will wake `waker`.
fn wait_for(socket: &Arc<UdpSocket>, waker: &Waker) -> Wait {
    let socket = socket.clone();
    let mut wait: Wait = Box::pin(async move { drop(socket.readable().await) });
    assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    wait
}

/// Runs `body` in `block_on`, then with no thread in `block_on`, and shows each time that the worker goes on.
fn on_each_kind_of_worker<F>(body: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    on_each_flavour(move |builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(body());
        runtime.block_on(work());
        if is_multi_threaded(&runtime) {
            block_on_elsewhere(runtime.spawn(body())).unwrap();
            block_on_elsewhere(runtime.spawn(work())).unwrap();
        }
    });
}

fn is_multi_threaded(runtime: &Runtime) -> bool {
    format!("{runtime:?}").contains("multi_thread")
}

async fn work() {
    let tasks: Vec<_> = (0..20).map(|_| mini::spawn(yield_now())).collect();
    for task in tasks {
        task.await.unwrap();
    }
    sleep(MS).await;
}

#[test]
fn a_timers_panicking_waker_does_not_end_the_worker() {
    on_each_kind_of_worker(|| async {
        let (waker, woken) = bad();
        let nap = timer(MS, &waker);
        assert_eq!(woken.await, Some(()));
        nap.await;
    });
}

#[test]
fn a_sockets_panicking_waker_does_not_end_the_worker() {
    on_each_kind_of_worker(|| async {
        let socket = Arc::new(udp().await);
        let to = socket.local_addr().unwrap();
        let (waker, woken) = bad();
        let wait = wait_for(&socket, &waker);
        let (tell, is_waiting) = oneshot();
        let mut tell = Some(tell);
        // Woken by the same event, after the waker that panics.
        let task = mini::spawn(async move {
            let received = watched(socket.recv(&mut [0; 8]), || drop(tell.take())).await;
            received.unwrap()
        });
        assert_eq!(is_waiting.await, None::<()>);
        std::net::UdpSocket::bind(ANY_PORT).unwrap().send_to(b"one", to).unwrap();
        assert_eq!(task.await.unwrap(), 3);
        assert_eq!(woken.await, Some(()));
        drop(wait);
    });
}

#[test]
fn a_panicking_waker_at_the_end_keeps_nobody_else_waiting() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let good = Waker::from(counts.clone());
        let ((bad_timer, timed), (bad_socket, received)) = (bad(), bad());
        let waits = runtime.block_on(async {
            let socket = Arc::new(udp().await);
            let timers = [&good, &bad_timer, &good].map(|waker| timer(LIMIT * 10, waker));
            let sockets = [&good, &bad_socket, &good].map(|waker| wait_for(&socket, waker));
            (timers, sockets)
        });
        drop(runtime);
        assert_eq!(counts.wakes(), 4);
        assert_eq!((block_on_elsewhere(timed), block_on_elsewhere(received)), (Some(()), Some(())));
        drop(waits);
    });
}

#[test]
fn a_payload_that_panics_when_dropped_does_not_end_a_worker_that_nobody_blocks_on() {
    within(LIMIT, || {
        for workers in [1, 2, 4] {
            let (send, reported) = mpsc::channel();
            let hook = move |error: &JoinError| send.send(error.is_panic()).unwrap();
            let runtime = multi_thread(workers).on_task_panic(hook).build().unwrap();
            for _ in 0..5 {
                drop(runtime.spawn(async { panic_any(OnDrop(|| panic!("in the payload"))) }));
                assert!(reported.recv().unwrap());
                block_on_elsewhere(runtime.spawn(work())).unwrap();
            }
        }
    });
}

/// One of two that hand a ball to each other for ever.
async fn play(ball: Arc<Mutex<(usize, [Option<Waker>; 2])>>, me: usize) {
    poll_fn(|cx| {
        let mut guard = ball.lock().unwrap();
        let (holder, wakers) = &mut *guard;
        wakers[me] = Some(cx.waker().clone());
        let other = if *holder == me { wakers[1 - me].take() } else { None };
        if *holder == me {
            *holder = 1 - me;
        }
        drop(guard);
        other.into_iter().for_each(Waker::wake);
        Poll::<()>::Pending
    })
    .await
}

/// The worker takes turns between its queues; a pair whose rhythm fits the turns must not get them all.
#[test]
fn a_pair_starves_nobody_at_whichever_turn_it_begins() {
    within(LIMIT, || {
        for turn in 0..16 {
            let runtime = multi_thread(1).build().unwrap();
            runtime.block_on(async {
                for _ in 0..turn {
                    yield_now().await;
                }
                let ball = Arc::default();
                drop(mini::spawn(play(Arc::clone(&ball), 0)));
                drop(mini::spawn(play(ball, 1)));
                mini::spawn_local(yield_now()).await.unwrap();
                let handle = runtime.handle().clone();
                let foreign = thread::spawn(move || handle.spawn(yield_now())).join().unwrap();
                foreign.await.unwrap();
                sleep(MS).await;
            });
        }
    });
}

/// The tasks are cancelled first; the timers that they wait for end after that.
#[test]
fn sleeping_tasks_do_not_see_the_end_of_their_timers() {
    on_each_flavour(|builder| {
        for _ in 0..20 {
            let panics = Arc::new(AtomicUsize::new(0));
            let seen = panics.clone();
            let hook = move |_: &JoinError| {
                seen.fetch_add(1, SeqCst);
            };
            let runtime = builder.clone().on_task_panic(hook).build().unwrap();
            let asleep = Counts::new();
            for _ in 0..50 {
                let mut nap = Box::pin(sleeping());
                drop(runtime.spawn(counted(&asleep, move |cx| nap.as_mut().poll(cx))));
            }
            runtime.block_on(until(|| asleep.polls() >= 50));
            drop(runtime);
            assert_eq!((panics.load(SeqCst), asleep.drops()), (0, 50));
        }
    });
}

async fn sleeping() {
    sleep(LIMIT * 10).await;
    pending().await
}
