//! What the builder's thread hooks see, and the number of workers that the environment asks for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mini::runtime::{Builder, Handle, Phases};
use mini_tests::child_support::own_test;
use mini_tests::{LIMIT, in_child, multi_thread, on_current_thread, on_each_flavour, within};

type Log = Arc<Mutex<Vec<(&'static str, String)>>>;

fn noting(mut builder: Builder) -> (Builder, Log) {
    let log = Log::default();
    let note = |what| {
        let log = log.clone();
        move || {
            assert!(Handle::try_current().is_err(), "the thread is not inside of the runtime");
            log.lock().unwrap().push((what, thread::current().name().unwrap().to_owned()));
        }
    };
    builder.on_thread_start(note("start")).on_thread_stop(note("stop"));
    (builder, log)
}

#[test]
fn each_thread_of_the_runtime_starts_and_stops_once() {
    on_each_flavour(|mut builder| {
        let (builder, log) = noting(builder.thread_name("hooked").clone());
        let runtime = builder.build().unwrap();
        let here = thread::current().name().unwrap().to_owned();
        runtime.block_on(async {
            mini::spawn_blocking(|| ()).await.unwrap();
            mini::spawn(async {}).await.unwrap();
        });
        drop(runtime);
        let mut log = log.lock().unwrap().clone();
        assert!(log.contains(&("start", "hooked-block-0".to_owned())), "{log:?}");
        assert!(log.iter().all(|(_, name)| *name != here && !name.ends_with("-watch")), "{log:?}");
        log.sort();
        let (starts, stops) = log.split_at(log.len() / 2);
        let names = |half: &[(&str, String)]| half.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        assert!(starts.iter().all(|(what, _)| *what == "start"), "{log:?}");
        assert_eq!(names(starts), names(stops), "and the shutdown has waited for all");
    });
}

#[test]
fn a_worker_starts_before_its_first_task() {
    within(LIMIT, || {
        let (builder, log) = noting(multi_thread(1));
        let runtime = builder.build().unwrap();
        let (send, seen) = std::sync::mpsc::channel();
        let inside = log.clone();
        drop(runtime.spawn(async move { send.send(inside.lock().unwrap().clone()).unwrap() }));
        assert_eq!(seen.recv().unwrap(), [("start", "mini-0".to_owned())]);
        drop(runtime);
        assert_eq!(log.lock().unwrap()[1..], [("stop", "mini-0".to_owned())]);
    });
}

#[test]
fn a_hook_that_panics_is_named_and_the_thread_goes_on() {
    let Some(stderr) = in_child("a_hook_that_panics_is_named_and_the_thread_goes_on", || {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let mut builder = Builder::new_current_thread();
        builder.on_thread_start(|| panic!("no start")).on_thread_stop(move || {
            counted.fetch_add(1, SeqCst);
            panic!("no stop")
        });
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.block_on(async { mini::spawn_blocking(|| 7).await.unwrap() }), 7);
        drop(runtime);
        assert_eq!(runs.load(SeqCst), 1);
    }) else {
        return;
    };
    assert!(stderr.contains("mini: on_thread_start panicked on thread \"mini-block-0\", which continues"), "{stderr}");
    assert!(stderr.contains("mini: on_thread_stop panicked on thread \"mini-block-0\", which continues"), "{stderr}");
}

