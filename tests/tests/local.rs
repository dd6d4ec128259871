//! Tasks that stay on their thread, because what they hold is not `Send`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;

use mini::runtime::Builder;
use mini::task::yield_now;
use mini::time::Duration;
use mini_tests::{Counts, caught, in_child, line_of, never, on_each_flavour, until};

#[test]
fn spawn_local_takes_what_is_not_send() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let seen = Rc::new(RefCell::new(Vec::new()));
        runtime.block_on(async {
            let here = thread::current().id();
            let tasks: Vec<_> = (0..50)
                .map(|i| {
                    let seen = seen.clone();
                    mini::spawn_local(async move {
                        yield_now().await;
                        mini::time::sleep(Duration::from_micros(10)).await;
                        assert_eq!(thread::current().id(), here);
                        seen.borrow_mut().push(i);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            // Also on a worker, wherever that is.
            let on_worker = mini::spawn(async {
                let home = thread::current().id();
                let local = mini::spawn_local(async move {
                    let count = Rc::new(Cell::new(0));
                    while count.get() < 20 {
                        yield_now().await;
                        assert_eq!(thread::current().id(), home);
                        count.set(count.get() + 1);
                    }
                    count.get()
                });
                local.await.unwrap()
            });
            assert_eq!(on_worker.await.unwrap(), 20);
        });
        assert_eq!(seen.borrow().len(), 50);
        assert_eq!(Rc::strong_count(&seen), 1);
    });
}

#[test]
fn local_tasks_end_with_block_on_or_stay_with_their_thread() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let mut task = None;
        runtime.block_on(async {
            task = Some(mini::spawn_local(never(&counts)));
            until(|| counts.polls() == 1).await;
        });
        let task = task.unwrap();
        if format!("{runtime:?}").contains("multi_thread") {
            assert_eq!(counts.drops(), 1);
            assert!(mini::block_on(task).unwrap_err().is_cancelled());
            return;
        }
        assert_eq!(counts.drops(), 0);
        let seen = thread::scope(|scope| scope.spawn(|| caught(|| runtime.block_on(async {}))).join().unwrap());
        assert!(seen.message.contains("spawn_local"), "{}", seen.message);
        assert!(seen.message.contains("call block_on there"), "{}", seen.message);
        assert_eq!(runtime.block_on(async { 4 }), 4, "here it still runs");
        task.abort();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        thread::scope(|scope| scope.spawn(|| runtime.block_on(async {})).join().unwrap());
    });
}

#[test]
fn tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said() {
    let line = line_of(include_str!("local.rs"), "// pinned");
    let Some(stderr) = in_child("tasks_that_may_not_leave_their_thread_are_leaked_and_it_is_said", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (pinned, free) = (Counts::new(), Counts::new());
        let others = runtime.spawn(never(&free));
        let mut task = None;
        runtime.block_on(async {
            task = Some(mini::spawn_local(never(&pinned))); // pinned
        });
        runtime.block_on(until(|| pinned.polls() + free.polls() == 2));
        thread::spawn(move || drop(runtime)).join().unwrap();
        assert_eq!((pinned.drops(), free.drops()), (0, 1));
        assert!(mini::block_on(others).unwrap_err().is_cancelled());
        drop(task);
    }) else {
        return;
    };
    assert!(stderr.contains(&format!("spawned at {}:{line}:", file!())) && stderr.contains("is leaked"), "{stderr}");
}

/// On every worker: in `block_on`, on keepers, inside local tasks, and while another thread would like to have the place.
#[test]
fn local_tasks_of_all_workers_stay_where_they_are() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let tasks: Vec<_> = (0..40)
            .map(|i| {
                runtime.spawn(async move {
                    for _ in 0..i % 5 {
                        yield_now().await;
                    }
                    let home = thread::current().id();
                    let shared = Rc::new(Cell::new(0));
                    let outer = shared.clone();
                    let local = mini::spawn_local(async move {
                        let inner = outer.clone();
                        let nested = mini::spawn_local(async move {
                            mini::time::sleep(Duration::from_micros(50)).await;
                            assert_eq!(thread::current().id(), home);
                            inner.set(inner.get() + 1);
                        });
                        nested.await.unwrap();
                        assert_eq!(thread::current().id(), home);
                        outer.get()
                    });
                    drop(shared);
                    (i, local)
                })
            })
            .collect();
        for task in tasks {
            // Each call takes a worker's place; a keeper with local tasks stays until they are done.
            let (i, local) = runtime.block_on(task).unwrap();
            match runtime.block_on(local) {
                Ok(count) => assert_eq!(count, 1),
                Err(error) => assert!(error.is_cancelled(), "the worker of {i} has left: {error}"),
            }
        }
    });
}
