//! The flight recorder and the histograms: what a trace shows of a real runtime.

#![allow(dead_code, reason = "what reads a trace is shared with the unit tests of the drawing")]

use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Poll, Waker};
use std::{env, fs, thread};

use mini::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use mini::sync::oneshot;
use mini::task::{self, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::child_support::own_test;
use mini_tests::{LIMIT, in_child, line_of, multi_thread, on_current_thread, on_each_flavour, until, within};

#[path = "../../../runtime/src/recorder/trace/decode.rs"]
mod decode;

use decode::{Kind, Shown, Trace};

fn place(mark: &str) -> String {
    format!("tests/tests/dumps/trace.rs:{}", line_of(include_str!("trace.rs"), mark)).replace("tests/tests/", "")
}

fn recorded(builder: &mut Builder) -> Runtime {
    builder.flight_recorder(1 << 20).build().unwrap()
}

fn trace_of(handle: &Handle) -> Trace {
    Trace::read(&handle.trace().unwrap())
}

/// The polls of tasks whose name or place ends with `label`, on the tracks of workers.
fn polls<'a>(trace: &'a Trace, label: &'a str) -> Vec<&'a Shown> {
    let is_worker = |event: &Shown| trace.tracks.get(&event.track).is_some_and(|track| track.starts_with("worker "));
    let polls = trace.events.iter().filter(|event| event.kind == Kind::Slice && event.name.ends_with(label));
    polls.filter(|event| is_worker(event)).collect()
}

/// What a task did, by the track whose name begins with `label`.
fn states(trace: &Trace, label: &str) -> Vec<String> {
    let track = trace.tracks.iter().find(|(_, track)| track.contains(label));
    let track = *track.unwrap_or_else(|| panic!("no track of {label} in {:?}", trace.tracks)).0;
    trace.slices(track).into_iter().map(|slice| slice.name.clone()).collect()
}

#[test]
fn a_trace_shows_each_poll_and_what_has_woken_the_task() {
    on_each_flavour(|mut builder| {
        let runtime = recorded(&mut builder);
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let receives = task::Builder::new().name("a receiver with a longer name").spawn(receiver);
            let trace = Handle::current();
            until(|| polls(&trace_of(&trace), "a receiver with a longer name").len() == 1).await;
            let sends = mini::spawn(async move { sender.send(7) }); // the sender
            sends.await.unwrap().unwrap();
            assert_eq!(receives.await.unwrap(), Ok(7));
        });
        let trace = trace_of(runtime.handle());
        let sender = place("the sender");
        let (receives, sends) = (polls(&trace, "a receiver with a longer name"), polls(&trace, &sender));
        assert_eq!((receives.len(), sends.len()), (2, 1));
        assert_eq!(
            states(&trace, "a receiver with"),
            ["waits for a worker", "runs", "waits", "waits for a worker", "runs"]
        );
        let wake = trace.instants("wakes").find(|wake| wake.notes["name"].starts_with("a receiver")).unwrap();
        let wakers = trace.slices(wake.track);
        let waker = wakers.iter().rfind(|slice| slice.at <= wake.at).unwrap();
        assert!(waker.end.is_some_and(|end| wake.at <= end), "it lies in the poll that wakes");
        assert!(waker.name.ends_with(&sender), "{}", waker.name);
        let arrow = trace.arrow(wake);
        assert_eq!((arrow.at, arrow.track), (receives[1].at, receives[1].track));
        assert!(!polls(&trace, "block_on").is_empty());
    });
}

#[test]
fn waits_timers_and_jobs_are_shown() {
    on_each_flavour(|mut builder| {
        let runtime = recorded(&mut builder);
        runtime.block_on(async {
            sleep(Duration::from_millis(2)).await;
            assert_eq!(mini::spawn_blocking(|| 7).await.unwrap(), 7); // the job
        });
        // A worker notes what it has fired afterwards.
        let mut trace = trace_of(runtime.handle());
        while !trace.instants("timers fire").any(|timers| timers.notes["count"] == "1") {
            trace = trace_of(runtime.handle());
        }
        let parked = trace.events.iter().filter(|event| event.kind == Kind::Slice && event.name == "parked");
        assert!(parked.count() > 0);
        assert_eq!(states(&trace, &place("the job")), ["waits for a worker", "runs"]);
        let spawn = trace.instants("spawns").find(|spawn| spawn.notes["name"].ends_with(&place("the job"))).unwrap();
        assert!(trace.tracks[&trace.arrow(spawn).track].contains(&place("the job")));
    });
}