/// Runs the test that calls again, with the variable set, and returns whether it succeeded and what it printed.
fn with_workers(value: &str, test: &str) -> (bool, String) {
    let mut child = own_test(test);
    let output =
        child.arg("--include-ignored").env("MINI_WORKER_THREADS", value).env("MINI_WARN", "").output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[ignore = "started by the next test, in a process with the variable set"]
fn three_workers() {
    assert_eq!(Builder::new_multi_thread().build().unwrap().metrics().num_workers(), 3);
    assert_eq!(Builder::new_multi_thread().worker_threads(2).build().unwrap().metrics().num_workers(), 2);
    assert_eq!(Builder::new_current_thread().build().unwrap().metrics().num_workers(), 1);
    assert_eq!(Builder::new_per_core().build().unwrap().num_workers(), 3);
}

#[test]
#[ignore = "started by the next test, in a process with the variable empty"]
fn as_many_workers_as_processors() {
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(Builder::new_multi_thread().build().unwrap().metrics().num_workers(), processors);
}

#[mini::main]
async fn main_of_a_program() {}

#[test]
#[ignore = "started by the next test, in a process with the variable set"]
fn wrong_number() {
    let error = Builder::new_multi_thread().build().unwrap_err();
    assert_eq!(error.to_string(), "MINI_WORKER_THREADS=many: expected a number from 1 to 32768");
    Builder::new_multi_thread().worker_threads(2).build().unwrap(); // it does not count there
    main_of_a_program();
}

#[test]
fn the_environment_sets_the_default_number_of_workers() {
    within(LIMIT, || {
        let (is_well, stderr) = with_workers("3", "three_workers");
        assert!(is_well, "{stderr}");
        let (is_well, stderr) = with_workers("", "as_many_workers_as_processors");
        assert!(is_well, "an empty variable says nothing: {stderr}");
        let (is_well, stderr) = with_workers("many", "wrong_number");
        assert!(!is_well, "the program's main panics");
        assert!(stderr.contains("could not start the runtime"), "{stderr}");
        assert!(stderr.contains("MINI_WORKER_THREADS=many: expected a number"), "{stderr}");
    });
}

#[test]
fn a_worker_that_has_parked_is_said_to_be_up_again() {
    on_each_flavour(|mut builder| {
        let [parks, unparks] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let [parked, unparked] = [parks.clone(), unparks.clone()];
        builder.on_thread_park(move || _ = parked.fetch_add(1, SeqCst));
        builder.on_thread_unpark(move || _ = unparked.fetch_add(1, SeqCst));
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            // Not so often as it sleeps, on a busy machine: a sleep may be over before the worker comes to its park.
            while parks.load(SeqCst) < 3 {
                mini::spawn(mini::time::sleep(Duration::from_millis(1))).await.unwrap();
            }
        });
        drop(runtime);
        let counts = (parks.load(SeqCst), unparks.load(SeqCst));
        assert!(counts.0 >= 3 && counts.0 == counts.1, "{counts:?}");
    });
}

/// Nothing but the hook's task can end the wait.
#[test]
fn a_park_sees_what_its_hook_has_queued() {
    on_each_flavour(|mut builder| {
        let (send, receive) = mini_tests::oneshot::<u32>();
        let send = Mutex::new(Some(send));
        builder.on_thread_park(move || {
            if let Some(send) = send.lock().unwrap().take() {
                drop(mini::spawn(async move { send.send(7) }));
            }
        });
        assert_eq!(builder.build().unwrap().block_on(receive), Some(7));
    });
}

#[test]
fn each_thread_is_named_by_the_function() {
    on_each_flavour(|mut builder| {
        let count = AtomicUsize::new(0);
        builder.thread_name_fn(move || match count.fetch_add(1, SeqCst) {
            0 => "zero\0".to_owned(),
            number => format!("number {number}"),
        });
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            for _ in 0..3 {
                let name = || thread::current().name().unwrap().to_owned();
                let name = mini::spawn_blocking(name).await.unwrap();
                assert!(name == "zero?" || name.starts_with("number "), "{name}");
            }
        });
    });
}

/// Each phase of a program is told of, and nothing twice.
#[test]
fn each_turn_is_told_with_what_it_has_done() {
    on_current_thread(|mut builder| {
        let turns = Arc::new(Mutex::new(Vec::new()));
        let told = turns.clone();
        builder.on_turn(move |phases| told.lock().unwrap().push(phases.clone()));
        let runtime = builder.build().unwrap();
        std::thread::sleep(Duration::from_millis(20)); // of no turn, as no thread works
        let begin = Instant::now();
        runtime.block_on(async {
            mini::time::sleep(Duration::from_millis(2)).await;
            mini::task::idle().await;
            let (left, right) = mini::net::UnixStream::pair().unwrap();
            let reads = mini::spawn_local(async move { right.read(&mut [0; 8]).await });
            mini::time::sleep(Duration::from_millis(2)).await;
            left.write_all(b"x").await.unwrap();
            assert_eq!(reads.await.unwrap().unwrap(), 1);
            // Runs for long, and asks for more: compute-bound after its first poll.
            for _ in 0..3 {
                let begin = Instant::now();
                mini_tests::spin_until(|| begin.elapsed() > Duration::from_millis(3));
                mini::task::yield_now().await;
            }
        });
        let took = begin.elapsed();
        let polls = runtime.metrics().total_poll_count() as usize;
        drop(runtime);
        let turns = turns.lock().unwrap();
        let sum = |of: fn(&Phases) -> usize| turns.iter().map(of).sum::<usize>();
        assert_eq!(sum(Phases::timers), 2);
        assert!(sum(Phases::events) >= 1, "{turns:?}");
        assert_eq!(sum(Phases::idle), 1);
        assert_eq!(sum(Phases::again), 3, "{turns:?}");
        assert_eq!(sum(Phases::woken) + sum(Phases::again), polls);
        let main: Duration = turns.iter().map(Phases::again_time).sum();
        assert!(main >= Duration::from_millis(6), "{main:?}");
        let worker = turns.iter().filter(|turn| turn.worker() == turns[0].worker());
        let whole: Duration =
            worker.map(|turn| turn.waited() + turn.woken_time() + turn.again_time() + turn.rest()).sum();
        assert!(whole <= took + Duration::from_millis(1), "{whole:?} of {took:?}");
    });
}

