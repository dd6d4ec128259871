//! What a program is warned of, each with a program that does it; and one that does nothing wrong.

use std::future::pending;
use std::panic::Location;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mini::runtime::{Builder, Handle, Runtime, Warning, WarningKind};
use mini::sim::Sim;
use mini::sync::{Barrier, Mutex, mpsc, oneshot};
use mini::task::JoinHandle;
use mini_tests::child_support::{cat, own_test};
use mini_tests::{LIMIT, in_child, within};

mod no_circles;

/// A runtime, and what it warns of.
fn warned(builder: &mut Builder) -> (Runtime, Receiver<Warning>) {
    let (send, receive) = channel();
    let runtime = builder.on_warning(move |warning| drop(send.send(warning.clone()))).build().unwrap();
    (runtime, receive)
}

/// The first warning of that kind; the test hangs without one.
fn wait(warnings: &Receiver<Warning>, kind: WarningKind) -> Warning {
    warnings.iter().find(|warning| warning.kind() == kind).unwrap()
}

/// Runs `body` in a process of its own, as a part of the test called `test`, without threads that wait for a time.
fn alone_in_child(test: &'static str, body: impl FnOnce()) {
    const CHILD: &str = "MINI_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    within(LIMIT, move || {
        let output = own_test(test).env(CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    });
}

fn is_at(location: Option<&Location<'_>>, line: u32) -> bool {
    location.is_some_and(|location| (location.file(), location.line()) == (file!(), line))
}

#[test]
fn a_poll_that_blocks_is_named_while_it_does() {
    for builder in [&mut Builder::new_current_thread(), Builder::new_multi_thread().worker_threads(2)] {
        let (runtime, warnings) = warned(builder);
        let (blocks, id) = runtime.block_on(async move {
            let task =
                mini::task::Builder::new().name("blocks").spawn(async move { wait(&warnings, WarningKind::LongPoll) });
            let id = task.id();
            (task.await.unwrap(), id)
        });
        assert_eq!(blocks.task(), Some(id));
        assert!(is_at(blocks.location(), line!() - 5), "{blocks}");
        let text = blocks.to_string();
        assert!(text.starts_with(&format!("long poll: task {id} \"blocks\" spawned at ")), "{text}");
        if cfg!(all(target_os = "linux", not(mini_kqueue_shim))) {
            assert!(text.contains(", and waits in futex(2); until"), "{text}");
        }
    }
}

#[test]
fn a_longer_poll_of_a_task_of_the_same_line_is_told_too() {
    let (runtime, warnings) = warned(&mut Builder::new_current_thread());
    let told = runtime.block_on(async move {
        let warnings = Arc::new(std::sync::Mutex::new(warnings));
        let mut told = Vec::new();
        for _ in 0..3 {
            let warnings = warnings.clone();
            let task = mini::spawn(async move { wait(&warnings.lock().unwrap(), WarningKind::LongPoll).task() });
            told.push((Some(task.id()), task.await.unwrap()));
        }
        told
    });
    for (task, warned) in told {
        assert_eq!(warned, task);
    }
}

#[test]
fn polls_of_a_block_on_are_told_by_the_wait_before() {
    let (runtime, warnings) = warned(&mut Builder::new_current_thread());
    let [first, second] = runtime.block_on(async {
        mini::task::yield_now().await;
        mini::time::sleep(Duration::from_millis(1)).await;
        let first = wait(&warnings, WarningKind::LongPoll);
        mini::time::sleep(Duration::from_millis(1)).await;
        [first, wait(&warnings, WarningKind::LongPoll)]
    });
    assert!(is_at(first.location(), line!() - 5) && is_at(second.location(), line!() - 3), "{first}\n{second}");
}

#[test]
fn a_poll_of_a_simulation_that_does_not_return_is_told_with_its_seed() {
    let told = Sim::new(7).run(async {
        let waits = mini::task::Builder::new().name("waits").spawn(async {
            let runtime = Handle::current();
            // Of the system, as a wait for a thread would be.
            let sleeps = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(10))).take(3_000);
            sleeps.into_iter().find_map(|()| runtime.warnings().pop()).expect("a warning, unless MINI_WARN=0")
        });
        waits.await.unwrap()
    });
    let told = told.unwrap();
    assert_eq!(told.kind(), WarningKind::LongPoll);
    let text = told.to_string();
    assert!(text.starts_with("long poll: task "), "{text}");
    assert!(text.contains(&format!(" \"waits\" spawned at {}:", file!())), "{text}");
    let thread = "warnings::a_poll_of_a_simulation_that_does_not_return_is_told_with_its_seed";
    assert!(
        text.ends_with(&format!("; until it returns, the simulation of seed 7 on thread {thread} makes no progress")),
        "{text}"
    );
}