#[test]
fn wakes_and_spawns_by_other_threads_are_shown_beside_the_workers() {
    on_each_flavour(|mut builder| {
        let runtime = recorded(&mut builder);
        let handle = runtime.handle().clone();
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let waits = mini::spawn(receiver); // woken from outside
            until(|| Handle::current().dump().tasks()[0].waits_for().is_some()).await;
            let outside = thread::spawn(move || {
                sender.send(()).unwrap();
                handle.spawn(async {}) // spawned outside
            });
            waits.await.unwrap().unwrap();
            mini::spawn_blocking(|| outside.join().unwrap()).await.unwrap().await.unwrap();
        });
        let trace = trace_of(runtime.handle());
        let outside = trace.track("other threads");
        for (name, mark) in [("wakes", "woken from outside"), ("spawns", "spawned outside")] {
            let place = place(mark);
            let events: Vec<_> = trace.instants(name).filter(|event| event.notes["name"].ends_with(&place)).collect();
            let [event] = events[..] else { panic!("once, by the thread that did it: {events:?}") };
            assert_eq!(event.track, outside, "{name}");
            let poll = *polls(&trace, &place).last().unwrap();
            assert_eq!(trace.arrow(event).at, poll.at);
        }
    });
}

#[test]
fn each_spawn_is_told_once() {
    on_each_flavour(|mut builder| {
        let runtime = recorded(&mut builder);
        runtime.block_on(async {
            mini::spawn(async {}).await.unwrap(); // for any worker
            mini::spawn_local(async {}).await.unwrap(); // for this one
        });
        let trace = trace_of(runtime.handle());
        for mark in ["for any worker", "for this one"] {
            let place = place(mark);
            assert_eq!(trace.instants("spawns").filter(|event| event.notes["name"].ends_with(&place)).count(), 1);
        }
    });
}

#[test]
fn sockets_that_are_ready_are_counted() {
    on_each_flavour(|mut builder| {
        let runtime = recorded(&mut builder);
        runtime.block_on(async {
            let (one, other) = mini::net::UnixStream::pair().unwrap();
            let reads = async move { one.read(&mut [0]).await.unwrap() };
            let reads = mini::spawn(reads); // the reader
            until(|| !polls(&trace_of(&Handle::current()), &place("the reader")).is_empty()).await;
            other.write_all(b"x").await.unwrap();
            assert_eq!(reads.await.unwrap(), 1);
        });
        let trace = trace_of(runtime.handle());
        let ready: Vec<_> = trace.instants("sockets are ready").collect();
        assert!(ready.iter().all(|ready| ready.notes["count"] == "1"), "{ready:?}");
        let ready = ready.last().expect("the last byte");
        let wake = trace.instants("wakes").find(|wake| wake.notes["name"].ends_with(&place("the reader"))).unwrap();
        assert!(wake.track == ready.track && wake.at <= ready.at, "by the worker that has the event");
    });
}

#[test]
fn a_trace_is_taken_while_every_worker_is_stuck() {
    within(LIMIT, || {
        let runtime = recorded(&mut multi_thread(2));
        let all_in = Arc::new(Barrier::new(3));
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let mut stuck = Vec::new();
        for _ in 0..2 {
            let (all_in, wait) = (all_in.clone(), wait.clone());
            stuck.push(runtime.spawn(async move {
                all_in.wait(); // both workers are here
                let _ = wait.lock().unwrap().recv();
            })); // the stuck ones
        }
        let path = path("stuck");
        all_in.wait();
        runtime.handle().snapshot(&path).unwrap();
        let trace = Trace::read(&fs::read(&path).unwrap());
        fs::remove_file(&path).unwrap();
        for worker in ["worker 0", "worker 1"] {
            let slices = trace.slices(trace.track(worker));
            let last = slices.last().unwrap();
            assert!(last.name.contains("trace.rs:") && last.end.is_none(), "{slices:?}");
        }
        drop(go);
        stuck.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    });
}

