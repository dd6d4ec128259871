//! Edges of the runtime that once were wrong: the clock paused at a bad moment, ends that wait for themselves, tasks
//! that cannot be dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use mini::net::UdpSocket;
use mini::runtime::{Builder, Runtime};
use mini::task::yield_now;
use mini::time::{self, Instant};
use mini_tests::{LIMIT, in_child, multi_thread, within};

fn current_thread() -> Runtime {
    Builder::new_current_thread().shutdown_grace(LIMIT * 10).build().unwrap()
}

/// Spins until the running clock has passed `instant`.
fn wait_for(instant: Instant) {
    while Instant::now() < instant {
        std::hint::spin_loop();
    }
}

#[test]
fn a_timer_that_is_due_when_the_clock_is_paused_fires_at_once() {
    within(LIMIT, || {
        current_thread().block_on(async {
            let due = Instant::now() + Duration::from_micros(100);
            let task = mini::spawn(async move {
                time::sleep_until(due).await;
                Instant::now()
            });
            let _far = mini::spawn(time::sleep(Duration::from_secs(3600)));
            yield_now().await;
            wait_for(due);
            time::pause();
            let paused_at = Instant::now();
            // Not later: time must not jump over a task that can run. (Earlier, if it was due before it was first
            // polled.)
            assert!(task.await.unwrap() <= paused_at);
        });
    });
}

/// The driver must see, before it sleeps, what another thread does to the clock.
#[test]
fn another_thread_may_pause_and_resume_the_clock_at_any_moment() {
    within(LIMIT, || {
        let runtime = current_thread();
        let (round, over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _inside = runtime.enter();
                let mut seen = 0;
                while !over.load(SeqCst) {
                    let now = round.load(SeqCst);
                    if now != seen {
                        seen = now;
                        for _ in 0..now * 7 % 400 {
                            std::hint::spin_loop();
                        }
                        if now % 2 == 0 { time::resume() } else { time::pause() }
                    }
                    thread::yield_now();
                }
            });
            for number in 1..=3000 {
                runtime.block_on(async {
                    let mut sleep = pin!(time::sleep(Duration::from_micros(50)));
                    let armed = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
                    if number % 2 == 0 {
                        time::pause()
                    } else {
                        time::resume()
                    }
                    round.store(number, SeqCst);
                    if armed {
                        sleep.await;
                    }
                });
            }
            over.store(true, SeqCst);
        });
    });
}

#[test]
fn a_runtime_may_be_the_output_of_its_own_blocking_job() {
    within(LIMIT, || {
        struct Tells(Option<Runtime>, mpsc::Sender<()>);
        impl Drop for Tells {
            fn drop(&mut self) {
                drop(self.0.take()); // on the blocking thread: it must not wait for itself
                self.1.send(()).unwrap();
            }
        }
        let runtime = multi_thread(1).build().unwrap();
        let handle = runtime.handle().clone();
        let (dropped, is_dropped) = mpsc::channel();
        let tells = Tells(Some(runtime), dropped);
        drop(handle.spawn_blocking(move || tells));
        is_dropped.recv().unwrap();
    });
}

#[test]
fn local_tasks_that_had_to_be_leaked_hold_no_descriptor() {
    in_child("local_tasks_that_had_to_be_leaked_hold_no_descriptor", || {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        for _ in 0..20 {
            let runtime = current_thread();
            runtime.block_on(async { drop(mini::spawn_local(std::future::pending::<()>())) });
            thread::spawn(move || drop(runtime)).join().unwrap();
        }
        assert_eq!(open(), before);
    });
}

#[test]
fn local_tasks_whose_destructors_spawn_their_like_end_with_block_on() {
    struct Again(Arc<AtomicUsize>);
    impl Drop for Again {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            spawn(Self(self.0.clone()));
        }
    }
    fn spawn(again: Again) {
        // At the very end of the thread there is no worker to spawn on, so this panics.
        let spawned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            mini::spawn_local(async move {
                let _again = again;
                std::future::pending::<()>().await
            })
        }));
        drop(spawned);
    }
    in_child("local_tasks_whose_destructors_spawn_their_like_end_with_block_on", || {
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = drops.clone();
        let runtime = multi_thread(1).build().unwrap();
        runtime.block_on(async move {
            spawn(Again(counted));
            yield_now().await;
        });
        assert!(drops.load(SeqCst) >= 100, "it was tried");
    });
}

#[test]
fn a_future_that_is_refused_is_dropped_inside_the_runtime() {
    struct Looks(mpsc::Sender<bool>);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.send(mini::runtime::Handle::try_current().is_ok()).unwrap();
        }
    }
    within(LIMIT, || {
        let runtime = current_thread();
        runtime.block_on(async { drop(mini::spawn_local(std::future::pending::<()>())) });
        let (tell, told) = mpsc::channel();
        let looks = Looks(tell);
        thread::scope(|scope| {
            let runtime = &runtime;
            let refused = scope.spawn(move || runtime.block_on(async move { drop(looks) }));
            assert!(refused.join().is_err());
        });
        assert!(told.recv().unwrap());
    });
}

/// A thread in `block_on` asks the worker threads for a place, and is a worker then.
#[test]
fn block_on_takes_the_place_of_a_parked_worker_thread() {
    within(LIMIT, || {
        for workers in [1, 3] {
            let runtime = multi_thread(workers).build().unwrap();
            let (ran, has_run) = mpsc::channel();
            for _ in 0..10 {
                let ran = ran.clone();
                drop(runtime.spawn(async move { ran.send(()).unwrap() }));
                has_run.recv().unwrap();
                runtime.block_on(async { mini::spawn_local(async {}).await.unwrap() });
            }
        }
    });
}

/// A worker thread with local tasks cannot leave, and says so: the thread in `block_on` does not wait for it.
#[test]
fn block_on_goes_on_beside_a_worker_thread_that_cannot_leave() {
    within(LIMIT, || {
        let runtime = multi_thread(1).build().unwrap();
        let (ran, has_run) = mpsc::channel();
        drop(runtime.spawn(async move {
            mini::spawn_local(std::future::pending::<()>());
            ran.send(()).unwrap();
        }));
        has_run.recv().unwrap();
        for _ in 0..10 {
            assert_eq!(runtime.block_on(async { mini::spawn(async { 7 }).await.unwrap() }), 7);
        }
    });
}

/// Waiters that come through `poll_` methods cannot be taken out, so they are bounded; many of them must not evict one
/// another for ever.
#[test]
fn tasks_that_poll_one_socket_come_to_rest() {
    within(LIMIT, || {
        current_thread().block_on(async {
            let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            let polls = Arc::new(AtomicUsize::new(0));
            for _ in 0..20 {
                let (socket, polls) = (socket.clone(), polls.clone());
                mini::spawn(async move {
                    poll_fn(|cx| {
                        polls.fetch_add(1, SeqCst);
                        socket.poll_read_ready(cx)
                    })
                    .await
                });
            }
            for _ in 0..1000 {
                yield_now().await;
            }
            let so_far = polls.load(SeqCst);
            assert!(so_far < 200, "{so_far} polls of 20 tasks, and nothing has happened");
        });
    });
}
