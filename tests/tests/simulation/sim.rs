//! Simulations: what a seed determines, what it finds, and what is told when a simulation fails.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use mini::sim::{Seeds, Sim, current};
use mini::sync::{Mutex, mpsc, oneshot};
use mini::task::{spawn_local, yield_now};
use mini::time::{Instant, sleep, timeout};

/// Three tasks that each take three steps, and the order in which they did.
async fn order() -> Vec<u32> {
    let taken = Rc::new(RefCell::new(Vec::new()));
    let tasks = [1, 2, 3].map(|number| {
        let taken = taken.clone();
        spawn_local(async move {
            for _ in 0..3 {
                taken.borrow_mut().push(number);
                yield_now().await;
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    taken.take()
}

#[test]
fn a_seed_determines_the_order_and_seeds_differ() {
    let orders: Vec<Vec<u32>> = (0..100).map(|seed| Sim::new(seed).run(order()).unwrap()).collect();
    for (seed, order_of_seed) in orders.iter().enumerate() {
        assert_eq!(Sim::new(seed as u64).run(order()).unwrap(), *order_of_seed, "seed {seed}");
    }
    let different: std::collections::HashSet<_> = orders.iter().collect();
    assert!(different.len() > 30, "only {} orders", different.len());
    assert!(orders.contains(&vec![1, 2, 3, 1, 2, 3, 1, 2, 3]), "first in, first out");
    assert!(orders.iter().any(|order| order[..3] == [2, 2, 2]), "one far ahead of the others");
}

/// An update that yields between its two halves.
async fn lost_update() -> u32 {
    let counter = Rc::new(Cell::new(0));
    let both = [(); 2].map(|()| {
        let counter = counter.clone();
        spawn_local(async move {
            let before = counter.get();
            yield_now().await;
            counter.set(before + 1);
        })
    });
    for task in both {
        task.await.unwrap();
    }
    counter.get()
}

#[test]
fn a_race_is_found_and_its_seed_is_told() {
    let failure = catch_unwind(|| {
        Seeds::new("sim", "loses", 200).run(|| async { assert_eq!(lost_update().await, 2, "lost update") });
    });
    let text = *failure.unwrap_err().downcast::<String>().unwrap();
    assert!(
        text.starts_with("seed ") && text.contains(": panicked: assertion `left == right` failed: lost update"),
        "{text}"
    );
    let seed = text[5..].split(':').next().unwrap().parse().unwrap();
    assert!(
        text.contains(&format!("replay: MINI_SEED={seed} cargo test loses -- --exact --include-ignored")),
        "{text}"
    );
    assert!(text.contains("the last steps:\n"), "{text}");
    assert_eq!(Sim::new(seed).run(lost_update()).unwrap(), 1);
    assert!((1..seed).all(|seed| Sim::new(seed).run(lost_update()).unwrap() == 2), "not the first one");
}

#[test]
fn locks_in_two_orders_are_a_deadlock_under_some_seeds() {
    let deadlock = |seed| {
        Sim::new(seed).run(async {
            let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
            let tasks = [[0, 1], [1, 0]].map(|order| {
                let [first, second] = order.map(|at: usize| locks[at].clone());
                mini::spawn(async move {
                    let _first = first.lock().await;
                    drop(second.lock().await); // free locks: without drawn budgets neither task would yield here
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
        })
    };
    let line = line!() - 8;
    let failures: Vec<_> = (0..100).filter_map(|seed| deadlock(seed).err()).collect();
    assert!((1..100).contains(&failures.len()), "{}", failures.len());
    let text = failures[0].to_string();
    assert!(text.contains(": deadlock: nothing is left that could wake a task\n"), "{text}");
    assert!(text.contains("CIRCLE: each of these waits for the next"), "{text}");
    assert!(text.contains(&format!("Lock at {}:{line}:", file!())), "{text}");
}

#[test]
fn a_seed_determines_the_ids_of_tasks() {
    let taken = || std::thread::spawn(|| mini::block_on(async { mini::spawn(async {}).id() })).join().unwrap();
    let ids = || {
        Sim::new(3).run(async {
            let job = mini::spawn_blocking(mini::task::id);
            let ids = [mini::spawn(async {}).id(), spawn_local(async {}).id(), job.id()];
            assert_eq!(job.await.unwrap(), ids[2]);
            ids.map(|id| id.to_string())
        })
    };
    assert_eq!(ids().unwrap(), ["2", "3", "1"]);
    assert_ne!(taken(), taken(), "a thread takes some");
    assert_eq!(std::thread::scope(|scope| scope.spawn(|| ids().unwrap()).join().unwrap()), ["2", "3", "1"]);
}

#[test]
fn a_task_may_wait_for_one_with_the_same_id() {
    let runtime = mini::runtime::Builder::new_current_thread().build().unwrap();
    let other = runtime.handle().spawn(pending::<()>());
    let (id, other) = (other.id(), Rc::new(Cell::new(Some(other))));
    let waits = Sim::new(3).run(async {
        loop {
            let other = other.clone();
            let task = spawn_local(async move {
                assert!(mini::task::id() <= id, "ids have no gaps");
                if mini::task::id() < id {
                    return false;
                }
                timeout(Duration::ZERO, other.take().unwrap()).await.is_err()
            });
            if task.await.unwrap() {
                return true;
            }
        }
    });
    assert!(waits.unwrap());
}

/// What the dump says of a task that waits for two things, after `meanwhile`.
async fn told_of_two(wait: impl Future + 'static, meanwhile: impl FnOnce()) -> String {
    drop(spawn_local(async { _ = wait.await }));
    current().settle().await;
    meanwhile();
    mini::runtime::Handle::current().dump().to_string()
}

#[test]
fn a_dump_does_not_mix_up_the_tasks_of_two_simulations() {
    let other = || {
        let locks = async {
            let lock = Mutex::new(());
            let _guard = lock.lock().await;
            drop(mini::join!(lock.lock(), lock.lock()));
        };
        Sim::new(4).run(told_of_two(locks, || {})).unwrap()
    };
    let both = async {
        let [first, second] = [(); 2].map(|()| mini::sync::Notify::new());
        mini::join!(first.notified(), second.notified())
    };
    let mut of_other = String::new();
    let meanwhile = || of_other = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
    let text = Sim::new(3).run(told_of_two(both, meanwhile)).unwrap();
    let line = |text: &str| text.lines().find(|line| line.contains(", waiting: ")).unwrap().to_owned();
    assert!(line(&of_other).contains("; also: Lock"), "{of_other}");
    assert!(line(&text).contains("; also: Notify"), "{text}");
}

/// Children of a scope that each add one, and let go of the lock between reading and writing.
async fn sum_of_scope() -> u32 {
    async fn add(sum: &Mutex<u32>) {
        let before = *sum.lock().await;
        *sum.lock().await = before + 1;
    }
    let sum = Mutex::new(0);
    let lent = &sum;
    mini::scope!(|scope| {
        for _ in 0..3 {
            scope.spawn(add(lent));
        }
    })
    .await;
    sum.into_inner()
}

#[test]
fn a_race_of_the_children_of_a_scope_is_found() {
    let sums: Vec<u32> = (0..300).map(|seed| Sim::new(seed).run(sum_of_scope()).unwrap()).collect();
    let lost = sums.iter().filter(|sum| **sum < 3).count();
    assert!((20..280).contains(&lost), "an update is lost in {lost} of 300 seeds");
    for (seed, sum) in sums.iter().enumerate() {
        assert_eq!(Sim::new(seed as u64).run(sum_of_scope()).unwrap(), *sum, "seed {seed}");
        assert_eq!(Sim::new(seed as u64).fifo().run(sum_of_scope()).unwrap(), 3, "seed {seed}, by turns");
    }
}

/// The order in which children of a scope begin, and that in which they go on after they have waited for one event.
async fn orders_of_scope() -> [Vec<u32>; 2] {
    let [begun, gone_on] = [(); 2].map(|()| std::sync::Mutex::new(Vec::new()));
    let notify = mini::sync::Notify::new();
    mini::scope!(|scope| {
        for number in 0..3 {
            let (begun, gone_on, notify) = (&begun, &gone_on, &notify);
            scope.spawn(async move {
                begun.lock().unwrap().push(number);
                notify.notified().await;
                gone_on.lock().unwrap().push(number);
            });
        }
        sleep(Duration::from_millis(1)).await;
        notify.notify_waiters();
    })
    .await;
    [begun, gone_on].map(|order| order.into_inner().unwrap())
}

#[test]
fn children_of_a_scope_run_in_any_order() {
    let orders: Vec<_> = (0..200).map(|seed| Sim::new(seed).run(orders_of_scope()).unwrap()).collect();
    for kind in [0, 1] {
        let different: std::collections::HashSet<_> = orders.iter().map(|orders| &orders[kind]).collect();
        assert_eq!(different.len(), 6, "{different:?}");
    }
}

#[test]
fn time_is_virtual_and_an_hour_takes_as_many_steps_as_it_has_timers() {
    let elapsed = Sim::new(5).run(async {
        let begin = Instant::now();
        for _ in 0..59 {
            sleep(Duration::from_secs(60)).await;
        }
        assert!(timeout(Duration::from_secs(1), pending::<()>()).await.is_err());
        assert_eq!(begin.elapsed(), current().elapsed());
        current().elapsed()
    });
    assert_eq!(elapsed.unwrap(), Duration::from_secs(59 * 60 + 1));
}

#[test]
fn what_cannot_go_on_is_told() {
    let text = |result: Result<(), mini::sim::Failure>| result.unwrap_err().to_string();
    let spins = text(Sim::new(1).step_limit(5000).run(async {
        loop {
            yield_now().await;
        }
    }));
    assert!(spins.contains("seed 1: 5000 steps, and no time has passed: a livelock; `step_limit` of "), "{spins}");
    let late = text(Sim::new(1).run(async { sleep(Duration::from_secs(3601)).await }));
    assert!(late.contains("the simulation has taken 3600s of virtual time; `time_limit` of "), "{late}");
    let socket = text(Sim::new(1).run(async {
        let listener = mini::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        drop(listener.accept().await);
    }));
    assert!(socket.contains("deadlock") && socket.contains("Accept"), "{socket}");
    let unseen = text(Sim::new(1).run(async {
        drop(mini::spawn(async { panic!("unheard of") }));
        sleep(Duration::from_millis(1)).await;
    }));
    assert!(unseen.contains("panicked: unheard of") && unseen.contains(", and no task awaits it"), "{unseen}");
}

#[test]
fn a_thread_that_wakes_a_task_is_told() {
    let (waits, go) = std::sync::mpsc::channel();
    let failure = Sim::new(1).run(async move {
        let (send, receive) = oneshot::channel();
        mini::spawn(receive);
        let (sent, was_sent) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            go.recv().unwrap();
            send.send(()).unwrap();
            sent.send(()).unwrap();
        });
        sleep(Duration::from_millis(1)).await;
        waits.send(()).unwrap();
        was_sent.recv().unwrap();
        sleep(Duration::from_millis(1)).await;
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("was woken by a thread that is not simulated"), "{text}");
}

#[test]
fn blocking_jobs_are_steps_in_virtual_time() {
    let times = |seed| {
        Sim::new(seed).run(async {
            let jobs = [1, 2, 3]
                .map(|number| mini::spawn_blocking(move || (number, std::thread::current().name().map(str::to_owned))));
            let mut all = Vec::new();
            for job in jobs {
                let (number, thread) = job.await.unwrap();
                assert_eq!(thread.as_deref(), std::thread::current().name());
                all.push((number, current().elapsed()));
            }
            assert!(current().elapsed() < Duration::from_millis(1));
            assert!(mini::fs::read_to_string("Cargo.toml").await.is_err(), "files are those of the simulation");
            mini::task::block_in_place(|| ());
            all
        })
    };
    assert_eq!(times(3).unwrap(), times(3).unwrap());
    assert_ne!(times(3).unwrap(), times(4).unwrap());
}

#[test]
fn a_blocking_job_that_has_not_begun_waits_where_it_was_spawned() {
    Sim::new(3)
        .run(async {
            let line = line!() + 1;
            let jobs = [mini::spawn_blocking(|| ()), mini::task::Builder::new().name("named").spawn_blocking(|| ())];
            current().settle().await;
            let dump = mini::runtime::Handle::current().dump().to_string();
            assert_eq!(dump.matches(&format!("Timer at {}:{line}:", file!())).count(), 2, "{dump}");
            for job in jobs {
                job.await.unwrap();
            }
        })
        .unwrap();
}

#[test]
fn settling_lets_all_others_go_as_far_as_they_can() {
    for seed in 0..50 {
        let result = Sim::new(seed).run(async {
            let (send, mut receive) = mpsc::channel(100);
            for number in 0..10 {
                let send = send.clone();
                mini::spawn(async move {
                    for _ in 0..number {
                        yield_now().await;
                    }
                    send.send(number).await.unwrap();
                    sleep(Duration::from_secs(1)).await;
                    send.send(number).await.unwrap();
                });
            }
            current().settle().await;
            assert_eq!(std::iter::from_fn(|| receive.try_recv().ok()).count(), 10);
            assert_eq!(current().elapsed(), Duration::ZERO);
        });
        result.unwrap();
    }
}

/// Panics when it is dropped.
struct Checks;

impl Drop for Checks {
    fn drop(&mut self) {
        panic!("not done");
    }
}

#[test]
fn destructors_that_panic_are_told_and_end_no_process() {
    let deadlock = Sim::new(1).run(async {
        let _checks = Checks;
        pending::<()>().await;
    });
    assert!(deadlock.unwrap_err().to_string().starts_with("seed 1: deadlock: "));
    let end = Sim::new(1).run(async {
        drop(mini::spawn(async {
            let _checks = Checks;
            pending::<()>().await;
        }));
        sleep(Duration::from_millis(1)).await;
    });
    let text = end.unwrap_err().to_string();
    assert!(text.contains("panicked: not done"), "{text}");
}

#[test]
fn a_job_that_blocks_on_a_task_fails_and_does_not_hang() {
    let says_why = |error: mini::task::JoinError| {
        let text = error.to_string();
        let is_one = text.contains("the only thread of the simulation for ever, as jobs of spawn_blocking run on it");
        assert!(is_one && text.contains(" in a task instead") && !text.contains("in mini::spawn_blocking"), "{text}");
    };
    let simulation = Sim::new(1).run(async {
        let (send, receive) = oneshot::channel();
        let job = mini::spawn_blocking(move || receive.blocking_recv());
        sleep(Duration::from_secs(1)).await;
        let _gone: Result<(), i32> = send.send(1);
        says_why(job.await.unwrap_err());
        says_why(mini::spawn_blocking(|| mini::block_on(async { 5 })).await.unwrap_err());
        says_why(mini::spawn(async { mini::block_on(async { 5 }) }).await.unwrap_err());
    });
    simulation.unwrap();
}

#[test]
fn settling_elsewhere_or_not_at_all_disturbs_nobody() {
    let sim = Sim::new(1).run(async {
        let sim = current();
        let _unpolled = sim.settle();
        mini::spawn(yield_now());
        let mut half_way = Box::pin(sim.settle());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(half_way.as_mut().poll(cx))).await.is_pending());
        drop(half_way); // it counts no more
        let task = mini::spawn(async {
            for _ in 0..10 {
                yield_now().await;
            }
        });
        sim.settle().await;
        assert!(task.is_finished());
        sim.clone()
    });
    let sim = sim.unwrap();
    assert!(catch_unwind(std::panic::AssertUnwindSafe(|| mini::block_on(sim.settle()))).is_err());
}

#[test]
fn races_are_drawn_from_the_seed_on_any_thread() {
    let races = |seed| {
        Sim::new(seed).run(async {
            let mut first = 0_u32;
            for _ in 0..32 {
                first = first << 1 | mini::race! { bit = async { 0 } => bit, bit = async { 1 } => bit };
            }
            first
        })
    };
    assert_eq!(races(1).unwrap(), races(1).unwrap());
    let elsewhere = std::thread::spawn(move || races(1).unwrap()).join().unwrap();
    assert_eq!(races(1).unwrap(), elsewhere);
    assert_ne!(races(1).unwrap(), races(2).unwrap());
}

#[test]
fn a_deadline_that_is_never_hides_no_deadlock() {
    for seed in 0..10 {
        let waits = Sim::new(seed).run(timeout(Duration::MAX, pending::<()>()));
        assert!(waits.unwrap_err().to_string().contains(": deadlock: "));
    }
}

static SEEN: AtomicU32 = AtomicU32::new(0);

#[mini::test(sim, seeds = 10 * 2)]
async fn each_seed_runs_once() -> Result<(), std::io::Error> {
    let seed = current().seed() as u32;
    assert!((1..=20).contains(&seed));
    assert_eq!(SEEN.fetch_or(1 << seed, Relaxed) & 1 << seed, 0);
    Ok(())
}

/// Two hours, and more runs in no time than a simulation may have by default.
#[mini::test(sim, seeds = 1, time_limit = "3h", step_limit = 1_000_000 + 10)]
async fn a_test_may_raise_the_limits() {
    sleep(Duration::from_secs(7200)).await;
    for _ in 0..1_000_005 {
        yield_now().await;
    }
}

#[mini::test(sim, seeds = 2, time_limit = "10s")]
#[should_panic = "seed 1: the simulation has taken 10s of virtual time"]
async fn a_test_may_take_less_time() {
    sleep(Duration::from_secs(11)).await;
}

#[mini::test(sim, seeds = 2, step_limit = 100)]
#[should_panic = "seed 1: 100 steps, and no time has passed: a livelock"]
async fn a_test_may_take_fewer_steps() {
    loop {
        yield_now().await;
    }
}

#[test]
fn an_error_that_a_test_returns_fails_it() {
    let failure = catch_unwind(|| {
        Seeds::new("sim", "errs", 3).run(|| async { Err::<(), _>(current().seed()) });
    });
    let text = *failure.unwrap_err().downcast::<String>().unwrap();
    assert!(text.starts_with("seed 1: the test returned an error: 1\n"), "{text}");
}
