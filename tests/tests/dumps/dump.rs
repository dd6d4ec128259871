//! Dumps: where each task waits, and for which other task, or none; from any thread, also while every worker is stuck.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::net::UnixStream;
use mini::runtime::{Dump, Handle};
use mini::signal::unix::{SignalKind, signal};
use mini::sync::{Mutex, oneshot};
use mini::task::{Builder, Group, Reason, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::child_support::own_test;
use mini_tests::net_support::in_each_runtime;
use mini_tests::{LIMIT, line_of, on_each_flavour, within};
use rustix::process::{Pid, Signal, kill_process};

mod no_circles;

fn line(mark: &str) -> String {
    format!("dump.rs:{}:", line_of(include_str!("dump.rs"), mark))
}

fn dump() -> Dump {
    Handle::current().dump()
}

/// Waits until all that was spawned waits.
async fn settled(tasks: usize) -> Dump {
    loop {
        let dump = dump();
        let waiting = dump.tasks().iter().filter(|task| task.waits_for().is_some()).count();
        if waiting == tasks {
            return dump;
        }
        yield_now().await;
    }
}

/// Whether one line of `text` has all the `parts`.
fn has_line(text: &str, parts: &[&str]) -> bool {
    text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn tasks_of_a_runtime_that_nobody_runs_are_told_with_the_reason() {
    let runtime = mini::runtime::Builder::new_current_thread().build().unwrap();
    let _task = runtime.spawn(sleep(LIMIT));
    let text = runtime.handle().dump().to_string();
    assert!(text.contains("worker 0  without a thread: no thread is in block_on or turn, so no task runs\n"), "{text}");
}

#[test]
fn it_names_the_lines_where_tasks_were_spawned_and_wait() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let mut peers = Vec::new();
            for _ in 0..50 {
                let (stream, peer) = UnixStream::pair().unwrap();
                peers.push(peer);
                let reader = async move {
                    let _ = stream.read(&mut [0; 8]).await; // read here
                };
                mini::spawn(reader); // the readers
            }
            let sleeper = async {
                sleep(Duration::from_secs(600)).await; // slept here
            };
            Builder::new().name("sleeper").spawn(sleeper); // the sleeper
            let dump = settled(51).await;
            let text = dump.to_string();
            assert!(
                has_line(&text, &["50 tasks", &line("// the readers"), "Read", &line("// read here"), "on fd"]),
                "{text}"
            );
            assert!(
                has_line(
                    &text,
                    &["\"sleeper\"", &line("// the sleeper"), "Timer", &line("// slept here"), "due in 10 min"]
                ),
                "{text}"
            );
            assert!(!text.contains("LOST") && !text.contains("DEADLOCK") && !text.contains("CIRCLE"), "{text}");
            let sleeper = dump.tasks().iter().find(|task| task.name() == Some("sleeper")).unwrap();
            assert_eq!((sleeper.polls(), sleeper.is_lost()), (1, false));
            let later = self::dump();
            assert!(later.tasks().iter().all(|task| task.unchanged_for().is_some()), "{later}");
            assert!(later.to_string().contains("; unchanged since the dump before"), "{later}");
        });
    });
}

#[test]
fn a_wait_is_told_with_its_time_over_several_dumps() {
    mini::block_on(async {
        mini::spawn(sleep(Duration::from_secs(600)));
        settled(1).await;
        let seen = std::time::Instant::now();
        while seen.elapsed() < Duration::from_millis(20) {} // a dump is made in less
        dump();
        let waited = seen.elapsed();
        let last = dump();
        assert!(last.tasks()[0].unchanged_for().unwrap() >= waited, "{last}");
        assert!(last.to_string().contains("; unchanged since the dump before"), "{last}");
    });
}

#[test]
fn the_poll_in_which_a_dump_was_made_is_no_wait() {
    mini::block_on(async {
        mini::spawn(async {
            drop(dump());
            pending::<()>().await;
        });
        yield_now().await;
        let unchanged = || dump().tasks()[0].unchanged_for();
        assert_eq!(unchanged(), None);
        assert!(unchanged().is_some(), "it waits since the dump before");
    });
}