#[test]
fn a_timer_that_a_poll_makes_late_is_told_with_the_poll() {
    let (runtime, warnings) = warned(&mut Builder::new_current_thread());
    let (late, id) = runtime.block_on(async move {
        mini::spawn(mini::time::sleep(Duration::from_millis(1)));
        let task = mini::spawn(async move {
            mini::task::yield_now().await; // so that the timer is there
            wait(&warnings, WarningKind::LateTimer)
        });
        let id = task.id();
        (task.await.unwrap(), id)
    });
    assert_eq!(late.task(), Some(id));
    assert!(late.to_string().contains(" ms late so far: worker 0 has been in one poll of task "), "{late}");
}

#[test]
fn under_a_paused_clock_no_timer_is_late() {
    let (runtime, warnings) = warned(Builder::new_current_thread().start_paused(true));
    let first = runtime.block_on(async move {
        mini::spawn(mini::time::sleep(Duration::from_millis(1)));
        mini::time::sleep(Duration::from_secs(1)).await;
        mini::spawn(mini::time::sleep(Duration::ZERO));
        warnings.recv().unwrap()
    });
    assert_eq!(first.kind(), WarningKind::LongPoll); // which comes after that of a late timer
}

#[test]
fn a_task_that_dropped_its_waker_is_lost() {
    for builder in [&mut Builder::new_current_thread(), Builder::new_multi_thread().worker_threads(2)] {
        let (runtime, warnings) = warned(builder);
        let line = line!() + 2;
        for _ in 0..3 {
            drop(runtime.spawn(pending::<()>()));
        }
        let lost = runtime
            .block_on(async { mini::spawn_blocking(move || wait(&warnings, WarningKind::LostTask)).await.unwrap() });
        assert!(is_at(lost.location(), line), "{lost}");
        let text = lost.to_string();
        assert!(
            text.ends_with("; its last wait was for something unknown to mini; and 2 more that were spawned there"),
            "{text}"
        );
        assert_eq!(runtime.metrics().num_lost_tasks(), 3);
    }
}

#[test]
fn tasks_that_wait_for_each_others_locks_are_a_deadlock() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let both = Arc::new(mini::sync::Barrier::new(2));
    let take = |first: usize, second: usize| {
        let (first, second, both) = (locks[first].clone(), locks[second].clone(), both.clone());
        runtime.spawn(async move {
            let _first = first.lock().await;
            both.wait().await;
            drop(second.lock().await)
        })
    };
    let line = line!() - 3;
    let tasks = [take(0, 1), take(1, 0)];
    let warning = wait(&warnings, WarningKind::Deadlock);
    let text = warning.to_string();
    let each =
        "deadlock: possible, as each of these waits for the next, or for a lock that it took, and for nothing else";
    assert!(text.starts_with(&format!("{each} that is known: task ")), "{text}");
    for task in &tasks {
        assert!(text.contains(&format!("task {} spawned at ", task.id())), "{text}");
    }
    assert_eq!(text.matches(&format!(" waits for Lock at {}:{}:", file!(), line)).count(), 2, "{text}");
}

#[test]
fn a_block_on_may_be_in_a_deadlock() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let [mine, theirs] = [(); 2].map(|()| Arc::new(Mutex::new(())));
    let both = Arc::new(Barrier::new(2));
    // Never ends.
    std::thread::spawn(move || {
        runtime.block_on(async {
            let _mine = mine.lock().await;
            let (mine, theirs_too, meet) = (mine.clone(), theirs.clone(), both.clone());
            mini::spawn(async move {
                let _theirs = theirs_too.lock().await;
                meet.wait().await;
                drop(mine.lock().await);
            });
            both.wait().await;
            drop(theirs.lock().await);
        });
    });
    let text = wait(&warnings, WarningKind::Deadlock).to_string();
    assert!(text.contains("the future of block_on"), "{text}");
    assert_eq!(text.matches(" waits for Lock at ").count(), 2, "{text}");
}

