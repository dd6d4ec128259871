//! What is said of a task that ends with an error and whose handle was dropped.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use futures_lite::future::poll_once;
use mini::runtime::Builder;
use mini::task::yield_now;
use mini_tests::{in_child, on_each_flavour, until};

async fn fails() -> io::Result<()> {
    Err(io::Error::other("no luck"))
}

#[test]
fn an_error_that_nobody_awaits_is_said_with_the_line_of_its_spawn() {
    let Some(stderr) = in_child("an_error_that_nobody_awaits_is_said_with_the_line_of_its_spawn", || {
        mini::block_on(async {
            drop(mini::task::Builder::new().name("early").spawn(fails())); // before it ends
            let task = mini::spawn(fails());
            until(|| task.is_finished()).await;
            drop(task); // after it has ended
            assert!(mini::spawn(fails()).await.unwrap().is_err()); // seen
            drop(mini::spawn(async { 7 }));
            drop(mini::spawn(async { io::Result::Ok(()) }));
            drop(mini::spawn_blocking(|| Result::<u8, u64>::Err(7)));
        });
    }) else {
        return;
    };
    let lines: Vec<_> = stderr.lines().filter(|line| line.contains("ended with an error")).collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].contains("\"early\" spawned at tests/tests/tasks/unseen.rs:"), "{stderr}");
    assert!(lines[1].ends_with("ended with an error: no luck, and no task awaits it"), "{stderr}");
    assert!(lines[2].contains("an `Err` of a core::result::Result<u8, u64>"), "{stderr}");
}

#[test]
fn of_a_flood_ten_lines_are_said() {
    let Some(stderr) = in_child("of_a_flood_ten_lines_are_said", || {
        mini::block_on(async {
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..1000 {
                let ran = ran.clone();
                drop(mini::spawn(async move {
                    ran.fetch_add(1, SeqCst);
                    fails().await
                }));
            }
            until(|| ran.load(SeqCst) == 1000).await;
        });
    }) else {
        return;
    };
    let lines: Vec<_> = stderr.lines().filter(|line| line.contains("ended with an error")).collect();
    assert!((10..=20).contains(&lines.len()), "ten a second: {stderr}");
    assert!(stderr.contains("\nmini: for a second, more lines like this are only counted\n"), "{stderr}");
}

#[test]
fn a_hook_gets_them_instead() {
    on_each_flavour(|mut builder| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let runtime = builder.on_task_error(move |error| noted.lock().unwrap().push(error.id())).build().unwrap();
        runtime.block_on(async {
            let task = mini::spawn(fails());
            let id = task.id();
            drop(task);
            until(|| !seen.lock().unwrap().is_empty()).await;
            assert_eq!(*seen.lock().unwrap(), [id]);
        });
    });
}

#[test]
fn a_dropped_operation_on_files_is_no_error_of_a_task() {
    on_each_flavour(|mut builder| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        builder.max_blocking_threads(1).on_task_error(move |error| noted.lock().unwrap().push(error.to_string()));
        builder.build().unwrap().block_on(async {
            let (go_on, held) = mpsc::channel::<()>();
            drop(mini::spawn_blocking(move || held.recv().is_ok())); // the only thread
            assert!(poll_once(mini::fs::remove_file("/no/such/file")).await.is_none());
            drop(go_on);
            mini::spawn_blocking(|| ()).await.unwrap(); // after it
        });
        assert_eq!(*seen.lock().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_hook_that_panics_is_contained() {
    let runtime = Builder::new_current_thread().on_task_error(|_| panic!("no")).build().unwrap();
    runtime.block_on(async {
        drop(mini::spawn(fails()));
        yield_now().await;
    });
}