#[test]
fn dumps_made_at_one_time_all_know_how_long_a_task_waits() {
    mini::block_on(async {
        mini::spawn(sleep(Duration::from_secs(600)));
        settled(1).await;
        let (handle, seen) = (Handle::current(), std::time::Instant::now());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let waited = seen.elapsed();
                        let dump = handle.dump();
                        assert!(dump.tasks()[0].unchanged_for().is_some_and(|unchanged| unchanged >= waited), "{dump}");
                    }
                });
            }
        });
    });
}

#[test]
fn a_task_in_the_place_of_one_that_has_ended_has_waited_for_no_time() {
    in_each_runtime(async || {
        let [first, stays] = [(); 2].map(|()| mini::spawn(sleep(LIMIT)));
        settled(2).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let begin = std::time::Instant::now();
        let new = mini::spawn(sleep(LIMIT));
        let dump = settled(2).await;
        let of = |id| dump.tasks().iter().find(|task| task.id() == id).unwrap();
        assert!(of(new.id()).unchanged_for() <= Some(begin.elapsed())); // more than one dump may have seen it
        assert!(of(stays.id()).unchanged_for() > of(new.id()).unchanged_for());
        assert!(dump.tasks().is_sorted_by_key(|task| task.id()));
        stays.abort();
        new.abort();
    });
}

#[test]
fn two_locks_taken_in_both_orders_are_a_circle() {
    in_each_runtime(|| async {
        let before = dump().tasks().len();
        let (lock, other_lock) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        // Each has its first lock before either asks for its second.
        let ((here, here_is), (there, there_is)) = (oneshot::channel(), oneshot::channel());
        let (mine, its) = (lock.clone(), other_lock.clone());
        let first = Builder::new().name("one").spawn(async move {
            let _mine = mine.lock().await; // the one has
            here.send(()).unwrap();
            there_is.await.unwrap();
            let _its = its.lock().await; // the one waits
        });
        let second = Builder::new().name("other").spawn(async move {
            let _mine = other_lock.lock().await; // the other has
            there.send(()).unwrap();
            here_is.await.unwrap();
            let _its = lock.lock().await; // the other waits
        });
        let ids = [first.id(), second.id()];
        let circle = loop {
            let dump = dump();
            if let [circle] = &dump.circles()[..] {
                let text = dump.to_string();
                assert!(
                    has_line(
                        &text,
                        &[
                            "\"one\"",
                            "waits for Lock",
                            &line("// the one waits"),
                            "last taken by task",
                            &line("// the other has")
                        ]
                    ),
                    "{text}"
                );
                assert!(
                    has_line(
                        &text,
                        &[
                            "\"other\"",
                            "waits for Lock",
                            &line("// the other waits"),
                            "last taken by task",
                            &line("// the one has")
                        ]
                    ),
                    "{text}"
                );
                assert!(text.contains("a deadlock") && !text.contains("LOST"), "{text}");
                let later = self::dump().to_string();
                assert!(
                    has_line(&later, &["MAYBE A CIRCLE", "none has made progress for", "a deadlock, unless a lock"]),
                    "{later}"
                );
                break circle.clone();
            }
            yield_now().await;
        };
        assert!(circle.len() == 2 && ids.iter().all(|id| circle.contains(id)), "{circle:?}");
        for task in [first, second] {
            let _ = task.cancel().await;
        }
        assert_eq!((dump().circles().len(), dump().tasks().len()), (0, before));
    });
}

#[test]
fn a_timer_beside_a_lock_is_told_behind_the_holder() {
    in_each_runtime(|| async {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().await; // behind the holder
        let theirs = lock.clone();
        let lasts = Duration::from_secs(3600);
        let waits = mini::spawn(mini::time::timeout(lasts, async move { drop(theirs.lock().await) }));
        while !has_line(&dump().to_string(), &["waiting: Lock at "]) {
            yield_now().await;
        }
        let text = dump().to_string();
        let (_, told) = text.split_once(&line("// behind the holder")).expect(&text);
        let told = told.lines().next().unwrap();
        assert!(told.contains(", or a timer"), "{text}");
        drop(held);
        waits.await.unwrap().unwrap();
    });
}