#[test]
fn a_trace_that_is_taken_while_workers_go_round_is_well_formed() {
    within(LIMIT, || {
        let runtime = multi_thread(3).flight_recorder(4 << 10).build().unwrap();
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let tasks: Vec<_> = (0..30)
            .map(|number| {
                let is_over = is_over.clone();
                runtime.spawn(async move {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        mini::spawn(yield_now()).await.unwrap();
                        if number % 10 == 0 {
                            sleep(Duration::from_micros(50)).await;
                        }
                    }
                })
            })
            .collect();
        let mut arrows = 0;
        while arrows < 1_000 {
            let trace = trace_of(runtime.handle()); // which checks it
            arrows += trace.events.iter().filter(|event| event.ends.is_some()).count();
            let workers = trace.tracks.values().filter(|track| track.starts_with("worker ")).count();
            assert_eq!(workers, 3);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    });
}

#[test]
fn a_task_that_was_spawned_long_ago_is_still_called_by_its_name() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().flight_recorder(1 << 10).build().unwrap();
        let trace = runtime.block_on(async {
            let (sender, receiver) = oneshot::channel::<()>();
            let old = task::Builder::new().name("old").spawn(async {
                receiver.await.unwrap();
                std::future::pending::<()>().await;
            });
            for _ in 0..200 {
                mini::spawn(async {}).await.unwrap();
            }
            sender.send(()).unwrap();
            mini::spawn(async {}).await.unwrap();
            let trace = trace_of(&Handle::current());
            let _ = old.cancel().await;
            trace
        });
        assert!(trace.instants("spawns").all(|spawn| spawn.notes["name"] != "old"), "64 events have room");
        assert_eq!(polls(&trace, "old").len(), 1);
        assert!(trace.instants("wakes").any(|wake| wake.notes["name"] == "old"));
        let workers = trace.events.iter().filter(|event| event.track == trace.track("worker 0"));
        assert!(workers.count() <= 64);
    });
}

#[test]
fn without_a_recorder_there_is_an_error_that_says_what_to_do() {
    within(LIMIT, || {
        for runtime in [Runtime::new().unwrap(), Builder::new_current_thread().histograms(true).build().unwrap()] {
            let error = runtime.handle().snapshot(path("off")).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("Builder::flight_recorder"), "{error}");
            assert!(!path("off").exists());
        }
        let runtime = recorded(&mut multi_thread(1));
        let error = runtime.handle().snapshot("/nowhere/at/all").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    });
}

/// In a process of its own, as it counts the most memory that there ever was.
#[test]
#[cfg(target_os = "linux")]
fn a_trace_takes_less_than_25_times_the_memory_of_its_ring() {
    const RING: usize = 4 << 20;
    let most = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        most.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    in_child("a_trace_takes_less_than_25_times_the_memory_of_its_ring", move || {
        let runtime = Builder::new_current_thread().flight_recorder(RING).build().unwrap();
        runtime.block_on(async {
            for _ in 0..RING / 16 / 2 {
                let (wake, woken) = oneshot::channel();
                mini::spawn(async { wake.send(()).unwrap() });
                woken.await.unwrap();
            }
        });
        let before = most();
        let trace = runtime.handle().trace().unwrap();
        let took = (most() - before) / RING;
        assert!(took < 25, "{took} times, for {} bytes of trace", trace.len());
    });
}