/// Of a line that was told nothing is looked up again: the watcher comes to what is new.
#[test]
fn very_many_deadlocks_do_not_hide_a_long_poll() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let pairs: Vec<_> = (0..20_000)
        .map(|_| {
            let (send, receive) = oneshot::channel::<JoinHandle<()>>();
            let first = runtime.spawn(async { receive.await.unwrap().await.unwrap() });
            (send, runtime.spawn(async { first.await.unwrap() }))
        })
        .collect();
    pairs.into_iter().for_each(|(send, second)| send.send(second).unwrap()); // so that one walk sees all of them
    wait(&warnings, WarningKind::Deadlock);
    let begin = std::time::Instant::now();
    runtime.block_on(async { wait(&warnings, WarningKind::LongPoll) });
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
}

#[test]
fn a_circle_through_a_shared_handle_is_a_deadlock() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let lock = Arc::new(Mutex::new(()));
    let (held, is_held) = oneshot::channel::<()>();
    let theirs = lock.clone();
    let waits = runtime.spawn(async move {
        is_held.await.unwrap();
        drop(theirs.lock().await);
    });
    let shared = waits.shared();
    let holds = runtime.spawn(async move {
        let _held = lock.lock().await;
        held.send(()).unwrap();
        shared.await.unwrap();
    });
    let told = wait(&warnings, WarningKind::Deadlock).to_string();
    assert!(told.contains(&holds.id().to_string()), "{told}");
    holds.abort();
}

/// In a process of its own: any other thread may be there to serve the program.
#[test]
#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
fn a_block_on_that_nothing_can_wake_is_told() {
    alone_in_child("a_block_on_that_nothing_can_wake_is_told", || {
        // A recorder has a reference of its own.
        for (paused, is_recorded) in [(false, false), (true, false), (false, true)] {
            let mut builder = Builder::new_current_thread();
            let (runtime, warnings) = warned(builder.start_paused(paused).histograms(is_recorded).in_test_harness());
            // Never ends.
            std::thread::spawn(move || runtime.block_on(pending::<()>()));
            let text = wait(&warnings, WarningKind::Stillness).to_string();
            assert_eq!(
                text,
                "stillness: nothing can wake the future of block_on; it waits for something unknown to mini"
            );
        }
    });
}

/// The future of a `block_on` and the body of a program, which keep up what others do, while a thread wakes a task.
#[test]
fn what_keeps_a_program_up_that_a_thread_drives_is_not_lost() {
    let (send, receives): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>(1)).unzip();
    let programs: Vec<_> = receives
        .into_iter()
        .zip([false, true])
        .map(|(mut receive, in_task)| {
            let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
            // Never ends.
            std::thread::spawn(move || {
                runtime.block_on(async move {
                    mini::spawn(async move { while receive.recv().await.is_some() {} });
                    if in_task {
                        mini::spawn(pending::<()>()).await.unwrap();
                    }
                    pending::<()>().await;
                });
            });
            warnings
        })
        .collect();
    for _ in 0..35 {
        std::thread::sleep(Duration::from_millis(200)); // real time, for longer than the watcher takes to say something
        send.iter().for_each(|send| mini::block_on(send.send(())).unwrap());
    }
    for warnings in programs {
        assert_eq!(warnings.try_iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
    }
}

/// In a process of its own, without other threads, of which any may wake the task.
#[test]
#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
fn a_runtime_in_which_all_threads_wait_is_told_with_what_its_tasks_wait_for() {
    alone_in_child("a_runtime_in_which_all_threads_wait_is_told_with_what_its_tasks_wait_for", || {
        let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2).in_test_harness());
        let (send, receive) = oneshot::channel::<()>();
        let line = line!() - 1;
        // The thread that waits for a dropped child wakes no task. The child ends with this process.
        let mut child = cat().spawn().unwrap();
        let _input = child.stdin.take();
        drop(child);
        let warnings = std::thread::spawn(move || {
            let warning = wait(&warnings, WarningKind::Stillness);
            drop(send);
            warning
        });
        runtime.block_on(async {
            let task = mini::task::Builder::new().name("waits").spawn(receive);
            task.await.unwrap().unwrap_err();
        });
        let text = warnings.join().unwrap().to_string();
        assert!(
            text.contains("and every thread of the process waits; the future of block_on waits for Join of task "),
            "{text}"
        );
        assert!(text.contains("\"waits\" spawned at "), "{text}");
        assert!(text.contains(&format!(" for Receive at {}:{line}:", file!())), "{text}");
    });
}

