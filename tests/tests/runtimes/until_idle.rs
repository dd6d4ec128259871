//! `run_until_idle`: it returns when all has ended, not before, and tells of tasks that nobody can wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mini::time::sleep;
use mini_tests::{on_each_flavour, oneshot};

#[test]
fn what_tasks_spawn_is_waited_for_too() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        assert!(runtime.run_until_idle().is_empty(), "nothing has begun");
        let ended = Arc::new(AtomicUsize::new(0));
        fn tree(depth: usize, ended: Arc<AtomicUsize>) {
            mini::spawn(async move {
                mini::task::yield_now().await;
                if depth > 0 {
                    tree(depth - 1, ended.clone());
                    tree(depth - 1, ended.clone());
                }
                sleep(Duration::from_micros(depth as u64 * 100)).await;
                ended.fetch_add(1, SeqCst);
            });
        }
        for round in 1..4 {
            runtime.block_on(async { tree(7, ended.clone()) });
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(ended.load(SeqCst), 255 * round);
        }
    });
}

#[test]
fn a_blocking_job_that_nobody_awaits_is_waited_for() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..20 {
            let ended = Arc::new(AtomicUsize::new(0));
            let (after, handle) = (ended.clone(), runtime.handle().clone());
            runtime.spawn_blocking(move || {
                thread::yield_now();
                handle.spawn(async move { after.fetch_add(1, SeqCst) });
            });
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(ended.load(SeqCst), 1, "nor is the task missed that it has spawned");
        }
    });
}

#[test]
fn what_another_thread_may_still_wake_is_waited_for() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = oneshot::<u32>();
        let task = runtime.spawn(receive);
        let (begun, has_begun) = mpsc::channel();
        let sender = thread::spawn(move || {
            has_begun.recv().unwrap();
            send.send(7);
        });
        runtime.block_on(mini::task::yield_now());
        begun.send(()).unwrap();
        assert!(runtime.run_until_idle().is_empty());
        assert!(task.is_finished());
        sender.join().unwrap();
    });
}

#[test]
fn tasks_that_nobody_can_wake_are_told_once_all_others_have_ended() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let line = line!() + 1;
        let lost = runtime.spawn(std::future::pending::<()>());
        drop(runtime.spawn(sleep(Duration::from_millis(5))));
        let named = mini::task::Builder::new().name("named").spawn_on(std::future::pending::<()>(), runtime.handle());
        let mut told = runtime.run_until_idle();
        told.sort_by_key(|task| task.id() != lost.id());
        assert_eq!(told.iter().map(|task| task.id()).collect::<Vec<_>>(), [lost.id(), named.id()]);
        assert_eq!((told[0].location().line(), told[1].name()), (line, Some("named")));
        assert_eq!(runtime.metrics().num_alive_tasks(), 2, "they are still there");
        drop((lost, named));
        assert_eq!(runtime.run_until_idle().len(), 2, "with a handle or without");
    });
}

/// What one call has found is not told to the next.
#[test]
fn a_task_that_was_lost_before_is_not_told_later() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        assert!(runtime.run_until_idle().is_empty());
        let task = runtime.spawn(std::future::pending::<()>());
        runtime.block_on(sleep(Duration::from_millis(1)));
        task.abort();
        let work = runtime.spawn(mini::task::yield_now());
        assert!(runtime.run_until_idle().is_empty());
        assert!(work.is_finished() && task.is_finished());
    });
}

/// Whoever runs the last task leaves its core at once, without a wait.
#[test]
fn the_last_task_may_end_in_another_block_on() {
    on_each_flavour(|builder| {
        let runtime = Arc::new(builder.build().unwrap());
        for _ in 0..20 {
            let (send, receive) = oneshot::<u32>();
            let other = runtime.clone();
            let blocked = thread::spawn(move || other.block_on(async { mini::spawn(receive).await.unwrap() }));
            let sender = thread::spawn(move || send.send(7));
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(blocked.join().unwrap(), Some(7));
            sender.join().unwrap();
        }
    });
}

#[test]
fn a_job_of_a_thread_that_has_left_is_waited_for() {
    on_each_flavour(|builder| {
        let runtime = Arc::new(builder.build().unwrap());
        for _ in 0..20 {
            let (quit, wait) = mpsc::channel::<()>();
            let job = runtime.spawn_blocking(move || wait.recv().is_err());
            let other = runtime.clone();
            let blocked = thread::spawn(move || other.block_on(mini::task::yield_now()));
            let quitter = thread::spawn(move || drop(quit));
            assert!(runtime.run_until_idle().is_empty());
            assert!(job.is_finished());
            blocked.join().unwrap();
            quitter.join().unwrap();
        }
    });
}

/// While there is an abort handle nobody knows whether it is a waker.
#[test]
fn a_task_is_lost_once_its_last_abort_handle_is_gone() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        let abort = task.abort_handle();
        let thread = thread::spawn(move || drop(abort));
        assert_eq!(runtime.run_until_idle()[0].id(), task.id());
        thread.join().unwrap();
    });
}

