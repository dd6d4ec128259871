//! Guards of `enter` that are dropped out of order, in another place than where they were made, or never.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use mini::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use mini::task::yield_now;
use mini::time::{Duration, sleep};
use mini_tests::{
    Counts, LIMIT, OnDrop, block_on_elsewhere, caught, in_child, multi_thread, never, on_each_flavour, until, within,
};

const MS: Duration = Duration::from_millis(1);

/// The name of the runtime this thread is inside of, as its blocking threads show it.
fn name_here() -> String {
    let job = mini::spawn_blocking(|| thread::current().name().unwrap().to_owned());
    block_on_elsewhere(job).unwrap().split('-').next().unwrap().to_owned()
}

fn named(mut builder: Builder, name: &str) -> Runtime {
    builder.thread_name(name).build().unwrap()
}

/// What `spawn_local` says where there is no worker.
fn refusal() -> String {
    caught(|| mini::spawn_local(async {})).message
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    within(LIMIT, || {
        let names = ["a", "b", "c"];
        let runtimes = names.map(|name| named(multi_thread(2), name));
        for order in ORDERS {
            let mut guards = [0, 1, 2].map(|i| Some(runtimes[i].enter()));
            for dropped in order {
                drop(guards[dropped].take());
                let Some(innermost) = guards.iter().rposition(Option::is_some) else { break };
                assert_eq!(name_here(), names[innermost], "{order:?}");
                block_on_elsewhere(sleep(MS)); // its timers are those of a runtime that is still entered
            }
            assert!(Handle::try_current().is_err(), "{order:?}");
        }
    });
}

#[test]
fn a_runtime_may_go_before_the_one_entered_inside_it() {
    on_each_flavour(|builder| {
        let (a, b) = (named(builder, "a"), named(multi_thread(2), "b"));
        let (outer, inner) = (a.enter(), b.enter());
        drop(outer);
        drop(a);
        assert_eq!(name_here(), "b");
        block_on_elsewhere(sleep(MS));
        drop(inner);
        assert!(Handle::try_current().is_err(), "nothing comes back that is gone");
        assert!(refusal().starts_with("mini::spawn_local needs"));
    });
}

#[test]
fn a_guard_may_be_carried_out_of_block_on() {
    on_each_flavour(|builder| {
        let runtime = named(builder, "a");
        let guard = runtime.block_on(async { runtime.enter() });
        assert_eq!(name_here(), "a");
        if runtime.handle().runtime_flavor() == RuntimeFlavor::MultiThread {
            // This thread has left its core: the thread that works on it now may not be disturbed.
            assert!(refusal().starts_with("mini::spawn_local needs a worker"));
        }
        drop(guard);
        assert!(Handle::try_current().is_err());
        assert!(refusal().starts_with("mini::spawn_local needs"));
        drop(runtime);
        assert!(refusal().starts_with("mini::spawn_local needs"));
    });
}

#[test]
fn a_guard_from_outside_may_be_dropped_inside_block_on() {
    on_each_flavour(|builder| {
        let runtime = named(builder, "a");
        let guard = runtime.enter();
        runtime.block_on(async move {
            let task = mini::spawn(async {
                for _ in 0..10 {
                    yield_now().await; // each puts the task back into the queue of the core that is held
                }
            });
            drop(guard);
            task.await.unwrap();
            mini::spawn(sleep(MS)).await.unwrap();
            assert_eq!(name_here(), "a");
        });
        assert!(Handle::try_current().is_err());
    });
}

#[test]
fn a_thread_local_runtime_ends_with_its_thread() {
    thread_local! { static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) } }
    // A panic in the destructor of a thread local ends the process.
    let _ = in_child("a_thread_local_runtime_ends_with_its_thread", || {
        for (_, builder) in mini_tests::flavours() {
            let counts = Counts::new();
            let seen = counts.clone();
            let thread = thread::spawn(move || {
                RUNTIME.with_borrow_mut(|place| {
                    let runtime = place.insert(builder.build().unwrap());
                    drop(runtime.spawn(never(&seen)));
                    runtime.block_on(async {
                        mini::spawn(sleep(MS)).await.unwrap();
                        until(|| seen.polls() == 1).await;
                    });
                });
            });
            thread.join().unwrap();
            assert_eq!(counts.drops(), 1);
        }
    });
}

type AtExit = OnDrop<Box<dyn FnMut()>>;

thread_local! { static LATE: RefCell<Option<AtExit>> = const { RefCell::new(None) } }

#[test]
fn a_leaked_guard_ends_with_its_thread() {
    on_each_flavour(|builder| {
        let (send, seen) = mpsc::channel();
        let runtime = builder.build().unwrap();
        let thread = thread::spawn(move || {
            // Thread locals go in the reverse order of their first use: when this one does, the runtime has gone.
            LATE.set(Some(OnDrop(Box::new(move || send.send(Handle::try_current().is_err()).unwrap()))));
            std::mem::forget(runtime.enter());
            drop(runtime);
        });
        thread.join().unwrap();
        assert!(seen.recv().unwrap());
    });
}