#[test]
fn a_hook_of_turns_may_spawn_and_panic() {
    on_each_flavour(|mut builder| {
        let (send, receive) = mini_tests::oneshot::<u32>();
        let send = Mutex::new(Some(send));
        builder.on_turn(move |_| {
            if let Some(send) = send.lock().unwrap().take() {
                drop(mini::spawn(async move { send.send(7) }));
                panic!("on purpose");
            }
        });
        let runtime = builder.build().unwrap();
        drop(runtime.spawn(async {})); // a turn of a worker
        assert_eq!(runtime.block_on(receive), Some(7));
    });
}

#[test]
fn a_turn_in_which_nothing_has_happened_is_not_told() {
    within(LIMIT, || {
        let turns = Arc::new(Mutex::new(0));
        let told = turns.clone();
        let runtime = Builder::new_current_thread().on_turn(move |_| *told.lock().unwrap() += 1).build().unwrap();
        for _ in 0..10 {
            runtime.turn(Duration::ZERO);
        }
        assert_eq!(*turns.lock().unwrap(), 0);
        runtime.block_on(async {});
        assert_eq!(*turns.lock().unwrap(), 1);
    });
}

/// An embedder sleeps until there is something to do: what a hook wakes must be seen.
#[test]
fn an_embedder_hears_of_what_a_hook_of_turns_has_queued() {
    within(LIMIT, || {
        let (send, receive) = mini_tests::oneshot::<u32>();
        let send = Mutex::new(Some(send));
        let mut builder = Builder::new_current_thread();
        builder.on_turn(move |_| {
            if let Some(send) = send.lock().unwrap().take() {
                send.send(7);
            }
        });
        let runtime = builder.build().unwrap();
        let task = runtime.spawn(receive);
        let turn = runtime.turn(Duration::ZERO);
        assert!(!task.is_finished() && turn.polls() == 1);
        assert!(turn.has_more(), "the hook has woken the task");
        runtime.turn(Duration::ZERO);
        assert!(task.is_finished());
    });
}

/// What a hook submits before a wait arrives also when the runtime has ended.
#[test]
fn a_wait_after_the_end_calls_the_hooks_too() {
    on_each_flavour(|mut builder| {
        let batch: Arc<Mutex<Vec<mini::sync::oneshot::Sender<()>>>> = Arc::default();
        let submitted = batch.clone();
        builder.on_thread_park(move || submitted.lock().unwrap().drain(..).for_each(|sender| sender.send(()).unwrap()));
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        handle.block_on(async move {
            let mut runtime = Some(runtime);
            for _ in 0..2 {
                let (sender, receiver) = mini::sync::oneshot::channel();
                batch.lock().unwrap().push(sender);
                receiver.await.unwrap();
                drop(runtime.take());
            }
        });
    });
}

/// What the hooks of tasks were told, of each task in order.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<HashMap<mini::task::Id, Vec<&'static str>>>>);

