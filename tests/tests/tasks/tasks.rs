//! The life of a task, cell by cell: what dropped handles and a dropped runtime do to it while it is idle, queued,
//! running or done. `wakes.rs`, `cancel.rs` and `panics.rs` have the other rows.

#![allow(clippy::waker_clone_wake, reason = "a clone that is woken and gone is what is tested")]

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::task::{Builder, Id, JoinHandle, id, try_id, yield_now};
use mini::time::Duration;
use mini_tests::{
    Counts, LIMIT, OnDrop, Token, counted, multi_thread, never, on_current_thread, on_each_flavour, oneshot, poll_with,
    until, within,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Joined,
    Detached,
    DroppedWhenDone,
    Aborted,
    Panicked,
    LeftToTheRuntime,
}

use End::{Aborted, Detached, DroppedWhenDone, Joined, LeftToTheRuntime, Panicked};

/// Starts a task and sees it to `end`; returns the handle of one that goes on.
async fn live(end: End, future: &Arc<Counts>, output: &Arc<Counts>) -> Option<JoinHandle<Token>> {
    let (made, mut polls) = (output.clone(), 0);
    let task = mini::spawn(counted(future, move |cx| {
        polls += 1;
        match end {
            Aborted | LeftToTheRuntime => return Poll::Pending,
            Panicked if polls == 2 => panic!("as planned"),
            _ if polls == 2 => return Poll::Ready(Token::new(&made)),
            _ => {}
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    match end {
        Joined => drop(task.await.unwrap()),
        Detached => {
            drop(task);
            until(|| future.drops() == 1).await;
        }
        DroppedWhenDone => until(|| task.is_finished()).await,
        Aborted => assert!(task.cancel().await.unwrap_err().is_cancelled()),
        Panicked => assert!(task.await.unwrap_err().is_panic()),
        LeftToTheRuntime => return Some(task),
    }
    None
}

#[test]
fn every_future_and_output_is_dropped_once() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let mut seen = Vec::new();
        let mut left = Vec::new();
        for end in [Joined, Detached, DroppedWhenDone, Aborted, Panicked, LeftToTheRuntime].repeat(20) {
            let (future, output) = (Counts::new(), Counts::new());
            left.extend(runtime.block_on(live(end, &future, &output)));
            seen.push((end, future, output));
        }
        drop(runtime);
        for (end, future, output) in seen {
            let outputs = usize::from(matches!(end, Joined | Detached | DroppedWhenDone));
            assert_eq!((future.drops(), output.drops()), (1, outputs), "{end:?}");
        }
        for task in left {
            assert!(mini::block_on(task).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn foreign_threads_wake_and_drop_wakers() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for _ in 0..100 {
            let (counts, left) = (Counts::new(), Arc::new(AtomicUsize::new(4)));
            let (give, take) = mpsc::channel::<Waker>();
            let rest = left.clone();
            let task = runtime.spawn(counted(&counts, move |cx| {
                let _ = give.send(cx.waker().clone());
                if rest.load(SeqCst) == 0 { Poll::Ready(()) } else { Poll::Pending }
            }));
            let left = &left;
            let take = thread::scope(|scope| {
                let wakers = scope.spawn(move || {
                    let waker = take.recv().unwrap();
                    let start = Barrier::new(4);
                    let wake = |how: fn(Waker)| {
                        start.wait();
                        let mine = waker.clone();
                        left.fetch_sub(1, SeqCst);
                        how(mine);
                    };
                    thread::scope(|scope| {
                        scope.spawn(|| wake(Waker::wake));
                        scope.spawn(|| wake(|waker| waker.wake_by_ref()));
                        scope.spawn(|| wake(|waker| waker.clone().wake()));
                        scope.spawn(|| wake(|waker| [waker.clone(), waker].iter().for_each(Waker::wake_by_ref)));
                    });
                    take
                });
                runtime.block_on(task).unwrap();
                wakers.join().unwrap()
            });
            assert_eq!(counts.drops(), 1);
            assert!((1..=6).contains(&counts.polls()), "5 wakes, {} polls", counts.polls());
            for waker in take {
                waker.wake(); // of a task that is done: nothing happens
            }
        }
    });
}

#[test]
fn ids_are_those_of_the_running_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, dropped_in) = mpsc::channel();
        runtime.block_on(async {
            assert_eq!(try_id(), None, "the future given to block_on is no task");
            let outer = mini::spawn(async {
                let me = id();
                let inner = mini::spawn(async { id() });
                let expected = inner.id();
                assert_eq!(inner.await.unwrap(), expected);
                assert_ne!(me, expected);
                assert_eq!(id(), me, "after the other one ran");
                me
            });
            let expected = outer.id();
            assert_eq!(outer.await.unwrap(), expected);
            let local = mini::spawn_local(async { id() });
            let expected = local.id();
            assert_eq!(local.await.unwrap(), expected);
            let job = mini::spawn_blocking(id);
            let expected = job.id();
            assert_eq!(job.await.unwrap(), expected);

            let guard = OnDrop(move || send.send(try_id()).unwrap());
            let task = mini::spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await
            });
            let expected = task.id();
            task.cancel().await.unwrap_err();
            assert_eq!(dropped_in.recv().unwrap(), Some(expected), "a future is dropped by its own task");
            assert_eq!(try_id(), None);

            let (first, second) = (mini::spawn(async {}), mini::spawn(async {}));
            assert!(first.id() < second.id(), "ids grow");
        });
        assert_eq!(try_id(), None);
    });
}

