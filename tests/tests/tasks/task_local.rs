//! Task-local values: there in every poll and in the drop of a scope's future, and nowhere else.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use mini::runtime::Builder;
use mini::task::{LocalKey, yield_now};
use mini_tests::{
    Counts, LIMIT, OnDrop, Token, caught, counted, multi_thread, on_each_flavour, on_single_workers, within,
};

mini::task_local! {
    /// Documented, and public.
    #[allow(dead_code)]
    pub static PUBLIC: u8;
    static NUMBER: u32;
    static COUNTED: Token;
    static CELL: Cell<u32>
}
mini::task_local!();

fn number() -> Option<u32> {
    NUMBER.try_get().ok()
}

fn once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn each_task_sees_its_own_value_wherever_it_runs() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let tasks: Vec<_> = (0..50)
                .map(|i| {
                    mini::spawn(NUMBER.scope(i, async move {
                        for _ in 0..20 {
                            assert_eq!(NUMBER.get(), i);
                            yield_now().await;
                        }
                    }))
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
                assert_eq!(number(), None);
            }
            let spawned = NUMBER.scope(1, async { mini::spawn(async { number() }).await.unwrap() }).await;
            assert_eq!(spawned, None, "a spawned task does not inherit it");
        });
    });
}

#[test]
fn scopes_nest() {
    within(LIMIT, || {
        mini::block_on(NUMBER.scope(1, async {
            let inner = NUMBER.scope(2, async {
                yield_now().await;
                assert_eq!(NUMBER.sync_scope(3, NUMBER_GET), Some(3));
                assert_eq!(number(), Some(2));
                CELL.scope(Cell::new(5), async { assert_eq!((number(), CELL.with(Cell::get)), (Some(2), 5)) }).await;
            });
            let mut inner = pin!(inner);
            assert!(once(inner.as_mut()).is_pending());
            assert_eq!(number(), Some(1));
            inner.await;
            assert_eq!(number(), Some(1));
        }));
        assert_eq!(number(), None);
    });
}

const NUMBER_GET: fn() -> Option<u32> = number;

#[test]
fn the_value_before_is_back_after_a_panic() {
    within(LIMIT, || {
        NUMBER.sync_scope(1, || {
            let mut scope = Box::pin(NUMBER.scope(2, async { panic!("in the future") }));
            assert!(catch_unwind(AssertUnwindSafe(|| once::<_>(scope.as_mut()))).is_err());
            assert_eq!(number(), Some(1));
            assert_eq!(scope.as_mut().take_value(), Some(2));
            drop(scope);
            assert!(catch_unwind(|| NUMBER.sync_scope(3, || panic!("in the closure"))).is_err());
            assert_eq!(number(), Some(1));
            let bad = OnDrop(|| panic!("in a destructor"));
            let scope = NUMBER.scope(4, async move { drop(bad) });
            assert!(catch_unwind(AssertUnwindSafe(|| drop(scope))).is_err());
            assert_eq!(number(), Some(1));
        });
        assert_eq!(number(), None);
    });
}

#[test]
fn a_future_sees_its_value_while_it_is_dropped() {
    on_each_flavour(|builder| {
        let (send, receive) = std::sync::mpsc::channel();
        let guard = || {
            let send = send.clone();
            OnDrop(move || send.send(number()).unwrap())
        };
        let hold = |guard: OnDrop<_>| async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        };
        drop(NUMBER.scope(1, hold(guard())));
        assert_eq!(receive.recv().unwrap(), Some(1), "never polled");

        let mut half = Box::pin(NUMBER.scope(2, hold(guard())));
        assert!(once(half.as_mut()).is_pending());
        NUMBER.sync_scope(9, || drop(half));
        assert_eq!(receive.recv().unwrap(), Some(2), "half run");

        let done = NUMBER.scope(3, {
            let guard = guard();
            async move { drop(guard) }
        });
        let runtime = builder.build().unwrap();
        runtime.block_on(done);
        assert_eq!(receive.recv().unwrap(), Some(3), "done");

        let guard = guard();
        runtime.block_on(async {
            let task = mini::spawn(NUMBER.scope(4, hold(guard)));
            yield_now().await;
            assert!(task.cancel().await.is_err());
        });
        assert_eq!(receive.recv().unwrap(), Some(4), "cancelled");
        assert_eq!(number(), None);
    });
}

#[test]
fn a_value_can_be_taken_once() {
    within(LIMIT, || {
        let counts = Counts::new();
        let mut scope = Box::pin(COUNTED.scope(Token::new(&counts), yield_now()));
        assert!(once(scope.as_mut()).is_pending());
        let token = scope.as_mut().take_value();
        assert!(token.is_some() && scope.as_mut().take_value().is_none());
        assert!(once(scope.as_mut()).is_ready(), "it goes on without");
        drop((token, scope));
        assert_eq!(counts.drops(), 1);
        drop(COUNTED.scope(Token::new(&counts), async {}));
        assert_eq!(counts.drops(), 2, "a value that is not taken goes with its scope");
    });
}