#[test]
fn a_size_that_makes_no_sense_is_an_error_and_others_are_rounded_down() {
    for bytes in [0, 1, 1023, (1 << 30) + 1, usize::MAX] {
        let error = Builder::new_current_thread().flight_recorder(bytes).build().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with(&format!("flight_recorder({bytes}): expected 1024 to")), "{error}");
    }
    let runtime = Builder::new_current_thread().flight_recorder(4095).build().unwrap();
    runtime.block_on(async {
        for _ in 0..1_000 {
            yield_now().await;
        }
    });
    let trace = trace_of(runtime.handle());
    let polls = polls(&trace, "block_on").len();
    assert!((100..128).contains(&polls), "2 KiB have 127 events, of which few are of other kinds: {polls}");
}

/// A path for a file of this test.
fn path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("mini-{}-{name}.json", std::process::id()))
}

/// Runs `program` in a process of its own with `MINI_TRACE`, as a part of the test called `test`. Returns what it has
/// written, or nothing in that process.
fn traced(test: &str, program: fn(), file: PathBuf) -> Option<(Output, PathBuf)> {
    const CHILD: &str = "MINI_TEST_TRACED";
    if env::var_os(CHILD).is_some() {
        program();
        return None;
    }
    Some((own_test(test).env(CHILD, "1").env("MINI_TRACE", &file).output().unwrap(), file))
}

fn read(file: &PathBuf) -> Trace {
    let trace = Trace::read(&fs::read(file).unwrap());
    fs::remove_file(file).unwrap();
    trace
}

#[test]
fn a_program_writes_the_trace_that_the_environment_asks_for() {
    mod program {
        #[mini::main(worker_threads = 2)]
        pub(super) async fn main() {
            mini::spawn(async {}).await.unwrap(); // of the program
        }
    }
    let test = "a_program_writes_the_trace_that_the_environment_asks_for";
    let Some((output, file)) = traced(test, program::main, path("program")) else { return };
    assert!(output.status.success(), "{output:?}");
    let trace = read(&file);
    assert_eq!(polls(&trace, &place("of the program")).len(), 1);
    assert!(!polls(&trace, "main").is_empty(), "its body is a task of this name");
}

#[test]
fn a_panic_of_block_on_writes_what_was_before_it() {
    fn program() {
        let runtime = Builder::new_current_thread().heed_mini_trace(true).build().unwrap();
        let caught = mini_tests::caught(|| {
            runtime.block_on(async {
                mini::spawn(async {}).await.unwrap(); // before the panic
                panic!("on purpose");
            })
        });
        assert_eq!(caught.message, "on purpose");
        runtime.block_on(async { mini::spawn(async {}).await.unwrap() }); // after the panic
    }
    let test = "a_panic_of_block_on_writes_what_was_before_it";
    let Some((output, file)) = traced(test, program, path("panic")) else { return };
    assert!(output.status.success(), "{output:?}");
    let trace = read(&file);
    assert_eq!(polls(&trace, &place("before the panic")).len(), 1);
    assert_eq!(polls(&trace, &place("after the panic")).len(), 0, "it is written once");
    let slices = trace.slices(trace.track("worker 0"));
    let [panicked, left] = slices.last_chunk().unwrap();
    assert!(panicked.name == "block_on" && panicked.end.is_some(), "{panicked:?}");
    assert!(left.name == "parked" && left.end.is_none(), "the panic has left the core: {left:?}");
}

mod stuck {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

    #[mini::main(grace = "50ms", worker_threads = 2)]
    pub(super) async fn main() {
        let blocks = async {
            HAS_BEGUN.store(true, SeqCst);
            loop {
                std::thread::park();
            }
        };
        mini::task::Group::new().spawn_named("stuck", blocks);
        mini_tests::until(|| HAS_BEGUN.load(SeqCst)).await;
    }
}

