//! What `shutdown_timeout` returns: what it had to leave behind, by name and place.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use mini::runtime::Builder;
use mini_tests::{Counts, LIMIT, Token, block_on_elsewhere, line_of, multi_thread, never, on_each_flavour, within};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn nothing_is_left_of_what_can_be_dropped() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        for _ in 0..10 {
            drop(runtime.spawn(never(&counts)));
        }
        runtime.block_on(async { mini::spawn_blocking(|| ()).await.unwrap() });
        let left = runtime.shutdown_timeout(LIMIT * 10);
        assert!(left.is_empty(), "{left}");
        assert_eq!((counts.drops(), left.to_string().as_str()), (10, ""));
    });
}

#[test]
fn jobs_are_left_where_they_were_spawned() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let task = runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            may_go.recv()
        });
        has_begun.recv().unwrap();
        let left = runtime.shutdown_timeout(SHORT);
        // Workers may need longer than that, if the machine is busy.
        assert_eq!((left.blocking_jobs().len(), left.tasks().len()), (1, 0));
        assert!(!left.is_empty());
        assert_eq!(left.blocking_jobs()[0].file(), file!());
        assert!(left.to_string().contains("left a blocking job behind, spawned at "), "{left}");
        drop(go);
        mini::block_on(task).unwrap().unwrap_err();
    });
}

#[test]
fn jobs_that_were_not_begun_within_the_grace_are_cancelled_and_named() {
    let line = line_of(include_str!("report.rs"), "// queued");
    on_each_flavour(move |builder| {
        for grace in [Duration::ZERO, SHORT] {
            let runtime = builder.clone().max_blocking_threads(1).build().unwrap();
            let (begun, has_begun) = mpsc::channel();
            let (go, may_go) = mpsc::channel::<()>();
            let running = runtime.spawn_blocking(move || {
                begun.send(()).unwrap();
                may_go.recv()
            });
            has_begun.recv().unwrap();
            let counts = Counts::new();
            let jobs: Vec<_> = (0..10)
                .map(|_| {
                    let token = Token::new(&counts);
                    runtime.spawn_blocking(move || panic!("it must not run: {token:?}")) // queued
                })
                .collect();
            let left = runtime.shutdown_timeout(grace);
            assert_eq!((left.blocking_jobs().len(), left.cancelled_jobs().len()), (1, 10));
            assert!(left.cancelled_jobs().iter().all(|job| (job.file(), job.line()) == (file!(), line)));
            assert_eq!(counts.drops(), 10, "what they hold is gone");
            let said = format!("cancelled 10 blocking job(s) before they started, spawned at {}:{line}:", file!());
            assert_eq!(left.to_string().matches(&said).count(), 1, "{left}");
            for job in jobs {
                assert!(block_on_elsewhere(job).unwrap_err().is_cancelled());
            }
            drop(go);
            block_on_elsewhere(running).unwrap().unwrap_err();
        }
    });
}

#[test]
fn jobs_that_were_cancelled_alone_are_told() {
    within(LIMIT, || {
        let (start, may_start) = mpsc::channel::<()>();
        let may_start = Mutex::new(may_start);
        let hook = move || {
            let _ = may_start.lock().unwrap().recv();
        };
        let runtime = Builder::new_current_thread().on_thread_start(hook).build().unwrap();
        let job = runtime.spawn_blocking(|| ());
        let left = runtime.shutdown_timeout(SHORT); // its thread has not come
        assert_eq!((left.cancelled_jobs().len(), left.blocking_jobs().len(), left.is_empty()), (1, 0, false));
        assert!(mini::block_on(job).unwrap_err().is_cancelled());
        drop(start);
    });
}

#[test]
fn a_task_in_a_long_poll_is_named() {
    let line = line_of(include_str!("report.rs"), "// long");
    within(LIMIT, move || {
        let runtime = multi_thread(2).build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let poll = async move {
            begun.send(()).unwrap();
            let _ = may_go.recv();
            std::future::pending::<()>().await
        };
        let task = mini::task::Builder::new().name("stuck").spawn_on(poll, runtime.handle()); // long
        has_begun.recv().unwrap();
        let left = runtime.shutdown_timeout(SHORT);
        assert!(left.workers() >= 1, "{left}");
        assert_eq!((left.tasks().len(), left.local_tasks()), (1, 0));
        assert_eq!((left.tasks()[0].id(), left.tasks()[0].location().line()), (task.id(), line));
        assert_eq!(left.tasks()[0].name(), Some("stuck"));
        assert!(left.to_string().contains(&format!("left task {} \"stuck\" behind", task.id())), "{left}");
        drop(go);
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
    });
}

#[test]
fn tasks_of_a_worker_that_is_stuck_are_counted() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            handle.block_on(async move {
                let tasks = [mini::spawn(never(&Counts::new())), mini::spawn_local(never(&Counts::new()))];
                begun.send(()).unwrap();
                let _ = may_go.recv();
                for task in tasks {
                    assert!(task.await.unwrap_err().is_cancelled());
                }
            })
        });
        has_begun.recv().unwrap();
        let left = runtime.shutdown_timeout(SHORT);
        assert_eq!((left.workers(), left.tasks().len(), left.local_tasks()), (1, 0, 2));
        drop(go);
        thread.join().unwrap();
    });
}

#[test]
fn a_thread_in_its_last_hook_is_counted() {
    within(LIMIT, || {
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let hook = move || {
            begun.send(()).unwrap();
            let _ = may_go.lock().unwrap().recv();
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).on_thread_stop(hook).build().unwrap();
        let (ran, has_run) = mpsc::channel();
        drop(runtime.spawn(async move { ran.send(()).unwrap() }));
        has_run.recv().unwrap();
        let left = runtime.shutdown_timeout(SHORT);
        assert_eq!((left.threads(), left.is_empty()), (1, false));
        assert!(left.to_string().contains("left 1 worker thread(s) behind"), "{left}");
        has_begun.recv().unwrap();
        drop(go);
    });
}

#[test]
fn one_thread_that_is_stuck_is_one_thread() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        drop(runtime.spawn(async move {
            begun.send(()).unwrap();
            let _ = may_go.recv();
        }));
        has_begun.recv().unwrap();
        let left = runtime.shutdown_timeout(SHORT);
        assert_eq!((left.workers(), left.threads()), (1, 1), "{left}");
        drop(go);
    });
}

#[test]
fn called_inside_it_waits_for_nothing() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let left = handle.block_on(async move { runtime.shutdown_timeout(LIMIT) });
        assert!(left.is_empty());
    });
}