/// Each of several tasks that wait for a lock names its holder of now, though none was polled since it changed hands.
#[test]
fn a_queue_at_a_lock_names_the_holder_of_now() {
    in_each_runtime(|| async {
        let lock = Arc::new(Mutex::new(()));
        let first = lock.lock().await;
        let mut tasks = HashMap::new();
        for _ in 0..5 {
            let (lock, (end, ended)) = (lock.clone(), oneshot::channel::<()>());
            let task = mini::spawn(async move {
                let _guard = lock.lock().await; // the queue
                let _ = ended.await;
            });
            tasks.insert(task.id(), (task, end));
        }
        let waiters = || {
            let dump = dump();
            let waits = dump.tasks().iter().filter_map(|task| Some((task.id(), task.waits_for()?)));
            waits.filter(|(_, wait)| wait.contains(&line("// the queue"))).collect::<Vec<_>>()
        };
        while waiters().len() < 5 {
            yield_now().await;
        }
        drop(first);
        for left in (0..5).rev() {
            let holder = loop {
                let waiters = waiters();
                let is_waiting = |id| waiters.iter().any(|(other, _)| *other == id);
                if let [holder] = tasks.keys().filter(|id| !is_waiting(**id)).collect::<Vec<_>>()[..]
                    && waiters.len() == left
                {
                    let text = format!(", last taken by task {holder}");
                    assert!(waiters.iter().all(|(_, wait)| wait.ends_with(&text)), "{waiters:?}");
                    break *holder;
                }
                yield_now().await;
            };
            let (task, end) = tasks.remove(&holder).unwrap();
            end.send(()).unwrap();
            task.await.unwrap();
        }
    });
}

#[test]
fn a_lock_that_the_main_task_holds_is_its_own() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let lock = Arc::new(Mutex::new(()));
            let guard = lock.lock().await;
            let theirs = lock.clone();
            let task = mini::spawn(async move { drop(theirs.lock().await) });
            let text = settled(1).await.to_string();
            assert!(has_line(&text, &["waiting: Lock", "last taken by the main task"]), "{text}");
            let (handle, id) = (Handle::current(), task.id());
            let (seen, see) = oneshot::channel();
            thread::spawn(move || {
                let text = loop {
                    let text = handle.dump().to_string();
                    if text.contains("CIRCLE") {
                        break text;
                    }
                    thread::yield_now();
                };
                seen.send(text).unwrap();
            });
            // Awaits what waits for its own guard.
            mini::race! {
                biased;
                text = see => {
                    let text = text.unwrap();
                    assert!(has_line(&text, &["the main task waits for", &format!("task {id}")]), "{text}");
                }
                _ = task => panic!("it has no lock"),
            }
            drop(guard);
        });
    });
}

#[test]
fn a_task_is_lost_when_its_last_waker_goes_and_not_before() {
    in_each_runtime(|| async {
        let (give, given) = mpsc::channel::<Waker>();
        let gives_its_waker = poll_fn(move |cx| {
            let _ = give.send(cx.waker().clone());
            Poll::<()>::Pending
        });
        let lost = Builder::new().name("lost").spawn(gives_its_waker); // spawned to be lost
        let waker = loop {
            match given.try_recv() {
                Ok(waker) => break waker,
                Err(_) => yield_now().await,
            }
        };
        let is_lost = |dump: &Dump| dump.tasks().iter().any(|task| task.name() == Some("lost") && task.is_lost());
        for _ in 0..10 {
            assert!(!is_lost(&dump()), "somebody has its waker");
            yield_now().await;
        }
        let _abort = lost.abort_handle(); // which wakes nobody
        drop(waker);
        while !is_lost(&dump()) {
            yield_now().await;
        }
        let text = dump().to_string();
        assert!(has_line(&text, &["\"lost\"", &line("// spawned to be lost"), "LOST"]), "{text}");
        assert!(has_line(&text, &["1 LOST task"]), "{text}");
        assert!(lost.cancel().await.unwrap_err().is_cancelled());
    });
}