/// Sends what its destructor is told about the task that it belongs to.
fn reporting(send: &mpsc::Sender<(Option<Id>, Option<Arc<str>>)>) -> OnDrop<impl FnMut() + Send + 'static> {
    let send = send.clone();
    OnDrop(move || send.send((try_id(), mini::task::try_name())).unwrap())
}

#[test]
fn an_output_is_dropped_by_its_own_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, dropped_in) = mpsc::channel();
        runtime.block_on(async {
            // The runner drops it, as no handle wants it.
            let output = reporting(&send);
            let task = mini::spawn(async move {
                yield_now().await;
                output
            });
            let id = task.id();
            drop(task);
            let mut seen = None;
            until(|| {
                seen = dropped_in.try_recv().ok();
                seen.is_some()
            })
            .await;
            assert_eq!(seen, Some((Some(id), None)));

            // With the handle, here in block_on, and in another task.
            let output = reporting(&send);
            let task = Builder::new().name("its own").spawn(async move { output });
            let id = task.id();
            until(|| task.is_finished()).await;
            drop(task);
            assert_eq!(dropped_in.recv().unwrap(), (Some(id), Some("its own".into())));
            assert_eq!(try_id(), None);

            let output = reporting(&send);
            let first = mini::spawn(async move { output });
            until(|| first.is_finished()).await;
            let expected = first.id();
            let second = mini::spawn(async move {
                let own = try_id();
                drop(first);
                assert_eq!(try_id(), own, "after the output of the other is gone");
            });
            second.await.unwrap();
            assert_eq!(dropped_in.recv().unwrap(), (Some(expected), None));
        });
    });
}

/// The payload of a panic is an output. An awaited payload belongs to the code that awaited it.
#[test]
fn the_payload_of_a_panic_is_dropped_by_its_own_task_and_an_awaited_output_is_not() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, dropped_in) = mpsc::channel();
        runtime.block_on(async {
            let output = reporting(&send);
            let task = mini::spawn(async move { panic_any(output) });
            let expected = task.id();
            until(|| task.is_finished()).await;
            drop(task);
            assert_eq!(dropped_in.recv().unwrap(), (Some(expected), None));
            let output = reporting(&send);
            drop(mini::spawn(async move { output }).await.unwrap());
            assert_eq!(dropped_in.recv().unwrap(), (None, None));
        });
    });
}

#[test]
fn what_the_destructor_of_an_output_runs_is_not_its_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, seen) = mpsc::channel();
        let output = OnDrop(move || {
            let own = try_id();
            let other = mini::runtime::Builder::new_current_thread().build().unwrap();
            let root = other.block_on(async { (try_id(), mini::spawn(async { try_id() }).await.unwrap()) });
            let handle = other.handle().clone();
            drop(other);
            let (inner, inner_seen) = mpsc::channel();
            let refused = reporting(&inner);
            let id = handle.spawn(async move { drop(refused) }).id();
            send.send((own, root, id, inner_seen.recv().unwrap().0, try_id())).unwrap();
        });
        let task = runtime.spawn(async move { output });
        runtime.block_on(until(|| task.is_finished()));
        let id = Some(task.id());
        drop(task);
        let (own, root, refused, refused_seen, after) = seen.recv().unwrap();
        assert_eq!((own, after), (id, id));
        assert_eq!(root.0, None, "the future given to block_on is no task");
        assert!(root.1.is_some() && root.1 != id);
        assert_eq!(refused_seen, Some(refused), "a task of a runtime that has ended is dropped at once");
    });
}

#[test]
fn debug_shows_where_a_task_waits() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let line = line!() + 1;
            let sleeper = mini::spawn(async { mini::time::sleep(Duration::from_secs(3600)).await });
            let text = || format!("{sleeper:?}");
            assert!(text().contains(&format!("id: {}", sleeper.id())));
            assert!(text().contains(&format!("spawned_at: {}:{line}:", file!())), "{}", text());
            until(|| text().contains("last_wait")).await;
            assert!(text().contains(&format!("last_wait: Timer at {}:{line}:", file!())), "{}", text());
            assert!(text().contains("polls: 1") && text().contains("finished: false"), "{}", text());

            let (id, abort) = (sleeper.id(), sleeper.abort_handle());
            let joiner = mini::spawn(sleeper);
            until(|| format!("{joiner:?}").contains(&format!("last_wait: Join of task {id}"))).await;
            abort.abort();
            assert!(joiner.await.unwrap().unwrap_err().is_cancelled());
            assert!(format!("{abort:?}").contains("finished: true"));
        });
    });
}

