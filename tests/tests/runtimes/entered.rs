//! Threads that come to a core that other threads hold or have left, and leave it: jobs with an executor of their own,
//! external threads, owners that close what an entered thread has registered.

use std::future::{pending, poll_fn};
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use mini::runtime::Builder;
use mini::time::{Duration, sleep};
use mini_tests::net_support::{ANY_PORT, udp, watched};
use mini_tests::{
    Counts, LIMIT, OnDrop, block_on_elsewhere, counted, in_child, multi_thread, never, on_each_flavour, oneshot, until,
    within,
};

const MS: Duration = Duration::from_millis(1);

/// What a blocking job waits for with an executor that no runtime knows.
fn wait_alone() -> usize {
    block_on_elsewhere(sleep(MS));
    block_on_elsewhere(async {
        let socket = udp().await;
        let to = socket.local_addr().unwrap();
        let send = || assert_eq!(std::net::UdpSocket::bind(ANY_PORT).unwrap().send_to(b"one", to).unwrap(), 3);
        watched(socket.recv(&mut [0; 8]), send).await.unwrap()
    })
}

#[test]
fn a_blocking_job_may_wait_with_an_executor_of_its_own() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.block_on(async { mini::spawn_blocking(wait_alone).await.unwrap() }), 3);
        if format!("{runtime:?}").contains("multi_thread") {
            // No thread is in block_on: what the job waits for needs a worker nevertheless.
            assert_eq!(block_on_elsewhere(runtime.spawn_blocking(wait_alone)).unwrap(), 3);
        }
    });
}

#[test]
fn an_external_thread_goes_on_when_a_core_is_left_during_its_poll() {
    within(LIMIT, || {
        for leaver in [0, 1] {
            let runtime = multi_thread(2).build().unwrap();
            thread::scope(|scope| {
                let hold = |_| {
                    let ((stop, stopped), (inside, is_inside)) = (oneshot::<()>(), mpsc::channel());
                    let runtime = &runtime;
                    let thread = scope.spawn(move || {
                        runtime.block_on(async {
                            inside.send(()).unwrap();
                            stopped.await
                        })
                    });
                    is_inside.recv().unwrap();
                    (stop, thread)
                };
                let mut holders: Vec<_> = (0..2).map(hold).collect();
                let (mut leaves, mut nap) = (Some(holders.remove(leaver)), None);
                runtime.block_on(poll_fn(|cx| {
                    if let Some((stop, thread)) = leaves.take() {
                        drop(stop);
                        thread.join().unwrap();
                    }
                    nap.get_or_insert_with(|| Box::pin(sleep(MS))).as_mut().poll(cx)
                }));
                drop(holders);
            });
        }
    });
}

#[test]
fn an_external_thread_in_a_long_poll_keeps_no_worker_away() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let ((inside, is_inside), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        // Holds one worker, so that the other one gets the timers.
        drop(runtime.spawn(async move {
            inside.send(()).unwrap();
            let _ = released.recv();
            pending::<()>().await
        }));
        is_inside.recv().unwrap();
        let ticks = Arc::new(AtomicUsize::new(0));
        let ticking = ticks.clone();
        drop(runtime.spawn(async move {
            loop {
                sleep(MS).await;
                ticking.fetch_add(1, SeqCst);
            }
        }));
        let see_ticks = || {
            let seen = ticks.load(SeqCst);
            while ticks.load(SeqCst) < seen + 3 {
                thread::yield_now();
            }
        };
        see_ticks();
        drop(release);
        for _ in 0..5 {
            let mut polls = 0;
            runtime.block_on(poll_fn(|cx| {
                see_ticks();
                polls += 1;
                cx.waker().wake_by_ref();
                if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
            }));
        }
    });
}