#[test]
fn outside_of_a_scope_there_is_an_error() {
    let seen = caught(|| NUMBER.get());
    assert!(seen.message.contains("outside of every scope") && seen.file == file!(), "{seen:?}");
    let error = NUMBER.try_with(|_| unreachable!("not called")).map(|(): ()| ()).unwrap_err();
    assert!(error.to_string().contains("outside of every scope"), "{error}");
    assert!(CELL.try_with(Cell::get).is_err());
}

#[test]
fn a_scope_inside_of_with_of_the_same_key_panics() {
    NUMBER.sync_scope(1, || {
        let seen = caught(|| NUMBER.with(|_| NUMBER.sync_scope(2, || ())));
        assert!(seen.message.contains("inside of LocalKey::with") && seen.file == file!(), "{seen:?}");
        let counts = Counts::new();
        let mut scope = Box::pin(NUMBER.scope(3, counted(&counts, |_| Poll::Ready(number()))));
        assert!(caught(|| NUMBER.with(|_| once(scope.as_mut()))).message.contains("inside of LocalKey::with"));
        assert_eq!(once(scope.as_mut()), Poll::Ready(Some(3)), "the refusal has done no harm");
        assert!(caught(|| once(scope.as_mut())).message.contains("after it was ready"));
        assert_eq!(number(), Some(1));
    });
}

/// A scope that is kept in a thread-local is dropped with the thread; its future may see no value then, but is dropped.
#[test]
fn a_scope_may_be_dropped_with_its_thread() {
    thread_local! { static KEPT: Cell<Option<Box<dyn std::any::Any>>> = const { Cell::new(None) } }
    static KEY: &LocalKey<u32> = &NUMBER;
    let counts = Counts::new();
    let inside = counts.clone();
    thread::spawn(move || {
        KEPT.set(None);
        let token = Token::new(&inside);
        KEPT.set(Some(Box::new(KEY.scope(1, async move { drop(token) }))));
        assert_eq!(number(), None);
    })
    .join()
    .unwrap();
    assert_eq!(counts.drops(), 1);
}

#[test]
fn values_of_stolen_tasks_stay_with_them() {
    within(LIMIT, || {
        let runtime = multi_thread(4).build().unwrap();
        let spread = |i| {
            NUMBER.scope(i, async move {
                for _ in 0..50 {
                    mini::time::sleep(mini::time::Duration::from_micros(20)).await;
                    NUMBER.scope(i + 1000, async { assert_eq!(NUMBER.get(), i + 1000) }).await;
                    assert_eq!(NUMBER.get(), i);
                }
            })
        };
        let tasks: Vec<_> = (0..20).map(|i| runtime.spawn(spread(i))).collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn a_block_on_shows_the_values_of_its_caller_to_its_own_future_alone() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let seen_by_task = || async { mini::spawn(async { (number(), CELL.try_with(Cell::get).ok()) }).await.unwrap() };
        let (mut dropped, mut after) = (None, None);
        NUMBER.sync_scope(9, || {
            CELL.sync_scope(Cell::new(1), || {
                let seen = &mut dropped;
                let last = OnDrop(move || *seen = number());
                runtime.block_on(async {
                    let _last = last;
                    for round in 1..4 {
                        assert_eq!((number(), CELL.with(|cell| cell.replace(round + 1))), (Some(9), round));
                        assert_eq!(seen_by_task().await, (None, None));
                    }
                    assert_eq!(NUMBER.scope(10, seen_by_task()).await, (None, None));
                });
                after = Some(CELL.with(Cell::get));
            });
            assert_eq!(NUMBER.with(|_| runtime.block_on(async { number() })), Some(9), "lent, so it stays");
            caught(|| runtime.block_on(async { panic!("with the values in place") }));
            assert_eq!(number(), Some(9));
        });
        assert_eq!((dropped, after, number()), (Some(9), Some(4), None));
    });
}

#[test]
fn tasks_of_a_runtime_that_is_turned_or_dropped_in_a_scope_do_not_see_its_value() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (send, seen) = mpsc::channel();
        let dropped = send.clone();
        drop(runtime.spawn(async move {
            send.send(number()).unwrap();
            let _last = OnDrop(move || dropped.send(number()).unwrap());
            std::future::pending::<()>().await;
        }));
        NUMBER.sync_scope(9, || {
            assert_eq!(runtime.turn(Duration::ZERO).polls(), 1);
            assert_eq!((seen.try_recv(), number()), (Ok(None), Some(9)));
            drop(runtime);
            assert_eq!((seen.try_recv(), number()), (Ok(None), Some(9)));
        });
    });
}

#[test]
fn a_task_in_block_in_place_shows_its_value_to_what_it_blocks_for_alone() {
    within(LIMIT, || {
        let (outer, inner) = (multi_thread(1).build().unwrap(), Builder::new_current_thread().build().unwrap());
        outer.block_on(NUMBER.scope(9, async {
            mini::task::block_in_place(|| {
                inner.block_on(async {
                    assert_eq!((number(), mini::spawn(async { number() }).await.unwrap()), (Some(9), None));
                });
            });
            yield_now().await;
            assert_eq!(number(), Some(9));
        }));
    });
}