impl Told {
    fn hear<R>(&self, builder: &mut Builder<R>) {
        let note = |what| {
            let told = self.clone();
            move |task: &mini::runtime::TaskMeta| {
                assert!(task.spawned_at().file().ends_with("hooks.rs"));
                told.0.lock().unwrap().entry(task.id()).or_default().push(what);
            }
        };
        builder.on_task_spawn(note("spawned")).on_task_terminate(note("ended"));
        builder.on_before_task_poll(note("before")).on_after_task_poll(note("after"));
    }

    fn of(&self, id: mini::task::Id) -> Vec<&'static str> {
        self.0.lock().unwrap()[&id].clone()
    }
}

#[test]
fn every_task_is_told_from_its_spawn_to_its_end() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let told = Told::default();
        told.hear(&mut builder);
        let runtime = builder.build().unwrap();
        let (ended, aborted, panicked, job) = runtime.block_on(async {
            let ended = mini::spawn(mini::task::yield_now());
            let aborted = mini::spawn(std::future::pending::<()>());
            let panicked = mini::spawn(async { panic!("as it should") });
            let job = mini::spawn_blocking(|| ());
            let ids = (ended.id(), aborted.id(), panicked.id(), job.id());
            ended.await.unwrap();
            let _ = aborted.cancel().await;
            panicked.await.unwrap_err();
            job.await.unwrap();
            ids
        });
        let waits = runtime.spawn(std::future::pending::<()>());
        let from_outside = waits.id();
        drop(waits);
        drop(runtime); // a hook is called after the handle is told
        let poll = ["before", "after"];
        assert_eq!(told.of(ended), [&["spawned"], &poll[..], &poll, &["ended"]].concat());
        assert_eq!(told.of(panicked), ["spawned", "before", "after", "ended"]);
        assert_eq!(told.of(job), ["spawned", "before", "after", "ended"]);
        for id in [aborted, from_outside] {
            let told = told.of(id);
            assert_eq!((told[0], told[told.len() - 1]), ("spawned", "ended"));
            assert_eq!(told.iter().filter(|what| **what == "ended").count(), 1);
        }
        assert_eq!(told.0.lock().unwrap().len(), 5, "the future of a `block_on` is no task");
    }
}

#[test]
fn a_hook_of_a_task_that_panics_is_contained() {
    let mut builder = Builder::new_current_thread();
    builder.on_task_spawn(|_| panic!("a hook")).on_before_task_poll(|_| panic!("another"));
    let runtime = builder.build().unwrap();
    assert_eq!(runtime.block_on(async { mini::spawn(async { 7 }).await.unwrap() }), 7);
}

/// It would spawn another task for each task that the shutdown drops, without end.
#[test]
fn a_hook_that_replaces_each_task_that_ends_lets_the_runtime_end() {
    on_each_flavour(|mut builder| {
        let runtime = builder.on_task_terminate(|_| drop(mini::spawn(std::future::pending::<()>()))).build().unwrap();
        runtime.block_on(async { mini::spawn(async {}).await.unwrap() });
        drop(runtime);
    });
}

#[test]
fn hooks_run_inside_of_the_runtime() {
    on_each_flavour(|mut builder| {
        let (send, told) = std::sync::mpsc::channel();
        let note = |what| {
            let send = send.clone();
            move |_: &mini::runtime::TaskMeta| send.send((what, Handle::try_current().is_ok())).unwrap()
        };
        builder.on_before_task_poll(note("before")).on_after_task_poll(note("after")).on_task_terminate(note("ended"));
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            mini::spawn(async {}).await.unwrap();
            mini::spawn_blocking(|| ()).await.unwrap();
        });
        drop(runtime);
        let told: Vec<_> = told.try_iter().collect();
        assert_eq!(told.len(), 6);
        assert!(told.iter().all(|(_, is_inside)| *is_inside), "{told:?}");
    });
}

/// The time of a hook that is called after a poll is charged to no poll.
#[test]
fn a_slow_hook_is_no_part_of_the_next_poll() {
    let mut builder = Builder::new_current_thread();
    builder.histograms(true).on_task_terminate(|_| thread::sleep(Duration::from_millis(50)));
    let runtime = builder.build().unwrap();
    runtime.block_on(async {
        for task in [(); 6].map(|()| mini::spawn(async {})) {
            task.await.unwrap();
        }
    });
    let polls = runtime.handle().metrics().poll_time().unwrap();
    assert!(polls.quantile(0.8) < Duration::from_millis(25), "{polls}");
}