#[test]
fn a_dropped_handle_lets_the_task_go_on() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (queued, idle, done) = (Counts::new(), Counts::new(), Counts::new());
        let made = |counts: &Arc<Counts>| {
            let output = counts.clone();
            move || Token::new(&output)
        };
        // Queued, and running as soon as it runs: this task is being polled while its handle is dropped.
        let make = made(&queued);
        drop(runtime.spawn(async move { make() }));
        // Idle.
        let (send, receive) = oneshot::<()>();
        let make = made(&idle);
        let polled = Counts::new();
        let mut first = Box::pin(receive);
        let task = runtime.spawn(counted(&polled, move |cx| first.as_mut().poll(cx).map(|_| make())));
        runtime.block_on(until(|| polled.polls() == 1));
        drop(task);
        send.send(());
        // Done.
        let make = made(&done);
        let task = runtime.spawn(async move { make() });
        runtime.block_on(until(|| task.is_finished()));
        assert_eq!(done.drops(), 0, "the output belongs to the handle");
        drop(task);
        assert_eq!(done.drops(), 1, "it went with the handle");
        runtime.block_on(until(|| queued.drops() == 1 && idle.drops() == 1));
        drop(runtime);
        assert_eq!((queued.drops(), idle.drops(), done.drops()), (1, 1, 1));
    });
}

#[test]
fn a_dropped_runtime_drops_its_tasks() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (idle, done) = (Counts::new(), Counts::new());
        let idle_task = runtime.spawn(never(&idle));
        runtime.block_on(until(|| idle.polls() == 1));
        let output = done.clone();
        let done_task = runtime.spawn(async move { Token::new(&output) });
        runtime.block_on(until(|| done_task.is_finished()));
        drop(runtime);
        assert_eq!((idle.polls(), idle.drops()), (1, 1));
        assert!(mini::block_on(idle_task).unwrap_err().is_cancelled());
        assert_eq!(done.drops(), 0, "it is the handle's");
        drop(done_task);
        assert_eq!(done.drops(), 1);
    });
}

#[test]
fn a_dropped_runtime_drops_queued_tasks_without_a_poll() {
    on_current_thread(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let counts: Vec<_> = (0..300).map(|_| Counts::new()).collect();
        let tasks: Vec<_> = handle.block_on(async {
            let tasks = counts.iter().map(|counts| mini::spawn(never(counts))).collect();
            drop(runtime);
            tasks
        });
        for (task, counts) in tasks.into_iter().zip(counts) {
            assert!(mini::block_on(task).unwrap_err().is_cancelled());
            assert_eq!((counts.polls(), counts.drops()), (0, 1));
        }
    });
}

#[test]
fn a_task_that_runs_while_its_runtime_ends_is_dropped_after_the_poll() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let counts = Counts::new();
        let (inside, is_inside) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let seen = counts.clone();
        let task = runtime.spawn(counted::<(), _>(&counts, move |_| {
            inside.send(()).unwrap();
            may_go.recv().unwrap();
            assert_eq!(seen.drops(), 0);
            Poll::Pending
        }));
        is_inside.recv().unwrap();
        runtime.shutdown_background();
        assert!(!task.is_finished());
        go.send(()).unwrap();
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
    });
}

#[test]
fn only_the_last_joiner_is_woken_and_once() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (send, receive) = oneshot();
        let mut task = runtime.spawn(receive);
        let (first, second) = (Counts::new(), Counts::new());
        for waker in [&first, &first, &second, &first, &second, &second] {
            assert!(poll_with(&mut task, waker).is_pending());
        }
        send.send(7);
        runtime.block_on(until(|| task.is_finished()));
        drop(runtime);
        assert_eq!((first.wakes(), second.wakes()), (0, 1));
        assert!(matches!(poll_with(&mut task, &second), Poll::Ready(Ok(Some(7)))));
        assert_eq!(Arc::strong_count(&first), 1, "displaced wakers are dropped");
    });
}

#[test]
fn a_task_does_not_run_before_spawn_returns_and_runs_in_order() {
    on_current_thread(|builder| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = order.clone();
        builder.build().unwrap().block_on(async move {
            let tasks: Vec<_> = (0..100)
                .map(|i| {
                    let order = order.clone();
                    mini::spawn(async move { order.lock().unwrap().push(i) })
                })
                .collect();
            assert!(order.lock().unwrap().is_empty());
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn futures_of_every_size_and_alignment() {
    #[repr(align(256))]
    struct Aligned([u8; 256]);

    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let aligned = Aligned([7; 256]);
            let task = mini::spawn(async move {
                yield_now().await;
                assert_eq!((&raw const aligned).addr() % 256, 0);
                aligned
            });
            let output = task.await.unwrap();
            assert_eq!(((&raw const output).addr() % 256, output.0[255]), (0, 7));
            let large = [3u8; 100_000];
            let task = mini::spawn(async move {
                yield_now().await;
                large
            });
            assert_eq!(task.await.unwrap()[99_999], 3);
            mini::spawn(async {}).await.unwrap();
        });
    });
}
