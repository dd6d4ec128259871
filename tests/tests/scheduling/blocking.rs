//! The blocking threads: their bound, their end, what an abort and a shutdown do to jobs.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use mini::runtime::{Builder, Handle};
use mini::task::yield_now;
use mini::time::{Duration, sleep};
use mini_tests::{
    Counts, LIMIT, OnDrop, Token, block_on_elsewhere, in_child, line_of, multi_thread, on_each_flavour, poll_with,
    text_of, within,
};

/// A job that says that it has begun and waits until it may end.
fn stuck() -> (impl FnOnce() -> u8 + Send + 'static, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (begin, begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let job = move || {
        begin.send(()).unwrap();
        let _ = may_go.recv();
        5
    };
    (job, begun, go)
}

#[test]
fn more_jobs_than_threads_all_run() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(3).build().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = Arc::new(Mutex::new(HashSet::new()));
        runtime.block_on(async {
            let jobs: Vec<_> = (0..200)
                .map(|i| {
                    let (now, most, threads) = (now.clone(), most.clone(), threads.clone());
                    mini::spawn_blocking(move || {
                        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                        threads.lock().unwrap().insert(thread::current().id());
                        thread::yield_now();
                        now.fetch_sub(1, SeqCst);
                        i
                    })
                })
                .collect();
            for (i, job) in jobs.into_iter().enumerate() {
                assert_eq!(job.await.unwrap(), i);
            }
        });
        assert!(most.load(SeqCst) <= 3 && threads.lock().unwrap().len() <= 3);
    });
}

#[test]
fn jobs_run_beside_each_other_up_to_the_bound() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(4).build().unwrap();
        let together = Arc::new(std::sync::Barrier::new(4));
        let jobs: Vec<_> = (0..8)
            .map(|_| {
                let together = together.clone();
                runtime.spawn_blocking(move || together.wait().is_leader())
            })
            .collect();
        let leaders = runtime.block_on(async {
            let mut leaders = 0;
            for job in jobs {
                leaders += usize::from(job.await.unwrap());
            }
            leaders
        });
        assert_eq!(leaders, 2);
    });
}

type AtExit = OnDrop<Box<dyn FnMut()>>;

thread_local! { static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) } }

#[test]
fn an_idle_thread_ends_and_another_takes_its_place() {
    on_each_flavour(|mut builder| {
        let runtime = builder.thread_keep_alive(Duration::from_millis(1)).max_blocking_threads(1).build().unwrap();
        for round in 0..10 {
            let (send, ended) = mpsc::channel();
            let job = runtime.spawn_blocking(move || {
                let tell: Box<dyn FnMut()> = Box::new(move || send.send(()).unwrap());
                AT_EXIT.set(Some(OnDrop(tell)));
                round
            });
            assert_eq!(block_on_elsewhere(job).unwrap(), round);
            ended.recv().unwrap(); // the thread is gone, and nothing but time told it to go
        }
    });
}

/// Jobs that never cease, one at a time, keep one thread or two busy, and not all earlier threads in turn.
#[test]
fn threads_that_are_too_many_end_while_others_work() {
    on_each_flavour(|mut builder| {
        let runtime = builder.thread_keep_alive(Duration::from_millis(100)).build().unwrap();
        let together = Arc::new(std::sync::Barrier::new(8));
        let metrics = runtime.metrics();
        let jobs: Vec<_> = (0..8)
            .map(|_| {
                let (together, metrics) = (together.clone(), metrics.clone());
                runtime.spawn_blocking(move || {
                    together.wait();
                    let threads = metrics.num_blocking_threads(); // while all of them are in their jobs
                    together.wait();
                    threads
                })
            })
            .collect();
        block_on_elsewhere(async move {
            for job in jobs {
                assert!(job.await.unwrap() >= 8);
            }
        });
        while metrics.num_blocking_threads() > 4 {
            block_on_elsewhere(runtime.spawn_blocking(|| ())).unwrap();
        }
    });
}