#[test]
fn a_timer_of_a_paused_clock_does_not_hide_that_nothing_goes_on() {
    let (runtime, warnings) = warned(Builder::new_current_thread().start_paused(true));
    let (send, receive) = oneshot::channel::<()>();
    let warnings = std::thread::spawn(move || {
        let warning = wait(&warnings, WarningKind::Stillness);
        send.send(()).unwrap();
        warning
    });
    runtime.block_on(async {
        mini::spawn(async {
            let mut interval = mini::time::interval(Duration::from_secs(1));
            loop {
                interval.tick().await;
            }
        });
        receive.await.unwrap();
    });
    let text = warnings.join().unwrap().to_string();
    assert!(text.contains(" of the paused clock, and none has woken the future of block_on; the future of "), "{text}");
}

#[test]
fn a_task_that_asks_again_and_again_is_a_busy_loop() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let task = runtime.spawn(async {
        loop {
            mini::task::yield_now().await;
        }
    });
    let busy = wait(&warnings, WarningKind::BusyLoop);
    assert_eq!(busy.task(), Some(task.id()));
    assert!(busy.to_string().contains(" has asked to run again "), "{busy}");
}

/// Each task has waited for a message, and its channel keeps the waker.
#[test]
fn a_deadlock_of_tasks_that_have_wakers_elsewhere_is_told_later() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let (lock, other) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let meet = Arc::new(Barrier::new(2));
    for (first, second) in [(lock.clone(), other.clone()), (other, lock)] {
        let meet = meet.clone();
        let (send, mut receive) = mpsc::channel(1);
        runtime.spawn(async move {
            receive.recv().await.unwrap();
            let _first = first.lock().await;
            meet.wait().await;
            drop(second.lock().await);
        });
        runtime.spawn(async move {
            mini::time::sleep(Duration::from_millis(10)).await; // so that the other one waits
            send.send(()).await.unwrap();
            pending::<()>().await;
        });
    }
    // Never ends.
    std::thread::spawn(move || runtime.block_on(mini::time::sleep(Duration::MAX)));
    let text = wait(&warnings, WarningKind::Deadlock).to_string();
    assert!(text.contains("for a lock that it took, and for nothing else that is known: task"), "{text}");
}

/// A thread that is to wake a task waits for something with a timeout, in a process of its own, without other threads.
#[test]
fn a_thread_that_waits_with_a_timeout_may_wake_a_task() {
    alone_in_child("a_thread_that_waits_with_a_timeout_may_wake_a_task", || {
        let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2).in_test_harness());
        let (send, receive) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let (_keep, nothing) = channel::<()>();
            nothing.recv_timeout(Duration::from_secs(8)).unwrap_err(); // real time, for the watcher
            send.send(()).unwrap();
        });
        runtime.block_on(async { mini::spawn(receive).await }).unwrap().unwrap();
        thread.join().unwrap();
        drop(runtime);
        assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
    });
}

/// A thread that has been in a `block_on` before sleeps, and then wakes the future of another one.
#[test]
fn a_thread_that_was_a_worker_before_may_wake_a_task() {
    alone_in_child("a_thread_that_was_a_worker_before_may_wake_a_task", || {
        let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2).in_test_harness());
        let (send, receive) = oneshot::channel();
        let handle = runtime.handle().clone();
        let thread = runtime.block_on(async {
            let thread = std::thread::spawn(move || {
                handle.block_on(async {}); // on the other core
                std::thread::sleep(Duration::from_secs(8)); // real time, for the watcher
                send.send(()).unwrap();
            });
            receive.await.unwrap();
            thread
        });
        thread.join().unwrap();
        drop(runtime);
        assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
    });
}

