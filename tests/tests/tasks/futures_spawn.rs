//! Libraries that take an executor by the traits of futures-task: what `SpawnExt` and `LocalSpawnExt` make of mini.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

use futures::task::{LocalSpawn, LocalSpawnExt, Spawn, SpawnExt};
use mini::runtime::{Builder, Handle};
use mini::task::{LocalSpawner, yield_now};
use mini_tests::{LIMIT, on_each_flavour, oneshot, within};

/// As such a library has it: generic over the executor.
async fn sum_of_squares<S: Spawn>(spawner: &S, numbers: u32) -> u32 {
    let square = |number| async move {
        yield_now().await;
        number * number
    };
    let handles: Vec<_> = (0..numbers).map(|number| spawner.spawn_with_handle(square(number)).unwrap()).collect();
    let mut sum = 0;
    for handle in handles {
        sum += handle.await;
    }
    sum
}

#[test]
fn tasks_give_their_outputs_to_their_handles() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.block_on(async { sum_of_squares(&Handle::current(), 100).await }), 328_350);
        // Also from a thread that is in no runtime, by a trait object.
        let spawner: &dyn Spawn = runtime.handle();
        let handle = spawner.spawn_with_handle(async { 7 }).unwrap();
        assert_eq!(runtime.block_on(handle), 7);
    });
}

#[test]
fn a_handle_that_is_dropped_ends_the_task_and_one_that_is_forgotten_does_not() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let spawner = Handle::current();
            let (held, dropped) = oneshot::<()>();
            drop(spawner.spawn_with_handle(async move {
                let _held = held;
                std::future::pending::<()>().await;
            }));
            assert_eq!(dropped.await, None, "the sender is gone");
            let (send, receive) = oneshot();
            spawner.spawn_with_handle(async move { send.send(7) }).unwrap().forget();
            assert_eq!(receive.await, Some(7));
        });
    });
}

#[test]
fn a_panic_of_the_task_goes_to_its_handle() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().spawn_with_handle(async { panic!("on purpose") }).unwrap();
        let payload = catch_unwind(AssertUnwindSafe(|| runtime.block_on(handle))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
    });
}

#[test]
fn a_runtime_that_was_shut_down_says_so() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let spawner = runtime.handle().clone();
        assert!(spawner.status().is_ok());
        drop(runtime);
        assert!(spawner.status().unwrap_err().is_shutdown());
        assert!(SpawnExt::spawn(&spawner, async {}).unwrap_err().is_shutdown());
        assert!(spawner.spawn_with_handle(async {}).unwrap_err().is_shutdown());
    });
}

#[test]
fn local_tasks_stay_on_their_thread_and_need_not_be_send() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let (spawner, runs) = (LocalSpawner::new(), Rc::new(Cell::new(0)));
            let task = |runs: Rc<Cell<u32>>| async move {
                yield_now().await;
                runs.set(runs.get() + 1);
                thread::current().id()
            };
            let handles: Vec<_> =
                (0..9).map(|_| spawner.spawn_local_with_handle(task(runs.clone())).unwrap()).collect();
            for handle in handles {
                assert_eq!(handle.await, thread::current().id());
            }
            assert_eq!(runs.get(), 9);
        });
    });
}

#[test]
fn local_tasks_outside_of_a_runtime_are_refused() {
    within(LIMIT, || {
        let spawner = LocalSpawner::new();
        assert!(spawner.status_local().unwrap_err().is_shutdown());
        assert!(spawner.spawn_local(async {}).unwrap_err().is_shutdown());
    });
}

#[test]
fn while_a_runtime_shuts_down_both_say_so() {
    struct Late(Arc<Mutex<Vec<bool>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            let refused = [Handle::current().status().is_err(), LocalSpawner::new().status_local().is_err()];
            self.0.lock().unwrap().extend(refused);
        }
    }
    on_each_flavour(|builder| {
        let refused = Arc::new(Mutex::new(Vec::new()));
        let late = Late(refused.clone());
        let runtime = builder.build().unwrap();
        runtime.spawn(async move {
            let _late = late;
            std::future::pending::<()>().await;
        });
        drop(runtime);
        assert_eq!(*refused.lock().unwrap(), [true, true]);
    });
}