/// The second thread is started for a job that the first one takes, and goes on when another job has run: on the first
/// thread if that is idle, or on a third if it is busy.
#[test]
fn a_thread_that_starts_slowly_holds_up_no_job() {
    for is_first_busy in [false, true] {
        on_each_flavour(move |builder| {
            let (open, opened) = mpsc::channel();
            let (start, started) = mpsc::channel();
            let gate = Mutex::new((start, opened));
            let wait = move || {
                if thread::current().name() == Some("slow-block-1") {
                    let gate = gate.lock().unwrap();
                    gate.0.send(()).unwrap();
                    gate.1.recv().unwrap();
                }
            };
            let mut builder = builder.clone();
            builder.thread_name("slow").on_thread_start(wait);
            let runtime = builder.thread_keep_alive(Duration::MAX).build().unwrap();
            let (job, begun, go) = stuck();
            let first = runtime.spawn_blocking(job);
            begun.recv().unwrap();
            let second = runtime.spawn_blocking(|| 2);
            started.recv().unwrap();
            go.send(()).unwrap();
            assert_eq!(block_on_elsewhere(async { (first.await.unwrap(), second.await.unwrap()) }), (5, 2));
            let (job, begun, go) = stuck();
            let third = is_first_busy.then(|| runtime.spawn_blocking(job));
            if is_first_busy {
                begun.recv().unwrap();
            }
            block_on_elsewhere(runtime.spawn_blocking(move || open.send(()).unwrap())).unwrap();
            drop(go);
            if let Some(third) = third {
                assert_eq!(block_on_elsewhere(third).unwrap(), 5);
            }
        });
    }
}

#[test]
fn no_keep_alive_and_an_endless_one() {
    on_each_flavour(|builder| {
        for time in [Duration::ZERO, Duration::MAX] {
            let runtime = builder.clone().thread_keep_alive(time).build().unwrap();
            for i in 0..200 {
                assert_eq!(block_on_elsewhere(runtime.spawn_blocking(move || i)).unwrap(), i);
            }
        }
    });
}

#[test]
fn an_abort_before_the_start_drops_the_job() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        let (job, begun, go) = stuck();
        let first = runtime.spawn_blocking(job);
        begun.recv().unwrap();
        let (counts, ran) = (Counts::new(), Arc::new(AtomicBool::new(false)));
        let (token, run) = (Token::new(&counts), ran.clone());
        let second = runtime.spawn_blocking(move || {
            let _token = token;
            run.store(true, SeqCst);
        });
        second.abort();
        go.send(()).unwrap();
        runtime.block_on(async {
            assert_eq!(first.await.unwrap(), 5);
            assert!(second.await.unwrap_err().is_cancelled());
        });
        assert_eq!((counts.drops(), ran.load(SeqCst)), (1, false));
    });
}

#[test]
fn an_abort_after_the_start_changes_nothing() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (job, begun, go) = stuck();
        let task = runtime.spawn_blocking(job);
        begun.recv().unwrap();
        task.abort();
        let mut cancel = task.cancel();
        assert!(poll_with(&mut cancel, &Counts::new()).is_pending());
        go.send(()).unwrap();
        assert_eq!(runtime.block_on(cancel).unwrap(), 5);
    });
}

#[test]
fn a_dropped_handle_lets_the_job_go_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, output) = mpsc::channel();
        drop(runtime.spawn_blocking(move || OnDrop(move || send.send(()).unwrap())));
        output.recv().unwrap();
    });
}

#[test]
fn a_panic_ends_the_job_and_not_the_thread() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        for i in 0..20 {
            let error = block_on_elsewhere(runtime.spawn_blocking(move || panic!("job {i}"))).unwrap_err();
            assert_eq!(text_of(&*error.into_panic()), format!("job {i}"));
        }
        assert_eq!(block_on_elsewhere(runtime.spawn_blocking(|| 1)).unwrap(), 1);
    });
}

#[test]
fn a_job_is_inside_its_runtime() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let output = runtime.block_on(async {
            let job = mini::spawn_blocking(|| {
                let task = mini::spawn(async { 1 });
                let nested = mini::spawn_blocking(|| 2);
                let three = Handle::current().block_on(async {
                    sleep(Duration::from_micros(100)).await;
                    yield_now().await;
                    task.await.unwrap() + nested.await.unwrap()
                });
                (three, mini::block_on(async { mini::spawn(async { 4 }).await.unwrap() }))
            });
            job.await.unwrap()
        });
        assert_eq!(output, (3, 4));
    });
}

#[test]
fn the_end_waits_for_jobs_that_run_and_for_those_that_are_queued() {
    on_each_flavour(|mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let (job, begun, go) = stuck();
        let running = runtime.spawn_blocking(job);
        let queued: Vec<_> = (0..10).map(|i| runtime.spawn_blocking(move || i)).collect();
        begun.recv().unwrap();
        let ending = thread::spawn(move || drop(runtime));
        // A job that is refused before it is queued tells that the end has begun. The jobs before it run.
        let late = loop {
            let job = handle.spawn_blocking(|| ());
            if job.is_finished() {
                break job;
            }
        };
        assert!(block_on_elsewhere(late).unwrap_err().is_cancelled());
        assert!(!ending.is_finished() && queued.iter().all(|job| !job.is_finished()));
        go.send(()).unwrap();
        ending.join().unwrap();
        assert!(running.is_finished(), "the end waited for it");
        assert_eq!(block_on_elsewhere(running).unwrap(), 5);
        for (i, job) in queued.into_iter().enumerate() {
            assert!(job.is_finished(), "and for this one");
            assert_eq!(block_on_elsewhere(job).unwrap(), i);
        }
    });
}