#[test]
fn it_tells_what_every_worker_is_stuck_in() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let workers = runtime.handle().metrics().num_workers();
        let (quit, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let handle = runtime.handle().clone();
        let dumper = thread::spawn(move || {
            let is_stuck =
                |line: &&str| line.contains("worker ") && line.contains(" in task ") && line.contains("\"stuck\"");
            let stuck = loop {
                let text = handle.dump().to_string();
                if text.lines().filter(is_stuck).count() == workers {
                    break text;
                }
                thread::yield_now();
            };
            drop(quit);
            stuck
        });
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for _ in 0..workers {
                let wait = wait.clone();
                let blocks = async move {
                    let _ = wait.lock().unwrap().recv();
                };
                tasks.push(Builder::new().name("stuck").spawn(blocks)); // blocks here
            }
            mini::spawn(pending::<()>());
            for task in tasks {
                task.await.unwrap();
            }
        });
        let text = dumper.join().unwrap();
        assert!(has_line(&text, &["worker 0", "\"stuck\"", &line("// blocks here")]), "{text}");
        assert!(has_line(&text, &["\"stuck\"", &line("// blocks here"), "running"]), "{text}");
    });
}

#[test]
fn a_task_of_a_group_is_lost_too_and_one_of_plain_spawn_with_an_abort_handle_is_not() {
    in_each_runtime(|| async {
        let group = Group::new().grace(Duration::ZERO);
        let in_group = group.spawn(pending::<()>());
        let plain = mini::spawn(pending::<()>());
        let abort = plain.abort_handle();
        let is_lost = |id| dump().tasks().iter().any(|task| task.id() == id && task.is_lost());
        while !is_lost(in_group.id()) {
            yield_now().await;
        }
        assert!(!is_lost(plain.id()));
        drop(abort);
        while !is_lost(plain.id()) {
            yield_now().await;
        }
        assert_eq!(group.shutdown(Reason::Requested).await.aborted().len(), 1);
        drop(plain.cancel().await);
    });
}

/// The dumps run beside all that a task does to its list: it comes, goes, is aborted, and its core ends.
#[test]
fn dumps_of_many_threads_disturb_nobody() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let dumpers = [(); 2].map(|()| {
            let (handle, is_over) = (runtime.handle().clone(), is_over.clone());
            thread::spawn(move || {
                let mut most = 0;
                while !is_over.load(SeqCst) {
                    let dump = handle.dump();
                    let ids: Vec<_> = dump.tasks().iter().map(|task| task.id()).collect();
                    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "each once: {ids:?}");
                    assert!(dump.circles().is_empty(), "{dump}");
                    assert!(!dump.tasks().iter().any(|task| task.is_lost()), "{dump}");
                    most = most.max(ids.len());
                }
                most
            })
        });
        // A worker that is not given a CPU in the middle of a wake is seen there for a long time.
        let busy = [(); 3].map(|()| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                while !is_over.load(SeqCst) {
                    std::hint::spin_loop()
                }
            })
        });
        runtime.block_on(async {
            let (there, mut come) = mini::sync::mpsc::channel::<u32>(1);
            let (back, mut gone) = mini::sync::mpsc::channel::<u32>(1);
            mini::spawn(async move {
                while back.send(come.recv().await?).await.is_ok() {}
                Some(())
            });
            mini::spawn(async move {
                while there.send(1).await.is_ok() {
                    gone.recv().await?;
                }
                Some(())
            });
            for round in 0..200_u64 {
                let tasks: Vec<_> = (0..100)
                    .map(|n| {
                        mini::spawn(async move {
                            for _ in 0..n % 4 {
                                yield_now().await;
                            }
                            if n % 10 == 0 {
                                sleep(Duration::from_micros(round)).await;
                            }
                        })
                    })
                    .collect();
                for (n, task) in (0..).zip(tasks) {
                    if n % 3 == 0 { drop(task.cancel().await) } else { task.await.unwrap() }
                }
            }
        });
        drop(runtime);
        is_over.store(true, SeqCst);
        for busy in busy {
            busy.join().unwrap();
        }
        for dumper in dumpers {
            assert!(dumper.join().unwrap() > 0, "the dumps have seen tasks");
        }
    });
}