#[test]
fn the_owner_aborts_a_task_that_another_thread_has_just_posted() {
    on_each_flavour(|builder| {
        let builder = &builder;
        for (is_kept, is_awaited) in [(false, false), (true, false), (false, true)] {
            let runtime = builder.clone().build().unwrap();
            let (counts, handle) = (Counts::new(), runtime.handle().clone());
            let seen = counts.clone();
            let kept = runtime.block_on(async {
                drop(mini::spawn(pending::<()>()));
                let task = thread::spawn(move || handle.spawn(never(&seen))).join().unwrap();
                task.abort();
                if is_awaited {
                    assert!(task.await.unwrap_err().is_cancelled());
                    return None;
                }
                is_kept.then_some(task)
            });
            drop(runtime);
            assert_eq!(counts.drops(), 1);
            if let Some(task) = kept {
                assert!(block_on_elsewhere(task).unwrap_err().is_cancelled());
            }
        }
    });
}

/// A value that tells which thread drops it.
fn witness() -> (OnDrop<impl FnMut() + Send + 'static>, mpsc::Receiver<ThreadId>) {
    let (tell, told) = mpsc::channel();
    (OnDrop(move || tell.send(thread::current().id()).unwrap()), told)
}

#[test]
fn a_refused_visitor_ends_no_local_task() {
    let _ = in_child("a_refused_visitor_ends_no_local_task", || {
        let runtime = Builder::new_current_thread().shutdown_grace(LIMIT * 10).build().unwrap();
        let ((witness, dropped_by), counts) = (witness(), Counts::new());
        runtime.block_on(async {
            drop(mini::spawn_local(counted::<(), _>(&counts, move |_| {
                let _part_of_it = &witness;
                Poll::Pending
            })));
            until(|| counts.polls() == 1).await;
        });
        let ((refused, is_refused), (over, is_over)) = (mpsc::channel(), mpsc::channel::<()>());
        let talk = Mutex::new((refused, is_over));
        // The runtime ends while the visitor is about to panic.
        panic::set_hook(Box::new(move |_| {
            let talk = talk.lock().unwrap();
            let _ = talk.0.send(());
            let _ = talk.1.recv();
        }));
        let handle = runtime.handle().clone();
        let visitor = thread::spawn(move || handle.block_on(async {}));
        is_refused.recv().unwrap();
        drop(runtime);
        drop(over);
        let refusal = visitor.join();
        drop(panic::take_hook());
        assert!(refusal.is_err());
        assert_eq!(dropped_by.iter().collect::<Vec<_>>(), [thread::current().id()]);
    });
}

#[test]
fn a_leaked_local_task_stays_leaked_when_the_end_wakes_it() {
    let Some(stderr) = in_child("a_leaked_local_task_stays_leaked_when_the_end_wakes_it", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (witness, dropped_by) = witness();
        let (counts, place) = (Counts::new(), Arc::new(Mutex::new(None::<Waker>)));
        runtime.block_on(async {
            let kept = place.clone();
            drop(mini::spawn_local(counted::<(), _>(&counts, move |cx| {
                let _part_of_it = &witness;
                *kept.lock().unwrap() = Some(cx.waker().clone());
                Poll::Pending
            })));
            let place = place.clone();
            let wakes = OnDrop(move || place.lock().unwrap().as_ref().unwrap().wake_by_ref());
            drop(mini::spawn(async move {
                let _wakes = wakes;
                pending::<()>().await
            }));
            until(|| counts.polls() == 1).await;
        });
        thread::spawn(move || drop(runtime)).join().unwrap();
        place.lock().unwrap().take().unwrap().wake();
        assert_eq!((counts.polls(), counts.drops()), (1, 0));
        assert!(dropped_by.try_recv().is_err());
    }) else {
        return;
    };
    assert!(stderr.contains("is leaked"), "{stderr}");
}

/// The end empties the queue of the core, and the future in block_on has its place there.
#[test]
fn block_on_sees_the_end_of_its_task_with_local_tasks_around() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (handle, local) = (runtime.handle().clone(), Counts::new());
        let error = handle.block_on(async {
            let task = mini::spawn(pending::<()>());
            drop(mini::spawn_local(never(&local)));
            drop(runtime);
            task.await.unwrap_err()
        });
        assert!(error.is_cancelled());
        assert_eq!(local.drops(), 1);
    });
}