#[test]
fn jobs_spawned_right_before_the_end_run() {
    on_each_flavour(|builder| {
        for threads in [1, 3, 512] {
            let runtime = builder.clone().max_blocking_threads(threads).build().unwrap();
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..100 {
                let ran = ran.clone();
                drop(runtime.spawn_blocking(move || ran.fetch_add(1, SeqCst)));
            }
            drop(runtime);
            assert_eq!(ran.load(SeqCst), 100, "on {threads} threads");
        }
    });
}

#[test]
fn jobs_that_wait_for_a_thread_run_where_nobody_waits_for_the_end() {
    on_each_flavour(|mut builder| {
        let runtime = builder.clone().max_blocking_threads(1).build().unwrap();
        let (job, begun, go) = stuck();
        drop(runtime.spawn_blocking(job));
        let queued: Vec<_> = (0..10).map(|i| runtime.spawn_blocking(move || i)).collect();
        begun.recv().unwrap();
        runtime.shutdown_background();
        drop(go);
        for (i, job) in queued.into_iter().enumerate() {
            assert_eq!(block_on_elsewhere(job).unwrap(), i);
        }

        let runtime = builder.max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let (go, may_go) = mpsc::channel::<()>();
        let last = handle.spawn_blocking(move || {
            let _ = may_go.recv();
            drop(runtime);
        });
        let queued = handle.spawn_blocking(|| 7);
        drop(go);
        block_on_elsewhere(last).unwrap();
        assert_eq!(block_on_elsewhere(queued).unwrap(), 7);
    });
}

#[test]
fn a_stuck_job_is_left_behind_and_it_is_said() {
    let line = line_of(include_str!("blocking.rs"), "// stuck");
    let Some(stderr) = in_child("a_stuck_job_is_left_behind_and_it_is_said", || {
        for multi in [false, true] {
            let builder = if multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
            let runtime = builder.build().unwrap();
            let (job, begun, go) = stuck();
            let task = runtime.spawn_blocking(job); // stuck
            begun.recv().unwrap();
            runtime.shutdown_timeout(Duration::from_millis(1));
            assert!(!task.is_finished());
            go.send(()).unwrap();
            assert_eq!(mini::block_on(task).unwrap(), 5, "who waits for it still gets its output");
        }
    }) else {
        return;
    };
    let said = format!("left a blocking job behind, spawned at {}:{line}:", file!());
    assert_eq!(stderr.matches(&said).count(), 2, "{stderr}");
}

#[test]
fn a_shutdown_in_the_background_waits_for_nothing() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap(); // its grace is longer than the limit of this test
        let (job, begun, go) = stuck();
        let task = runtime.spawn_blocking(job);
        begun.recv().unwrap();
        runtime.shutdown_background();
        assert!(!task.is_finished());
        drop(go);
        assert_eq!(block_on_elsewhere(task).unwrap(), 5);
    });
}

#[test]
fn jobs_race_with_the_end() {
    on_each_flavour(|builder| {
        for _ in 0..50 {
            let runtime = builder.clone().max_blocking_threads(2).build().unwrap();
            let (handle, counts) = (runtime.handle().clone(), Counts::new());
            let spawned = thread::scope(|scope| {
                let (begin, begun) = mpsc::channel();
                let counts = &counts;
                let spawner = scope.spawn(move || {
                    let jobs: Vec<_> = (0..60)
                        .map(|i| {
                            let token = Token::new(counts);
                            if i == 10 {
                                begin.send(()).unwrap();
                            }
                            handle.spawn_blocking(move || drop(token))
                        })
                        .collect();
                    let answers = jobs.into_iter().map(block_on_elsewhere);
                    answers
                        .filter(|answer| {
                            answer.as_ref().is_ok_and(|()| true) || answer.as_ref().is_err_and(|e| e.is_cancelled())
                        })
                        .count()
                });
                begun.recv().unwrap();
                drop(runtime);
                spawner.join().unwrap()
            });
            assert_eq!((spawned, counts.drops()), (60, 60));
        }
    });
}

#[test]
fn a_busy_pool_stops_no_task() {
    within(LIMIT, || {
        let runtime = multi_thread(2).max_blocking_threads(1).build().unwrap();
        let (job, begun, go) = stuck();
        let task = runtime.spawn_blocking(job);
        begun.recv().unwrap();
        runtime.block_on(async {
            mini::spawn(sleep(Duration::from_micros(100))).await.unwrap();
            go.send(()).unwrap();
            assert_eq!(task.await.unwrap(), 5);
        });
    });
}
