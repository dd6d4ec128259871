//! Tasks that stay on their thread, because what they hold is not `Send`.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;

use mini::runtime::Builder;
use mini::task::{JoinSet, yield_now};
use mini::time::Duration;
use mini_tests::{
    Counts, LIMIT, Token, block_on_elsewhere, caught, in_child, line_of, never, on_each_flavour, until, within,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

/// On every worker: in `block_on`, on worker threads, inside local tasks, and while another thread waits for the place.
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
            // Each call takes a worker's place; a worker thread with local tasks stays until they are done.
            let (i, local) = runtime.block_on(task).unwrap();
            match runtime.block_on(local) {
                Ok(count) => assert_eq!(count, 1),
                Err(error) => assert!(error.is_cancelled(), "the worker of {i} has left: {error}"),
            }
        }
    });
}

#[test]
fn a_thread_that_has_entered_a_current_thread_runtime_spawns_local_tasks_for_it() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let dropped = Counts::new();
        let made = |token: &Arc<Counts>| {
            let (token, local) = (Token::new(token), Rc::new(7));
            async move {
                yield_now().await;
                let _token = token;
                *local
            }
        };
        let guard = runtime.enter();
        let first = mini::spawn_local(made(&dropped));
        let named = mini::task::Builder::new().name("local").spawn_local(made(&dropped));
        let mut set = JoinSet::new();
        set.spawn_local(made(&dropped));
        drop(guard);
        assert_eq!(runtime.metrics().num_alive_tasks(), 3);
        runtime.block_on(async {
            assert_eq!((first.await.unwrap(), named.await.unwrap()), (7, 7));
            assert_eq!(set.join_all().await, [7]);
        });
        assert_eq!(dropped.drops(), 3);

        // A task whose runtime no thread drives is dropped with the runtime, on this thread; a task of an ended runtime
        // at once.
        let (guard, handle) = (runtime.enter(), runtime.handle().clone());
        let left = mini::spawn_local(made(&dropped));
        drop(guard);
        drop(runtime);
        assert_eq!(dropped.drops(), 4);
        assert!(mini::block_on(left).unwrap_err().is_cancelled());
        let _guard = handle.enter();
        let refused = mini::spawn_local(made(&dropped));
        assert_eq!(dropped.drops(), 5);
        assert!(mini::block_on(refused).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_local_task_spawned_between_two_turns_calls_the_host() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let watched = runtime.as_fd();
        while runtime.turn(Duration::ZERO).has_more() {}
        let is_readable = || {
            let mut fd = [PollFd::new(&watched, PollFlags::IN)];
            poll(&mut fd, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        assert!(!is_readable());
        assert_eq!(runtime.next_deadline(), None);
        let guard = runtime.enter();
        let task = mini::spawn_local(async { 7 });
        drop(guard);
        assert!(is_readable() && runtime.next_deadline().is_some());
        runtime.turn(Duration::ZERO);
        assert!(task.is_finished());
    });
}

#[test]
fn a_thread_that_may_not_have_the_runtime_is_refused_a_local_task() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let refused = || {
            let line = line!() + 1;
            let seen = caught(|| mini::spawn_local(async {}).is_finished());
            assert_eq!((seen.file.as_str(), seen.line), (file!(), line), "{seen:?}");
            seen.message
        };
        // While another thread works for the runtime, on a blocking thread, and where another thread has its local
        // tasks.
        let (entered, is_entered) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let shared = &runtime;
        thread::scope(|scope| {
            scope.spawn(move || {
                shared.block_on(async {
                    entered.send(()).unwrap();
                    may_go.recv().unwrap();
                });
            });
            is_entered.recv().unwrap();
            let guard = runtime.enter();
            assert!(refused().contains("another thread"));
            drop(guard);
            go.send(()).unwrap();
        });
        let job = runtime.spawn_blocking(refused);
        assert!(block_on_elsewhere(job).unwrap().starts_with("mini::spawn_local needs a worker"));

        let guard = runtime.enter();
        let task = mini::spawn_local(async {});
        drop(guard);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = runtime.enter();
                assert!(refused().contains("made by spawn_local bind this runtime"));
            });
        });
        runtime.block_on(task).unwrap();
    });
}
