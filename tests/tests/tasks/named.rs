//! Names of tasks: shown wherever a task is, and nowhere in the way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mini::runtime::{Builder as Runtimes, Handle};
use mini::task::{Builder, JoinHandle, id, try_id, try_name, yield_now};
use mini::time::sleep;
use mini_tests::{Counts, LIMIT, caught, in_child, line_of, multi_thread, never, on_each_flavour, until, within};

fn named(name: &str) -> Builder {
    Builder::new().name(name)
}

fn here() -> Option<String> {
    try_name().map(|name| name.to_string())
}

#[test]
fn a_name_is_seen_wherever_the_task_is() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let elsewhere = multi_thread(1).build().unwrap();
        runtime.block_on(async {
            assert_eq!((try_name(), try_id()), (None, None), "this is no task");
            let body = || async {
                yield_now().await;
                (id(), here())
            };
            let tasks: Vec<JoinHandle<_>> = vec![
                named("a task").spawn(body()),
                named("a task").spawn_local(body()),
                named("a task").spawn_on(body(), elsewhere.handle()),
                named("a task").spawn_blocking(|| (id(), here())),
                named("a task").spawn_blocking_on(|| (id(), here()), elsewhere.handle()),
            ];
            for task in tasks {
                let seen = (task.id(), Some("a task".to_owned()));
                assert_eq!(task.name().as_deref(), Some("a task"));
                assert!(format!("{task:?}").contains("name: \"a task\""), "{task:?}");
                let abort = task.abort_handle();
                assert_eq!(task.await.unwrap(), seen);
                assert_eq!(abort.name().as_deref(), Some("a task"), "it outlives the future");
            }
            let task = mini::spawn(async { here() });
            assert!(task.name().is_none() && !format!("{task:?}").contains("name: "));
            assert_eq!(task.await.unwrap(), None);
            let task = Builder::new().spawn(async { here() });
            assert_eq!((task.name(), task.await.unwrap()), (None, None));
        });
    });
}

#[test]
fn a_name_is_in_errors() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let line = line!() + 1;
            let task = named("stuck").spawn(std::future::pending::<()>());
            let id = task.id();
            let error = task.cancel().await.unwrap_err();
            assert_eq!(error.name(), Some("stuck"));
            let text = error.to_string();
            assert!(text.starts_with(&format!("task {id} \"stuck\" spawned at {}:{line}:", file!())), "{text}");
            assert!(text.ends_with(" was cancelled"), "{text}");

            let error = named("bad\n").spawn(async { panic!("no") }).await.unwrap_err();
            assert!(error.to_string().contains("\"bad\\n\" spawned at"), "{error}");
            let error = mini::spawn(async { panic!("no") }).await.unwrap_err();
            assert_eq!(error.name(), None);
            assert!(!error.to_string().contains('"'), "{error}");
        });
    });
}

#[test]
fn a_panic_that_nobody_awaits_is_reported_with_the_name() {
    on_each_flavour(|mut builder| {
        let names = Arc::new(Mutex::new(Vec::new()));
        let noted = names.clone();
        let hook = move |error: &mini::task::JoinError| noted.lock().unwrap().push(error.name().map(str::to_owned));
        let runtime = builder.on_task_panic(hook).build().unwrap();
        drop(named("lost").spawn_on(async { panic!("no") }, runtime.handle()));
        drop(runtime.spawn(async { panic!("no") }));
        runtime.block_on(async {
            drop(named("near").spawn_local(async { panic!("no") }));
            until(|| names.lock().unwrap().len() == 3).await;
        });
        let mut seen = std::mem::take(&mut *names.lock().unwrap());
        seen.sort();
        assert_eq!(seen, [None, Some("lost".to_owned()), Some("near".to_owned())]);
    });
}