#[test]
fn a_program_that_does_not_end_in_time_writes_its_trace_all_the_same() {
    let test = "a_program_that_does_not_end_in_time_writes_its_trace_all_the_same";
    let Some((output, file)) =
        traced(test, || assert_ne!(stuck::main(), std::process::ExitCode::SUCCESS), path("grace"))
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let trace = read(&file);
    let worker = trace
        .tracks
        .keys()
        .map(|&track| trace.slices(track).pop())
        .find(|slice| slice.as_ref().is_some_and(|slice| slice.name == "stuck" && slice.end.is_none()));
    assert!(worker.is_some(), "it is still in its poll");
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_of_the_start() {
    fn program() {
        let error = Builder::new_current_thread().heed_mini_trace(true).build().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("MINI_TRACE=/nowhere/at/all: cannot create this file"), "{error}");
        Builder::new_current_thread().build().unwrap(); // which does not heed it
    }
    let test = "a_file_that_cannot_be_made_is_an_error_of_the_start";
    let Some((output, _)) = traced(test, program, "/nowhere/at/all".into()) else { return };
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn histograms_count_each_poll_and_how_long_tasks_waited_for_it() {
    on_each_flavour(|mut builder| {
        let runtime = builder.histograms(true).build().unwrap();
        let waits = Duration::from_millis(3);
        runtime.block_on(async {
            let tasks: Vec<_> = (0..100).map(|_| mini::spawn(async { yield_now().await })).collect();
            for task in tasks {
                task.await.unwrap();
            }
            task::Builder::new().spawn(async move { thread::sleep(waits) }).await.unwrap();
        });
        let metrics = runtime.metrics();
        // A worker counts a poll after its end, of which others may know before.
        mini_tests::spin_until(|| {
            let polls = metrics.poll_time().unwrap();
            polls.max() >= waits && polls.count() == metrics.total_poll_count()
        });
        let (polls, delays) = (metrics.poll_time().unwrap(), metrics.queue_delay().unwrap());
        assert!(polls.quantile(1.0) == polls.max() && polls.quantile(0.5) < waits, "{polls}");
        assert!((200..=polls.count()).contains(&delays.count()), "of each spawn and yield: {delays}");
        let each = 0..metrics.num_workers();
        let sum = |one: fn(&mini::runtime::Metrics, usize) -> Option<mini::runtime::Histogram>| {
            each.clone().map(|worker| one(&metrics, worker).unwrap().count()).sum::<u64>()
        };
        let (by_workers, waits) =
            (sum(mini::runtime::Metrics::worker_poll_time), sum(mini::runtime::Metrics::worker_queue_delay));
        match runtime.handle().runtime_flavor() {
            RuntimeFlavor::CurrentThread => assert_eq!((by_workers, waits), (polls.count(), delays.count())),
            // The rest are polls of the main task.
            _ => assert!(by_workers >= 201 && by_workers < polls.count() && waits <= delays.count()),
        }
    });
}

#[test]
fn a_task_that_waits_behind_another_shows_in_the_queue_delay() {
    on_current_thread(|mut builder| {
        let runtime = builder.histograms(true).worker_threads(1).build().unwrap();
        let waits = Duration::from_millis(3);
        runtime.block_on(async {
            let mut waker = None::<Waker>;
            let woken = Arc::new(std::sync::Mutex::new(None));
            let registered = woken.clone();
            let mut is_first = true;
            let late = mini::spawn(std::future::poll_fn(move |cx| {
                if std::mem::take(&mut is_first) {
                    *registered.lock().unwrap() = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(())
            }));
            until(|| {
                waker = waker.take().or_else(|| woken.lock().unwrap().take());
                waker.is_some()
            })
            .await;
            assert!(Handle::current().metrics().queue_delay().unwrap().max() < waits, "before it");
            waker.unwrap().wake();
            thread::sleep(waits);
            late.await.unwrap();
        });
        assert!(runtime.metrics().queue_delay().unwrap().max() >= waits);
    });
}

#[test]
fn without_histograms_there_are_none() {
    let runtime = Builder::new_current_thread().flight_recorder(1 << 12).build().unwrap();
    runtime.block_on(async {});
    let metrics = runtime.metrics();
    assert!(metrics.poll_time().is_none() && metrics.queue_delay().is_none());
    assert!(metrics.worker_poll_time(0).is_none() && metrics.worker_queue_delay(0).is_none());
}