/// The child of a test about SIGQUIT.
const QUIT: &str = "MINI_DUMP_AT_QUIT";

/// Runs the test `name` in a process of its own with [`QUIT`] set, and returns it and the lines that it prints.
fn child_of(name: &str) -> (std::process::Child, impl Iterator<Item = String>) {
    let mut child = own_test(name);
    child.env(QUIT, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, out)
}

#[test]
fn sigquit_prints_every_runtime_and_the_program_goes_on() {
    #[mini::main(crate = mini, dump = true)]
    async fn program() {
        let lock = Arc::new(Mutex::new(()));
        let _guard = lock.lock().await;
        let theirs = lock.clone();
        mini::spawn(async move { drop(theirs.lock().await) }); // waits for main
        settled(1).await;
        println!("ready");
        std::io::stdin().lines().next(); // blocks a worker
        println!("ended");
    }
    if std::env::var_os(QUIT).is_some() {
        return program();
    }
    within(LIMIT, || {
        let (mut child, mut out) = child_of("sigquit_prints_every_runtime_and_the_program_goes_on");
        assert!(out.any(|line| line.ends_with("ready")));
        let mut err = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        for _ in 0..2 {
            kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
            assert!(err.any(|text| has_line(&text, &["waiting: Lock", &line("// waits for main")])));
        }
        drop(child.stdin.take()); // which it waits for
        assert!(out.any(|line| line.ends_with("ended")));
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_program_that_listens_to_sigquit_keeps_it() {
    #[mini::main(crate = mini, dump = true)]
    async fn program() {
        let mut asked = signal(SignalKind::quit()).unwrap();
        println!("ready");
        for _ in 0..3 {
            asked.recv().await.unwrap();
            println!("heard");
        }
    }
    if std::env::var_os(QUIT).is_some() {
        return program();
    }
    within(LIMIT, || {
        let (mut child, mut out) = child_of("a_program_that_listens_to_sigquit_keeps_it");
        assert!(out.any(|line| line.ends_with("ready")));
        for _ in 0..3 {
            kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
            assert!(out.any(|line| line.ends_with("heard")));
        }
        assert!(child.wait().unwrap().success());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(!told.contains("mini: runtime"), "{told}");
    });
}

#[test]
fn a_program_without_dumps_ends_by_sigquit() {
    #[mini::main(crate = mini)]
    async fn program() {
        println!("ready");
        pending::<()>().await;
    }
    if std::env::var_os(QUIT).is_some() {
        return program();
    }
    within(LIMIT, || {
        let (mut child, mut out) = child_of("a_program_without_dumps_ends_by_sigquit");
        assert!(out.any(|line| line.ends_with("ready")));
        kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::QUIT.as_raw()));
    });
}

#[test]
fn a_future_of_block_on_that_outlives_its_runtime_waits_alone() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let (sender, receiver) = oneshot::channel::<()>();
        thread::scope(|threads| {
            threads.spawn(|| handle.block_on(receiver).unwrap());
            let is_told = |parts: &[&str]| has_line(&handle.dump().to_string(), parts);
            while !is_told(&["main task waits for Receive at"]) {}
            runtime.shutdown_background();
            while !is_told(&["a thread in block_on that runs no worker waits for Receive at"]) {}
            while is_told(&["in the main task"]) {} // about to wait
            sender.send(()).unwrap();
        });
    });
}