#[test]
fn a_task_that_waits_for_itself_is_named() {
    within(LIMIT, || {
        let runtime = Runtimes::new_current_thread().build().unwrap();
        let seen = runtime.block_on(async {
            let (send, receive) = mini_tests::oneshot::<JoinHandle<()>>();
            let task = named("loop").spawn_local(async move {
                let mut own = receive.await.unwrap();
                let mut poll =
                    std::pin::pin!(std::future::poll_fn(|cx| std::pin::Pin::new(&mut own).poll(cx).map(drop)));
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                let seen = caught(|| poll.as_mut().poll(&mut cx));
                assert!(seen.message.contains("\"loop\" spawned at"), "{}", seen.message);
                assert!(seen.message.contains("waits for itself"), "{}", seen.message);
            });
            let abort = task.abort_handle();
            send.send(task);
            until(|| abort.is_finished()).await;
            abort.is_finished()
        });
        assert!(seen);
    });
}

#[test]
fn a_name_is_dropped_with_its_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let name: Arc<str> = "counted".into();
        let counts = Counts::new();
        for _ in 0..10 {
            let done = Builder::new().name(name.clone()).spawn_on(async {}, runtime.handle());
            runtime.block_on(done).unwrap();
            drop(Builder::new().name(name.clone()).spawn_on(never(&counts), runtime.handle()));
            drop(Builder::new().name(name.clone()).spawn_blocking_on(|| {}, runtime.handle()));
        }
        drop(runtime);
        assert_eq!(counts.drops(), 10);
        let deadline = std::time::Instant::now() + LIMIT;
        while Arc::strong_count(&name) > 1 && std::time::Instant::now() < deadline {
            std::thread::yield_now(); // threads of the runtime that are on their way out
        }
        assert_eq!(Arc::strong_count(&name), 1);
    });
}

#[test]
fn a_leaked_task_is_named_and_its_name_is_dropped() {
    let line = line_of(include_str!("named.rs"), "// pinned");
    let test = "a_leaked_task_is_named_and_its_name_is_dropped";
    let Some(stderr) = in_child(test, || {
        let name: Arc<str> = "held back".into();
        let runtime = Runtimes::new_current_thread().build().unwrap();
        let counts = Counts::new();
        runtime.block_on(async {
            let builder = Builder::new().name(name.clone());
            drop(builder.spawn_local(never(&counts))); // pinned
            yield_now().await;
        });
        std::thread::spawn(move || drop(runtime)).join().unwrap();
        assert_eq!((counts.drops(), Arc::strong_count(&name)), (0, 1));
    }) else {
        return;
    };
    assert!(stderr.contains(&format!("\"held back\" spawned at {}:{line}:", file!())), "{stderr}");
}

#[test]
fn builders_panic_outside_of_a_runtime_at_the_callers_line() {
    let calls: [(&str, fn()); 3] = [
        ("spawn ", || drop(named("x").spawn(async {}))),
        ("spawn_local ", || drop(named("x").spawn_local(async {}))),
        ("spawn_blocking ", || drop(named("x").spawn_blocking(|| {}))),
    ];
    for (name, call) in calls {
        let seen = caught(call);
        assert!(seen.message.contains(&format!("task::Builder::{name}")), "{}", seen.message);
        assert_eq!(seen.file, file!());
    }
}

/// As connections are that a program has named by their numbers.
#[test]
fn many_tasks_with_numbers_in_their_names_are_one_line_and_a_few_are_not() {
    mini::block_on(async {
        let spawn = |name: String| drop(named(&name).spawn(sleep(Duration::from_secs(600))));
        (0..8).for_each(|few| spawn(format!("few {few}")));
        (0..100).for_each(|many| spawn(format!("many {} of 100", many % 50)));
        yield_now().await;
        let dump = Handle::current().dump();
        let text = dump.to_string();
        let has_line = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(has_line(&["  100 tasks \"many * of *\" spawned at ", ", waiting: Timer"]), "{text}");
        for few in 0..8 {
            assert!(has_line(&[&format!(" \"few {few}\" spawned at ")]), "{text}");
        }
        assert_eq!(text.lines().count(), 1 + 1 + 1 + 8, "{text}");
        let json = dump.groups_to_json(1);
        assert!(json.contains(r#""groups":[{"count":100,"name":"many * of *","#), "{json}");
        assert!(json.contains(r#""groups_left_out":8"#), "{json}");
        let ids: Vec<_> = dump.tasks().iter().skip(8).take(8).map(|task| task.id().to_string()).collect();
        assert!(json.contains(&format!(r#""ids":[{}]"#, ids.join(","))), "{json}");
    });
}