/// What looks like a mistake and is none, for eight seconds: longer than the watcher takes to say something.
#[test]
#[cfg_attr(mini_kqueue_shim, ignore = "a poll without a CPU looks like one that blocks there")]
fn what_is_right_is_not_told() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let (send, receive) = oneshot::channel();
    let computes = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(8)); // real time, which the watcher goes by
        send.send(()).unwrap();
    });
    let kept = runtime.spawn(pending::<()>()); // to be aborted
    let (served, warnings_of_served) = warned(&mut Builder::new_current_thread());
    let serves = std::thread::spawn(move || {
        let handle = served.spawn(async {
            loop {
                mini::time::sleep(Duration::from_millis(10)).await;
            }
        });
        served.block_on(async {
            let keeps_up = mini::spawn(pending::<()>());
            let aborts = keeps_up.abort_handle();
            mini::spawn(async move {
                mini::time::sleep(Duration::from_secs(7)).await;
                aborts.abort();
            });
            keeps_up.await.unwrap_err();
            handle.abort();
        });
        drop((served, handle));
        warnings_of_served.iter().map(|warning| warning.to_string()).collect::<Vec<_>>()
    });
    runtime.spawn(async {
        let mut file = mini::fs::File::open("/dev/zero").await.unwrap();
        let mut buf = [0; 4096];
        loop {
            assert_eq!(file.read(&mut buf).await.unwrap(), 4096); // its budget ends each of its runs
        }
    });
    let (paused, warnings_of_paused) = warned(Builder::new_current_thread().start_paused(true));
    let (done, is_done) = oneshot::channel();
    let sleeps = std::thread::spawn(move || {
        paused.block_on(async {
            mini::spawn(async {
                let mut interval = mini::time::interval(Duration::from_secs(1));
                loop {
                    interval.tick().await;
                }
            });
            // A timer comes, however many others are fired before.
            mini::race! {
                _ = mini::time::sleep(Duration::from_secs(1 << 40)) => panic!("34,000 years"),
                done = is_done => done.unwrap(),
            }
        });
        drop(paused);
        warnings_of_paused.iter().map(|warning| warning.to_string()).collect::<Vec<_>>()
    });
    runtime.block_on(receive).unwrap();
    done.send(()).unwrap();
    assert_eq!(sleeps.join().unwrap(), [""; 0]);
    kept.abort();
    drop(kept); // which keeps the runtime
    computes.join().unwrap();
    assert_eq!(serves.join().unwrap(), [""; 0]);
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// Tasks that wait, compute, lock and yield as they should, for three walks of the watcher.
#[test]
fn a_healthy_program_is_warned_of_nothing() {
    let (runtime, warnings) = warned(Builder::new_multi_thread().worker_threads(2));
    let (lock, end) = (Arc::new(Mutex::new(0_u64)), std::time::Instant::now() + Duration::from_secs(4));
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let lock = lock.clone();
            runtime.spawn(async move {
                while std::time::Instant::now() < end {
                    *lock.lock().await += 1;
                    mini::time::sleep(Duration::from_micros(100)).await;
                    mini::spawn(mini::task::yield_now()).await.unwrap();
                    mini::spawn_blocking(|| ()).await.unwrap();
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(runtime);
    assert_eq!(warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(), [""; 0]);
}

/// What a panic of the main future shows beside its message: the tasks that are left, where the program is warned.
#[test]
fn a_panic_of_the_main_future_shows_what_the_tasks_do() {
    let Some(stderr) = in_child("a_panic_of_the_main_future_shows_what_the_tasks_do", || {
        for (warns, name) in [(true, "left"), (false, "quiet")] {
            let runtime = Builder::new_current_thread().warnings(warns).build().unwrap();
            let panics = || {
                runtime.block_on(async {
                    mini::task::Builder::new().name(name).spawn(pending::<()>());
                    mini::task::yield_now().await;
                    panic!("the main future fails");
                })
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        }
        assert!(std::panic::catch_unwind(alone).is_err());
        assert!(std::panic::catch_unwind(as_task).is_err());
        assert!(std::panic::catch_unwind(grace::main).is_err());
    }) else {
        return;
    };
    let tasks = ["left", "of main", "in grace", "alone", "quiet"];
    let lines = || stderr.lines().filter(|line| line.starts_with("  task "));
    let shown = tasks.map(|name| lines().filter(|line| line.contains(&format!("\"{name}\" spawned at"))).count());
    assert_eq!(shown, [1, 1, 1, 0, 0], "{stderr}");
    assert_eq!(stderr.matches("mini: runtime ").count(), 3, "{stderr}");
}

#[mini::main(crate = mini, warnings = true)]
async fn alone() {
    panic!("it has no tasks");
}

#[mini::main(crate = mini, warnings = true, worker_threads = 2)]
async fn as_task() {
    mini::task::Builder::new().name("of main").spawn(pending::<()>());
    panic!("the body fails");
}

mod grace {
    #[mini::main(crate = mini, warnings = true, worker_threads = 2, grace = "50ms")]
    pub(super) async fn main() {
        let group = mini::task::Group::new();
        group.spawn_named("in grace", std::future::pending::<()>());
        std::mem::forget(group); // or its end would be that of the task
        panic!("the body fails");
    }
}