/// In the last moment before the wait.
#[test]
fn a_task_that_a_hook_wakes_is_not_lost() {
    on_each_flavour(|mut builder| {
        let (leave, left) = mpsc::channel::<std::task::Waker>();
        let left = std::sync::Mutex::new(left);
        builder.on_thread_park(move || {
            if let Ok(waker) = left.lock().unwrap().try_recv() {
                waker.wake();
            }
        });
        let runtime = builder.build().unwrap();
        let mut polls = 0;
        let task = runtime.spawn(std::future::poll_fn(move |cx| {
            polls += 1;
            if polls == 3 {
                return std::task::Poll::Ready(());
            }
            leave.send(cx.waker().clone()).unwrap();
            std::task::Poll::Pending
        }));
        assert!(runtime.run_until_idle().is_empty());
        assert!(task.is_finished());
    });
}

#[test]
fn several_callers_are_all_told() {
    on_each_flavour(|builder| {
        let runtime = Arc::new(builder.build().unwrap());
        let (send, receive) = oneshot::<u32>();
        drop(runtime.spawn(receive));
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.run_until_idle().len())
            })
            .collect();
        send.send(7);
        for caller in callers {
            assert_eq!(caller.join().unwrap(), 0);
        }
    });
}

/// Each has a waker of the other's: they are not known to be lost.
#[test]
fn a_task_that_another_one_joins_is_lost_with_it_or_not_at_all() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let first = runtime.spawn(std::future::pending::<()>());
        let abort = first.abort_handle();
        let second = runtime.spawn(first);
        let thread = thread::spawn(move || abort.abort());
        assert!(runtime.run_until_idle().is_empty());
        assert!(second.is_finished());
        thread.join().unwrap();
    });
}

/// Threads wake the tasks while the workers look at them again and again; those that are left are lost.
#[test]
fn a_look_at_a_task_takes_no_wake_from_it() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let lost = runtime.spawn(std::future::pending::<()>());
        for _ in 0..50 {
            let (senders, tasks): (Vec<_>, Vec<_>) = (0..4)
                .map(|_| {
                    let (send, receive) = oneshot::<u32>();
                    (send, runtime.spawn(receive))
                })
                .unzip();
            let wakes = thread::spawn(move || senders.into_iter().for_each(|send| send.send(7)));
            let left = runtime.run_until_idle();
            assert_eq!(left.iter().map(|task| task.id()).collect::<Vec<_>>(), [lost.id()]);
            assert!(tasks.iter().all(|task| task.is_finished()));
            wakes.join().unwrap();
        }
    });
}

/// Its worker has parked before anybody asks, and has nothing to wake it.
#[test]
fn a_local_task_of_a_worker_that_sleeps_is_told() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (tell, told) = mpsc::channel();
        drop(runtime.spawn(async move { tell.send(mini::spawn_local(std::future::pending::<()>()).id()).unwrap() }));
        let metrics = runtime.metrics();
        let parks = |metrics: &mini::runtime::Metrics| metrics.total_park_count();
        let has_worker = runtime.handle().runtime_flavor() == mini::runtime::RuntimeFlavor::MultiThread;
        let lost = has_worker.then(|| told.recv().unwrap());
        // The thread that ran the task has parked since, or does so soon: nothing else is there to do.
        mini_tests::spin_until(|| !has_worker || parks(&metrics) > 0);
        let left: Vec<_> = runtime.run_until_idle().iter().map(|task| task.id()).collect();
        assert_eq!(left, [lost.unwrap_or_else(|| told.recv().unwrap())]);
    });
}

/// The output of a task is dropped when the task does no longer count as alive.
#[test]
fn what_the_drop_of_an_output_spawns_is_waited_for() {
    struct Spawns(Arc<AtomicUsize>, mini::runtime::Handle);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let ended = self.0.clone();
            drop(self.1.spawn(async move {
                sleep(Duration::from_millis(1)).await;
                ended.fetch_add(1, SeqCst);
            }));
        }
    }
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for round in 1..50 {
            let ended = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 {
                let output = Spawns(ended.clone(), runtime.handle().clone());
                drop(runtime.spawn(async move { output }));
            }
            assert!(runtime.run_until_idle().is_empty());
            assert_eq!(ended.load(SeqCst), 3, "round {round}");
        }
    });
}

/// Beside lost tasks that any worker may run, and one that waits for a timer.
#[test]
fn a_local_task_that_nobody_can_wake_is_told_too() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let shared = runtime.spawn(std::future::pending::<()>());
        let local = runtime.block_on(async {
            drop(mini::spawn(sleep(Duration::from_millis(2))));
            mini::spawn_local(std::future::pending::<()>()).id()
        });
        let mut left: Vec<_> = runtime.run_until_idle().iter().map(|task| task.id()).collect();
        left.sort_by_key(|id| *id != shared.id());
        // A thread that leaves a multi-threaded runtime ends its local tasks.
        assert_eq!(left[0], shared.id());
        assert!(left[1..].iter().all(|id| *id == local), "{left:?}");
    });
}
