//! The budget of a task: computing tasks that spend it yield in time, and those without one do not.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use futures::stream::{FuturesUnordered, StreamExt};
use futures_lite::future;
use mini::net::UnixStream;
use mini::runtime::Builder;
use mini::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use mini::task::{CancelToken, Reason, block_in_place, consume_budget, unconstrained, yield_now};
use mini::time::{Duration, Instant, deadline, sleep, timeout};
use mini_tests::{Counts, block_on_elsewhere, caught, counted, on_each_flavour, on_single_workers, poll_with};

/// Spends `rounds` units.
async fn spend(rounds: usize) {
    for _ in 0..rounds {
        consume_budget().await;
    }
}

#[test]
fn a_task_that_spends_its_budget_lets_others_run() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let other = mini::spawn_local(async {});
            spend(130).await; // a coin decides about the 129th
            assert!(other.is_finished());
        });
    });
}

#[test]
fn a_task_that_awaits_what_has_ended_lets_others_run() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let ended: Vec<_> = (0..130).map(|_| mini::spawn(async {})).collect();
            while !ended.iter().all(|task| task.is_finished()) {
                yield_now().await;
            }
            let other = mini::spawn_local(async {});
            for task in ended {
                task.await.unwrap();
            }
            assert!(other.is_finished());

            let shared = mini::spawn(async {}).shared();
            shared.clone().await.unwrap();
            let (other, mut rounds) = (mini::spawn_local(async {}), 0);
            while !other.is_finished() && rounds < 10_000 {
                shared.clone().await.unwrap();
                rounds += 1;
            }
            assert!(rounds <= 2 * 128 + 1, "{rounds}");

            mini::local_scope!(|s| {
                let ended: Vec<_> = (0..130).map(|_| s.spawn(async {})).collect();
                while !ended.iter().all(|child| child.is_finished()) {
                    yield_now().await;
                }
                let other = mini::spawn_local(async {});
                for child in ended {
                    child.await;
                }
                assert!(other.is_finished());
            })
            .await;
        });
    });
}

/// A loop that goes on with whichever of two is ready, as `select!` does.
#[test]
fn of_two_that_are_always_ready_none_goes_on_when_the_budget_is_spent() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let other = mini::spawn_local(async {});
            let mut rounds = 0;
            while !other.is_finished() && rounds < 10_000 {
                let (mut first, mut second) = (consume_budget(), consume_budget());
                poll_fn(|cx| match Pin::new(&mut first).poll(cx) {
                    Poll::Pending => Pin::new(&mut second).poll(cx),
                    ready => ready,
                })
                .await;
                rounds += 1;
            }
            assert!(rounds <= 2 * 128 + 1, "{rounds}");
        });
    });
}

/// What only waits spends nothing: a future that polls many leaves reaches the last one in its first poll, and sleeps.
#[test]
fn any_number_of_leaves_may_wait_in_one_poll() {
    const LEAVES: usize = 500;
    type Leaf<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

    /// Polls all in order, until one is ready; the number of polls.
    async fn first(mut leaves: Vec<Leaf<'_>>, wake: impl FnOnce()) -> usize {
        let (mut polls, mut wake) = (0, Some(wake));
        poll_fn(|cx| {
            polls += 1;
            let is_ready = leaves.iter_mut().any(|leaf| leaf.as_mut().poll(cx).is_ready());
            wake.take().into_iter().for_each(|wake| wake());
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        polls
    }

    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..LEAVES).map(|_| mpsc::channel(1)).unzip();
            let leaves = receivers.iter_mut().map(|one| Box::pin(async { one.recv().await.unwrap() }) as Leaf<'_>);
            assert_eq!(first(leaves.collect(), || senders[LEAVES - 1].try_send(()).unwrap()).await, 2);

            let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..LEAVES).map(|_| mpsc::channel(1)).unzip();
            senders.iter().for_each(|one| one.try_send(()).unwrap());
            let leaves = senders.iter().map(|one| Box::pin(async { one.send(()).await.unwrap() }) as Leaf<'_>);
            let leaves = leaves.collect();
            assert_eq!(first(leaves, || receivers[LEAVES - 1].try_recv().unwrap()).await, 2);

            let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..LEAVES).map(|_| oneshot::channel::<()>()).unzip();
            let leaves = receivers.into_iter().map(|one| Box::pin(async { one.await.unwrap() }) as Leaf<'_>);
            let last = senders.pop().unwrap();
            assert_eq!(first(leaves.collect(), || last.send(()).unwrap()).await, 2);
            drop(senders);

            let told: Vec<_> = (0..LEAVES).map(|_| Notify::new()).collect();
            let leaves = told.iter().map(|one| Box::pin(one.notified()) as Leaf<'_>);
            assert_eq!(first(leaves.collect(), || told[LEAVES - 1].notify_one()).await, 2);

            let taken: Vec<_> = (0..LEAVES).map(|_| Semaphore::new(0)).collect();
            let leaves = taken.iter().map(|one| Box::pin(async { drop(one.acquire().await) }) as Leaf<'_>);
            assert_eq!(first(leaves.collect(), || taken[LEAVES - 1].add_permits(1)).await, 2);

            let (value, receiver) = watch::channel(());
            let mut seen = vec![receiver; LEAVES];
            let leaves = seen.iter_mut().map(|one| Box::pin(async { one.changed().await.unwrap() }) as Leaf<'_>);
            assert_eq!(first(leaves.collect(), || value.send(()).unwrap()).await, 2);

            let sleeps = (0..LEAVES).map(|n| Duration::from_millis(if n == LEAVES - 1 { 200 } else { 100_000 }));
            let leaves = sleeps.map(|time| Box::pin(sleep(time)) as Leaf<'_>);
            assert_eq!(first(leaves.collect(), || {}).await, 2);
        });
    });
}

/// A `join` that polls a busy future first makes progress with the others too.
#[test]
fn beside_a_future_that_is_always_ready_others_of_the_same_task_go_on() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let mut busy = pin!(spend(usize::MAX));
            let mut other = pin!(async {
                sleep(Duration::from_micros(1)).await;
                spend(5).await;
            });
            poll_fn(|cx| {
                assert!(busy.as_mut().poll(cx).is_pending());
                other.as_mut().poll(cx)
            })
            .await;
        });
    });
}

/// A future that spends all in one operation, and then waits for something else, is not refused itself.
#[test]
fn beside_a_future_that_spends_all_at_once_others_of_the_same_task_go_on() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let mut busy = pin!(async {
                loop {
                    spend(128).await;
                    yield_now().await;
                }
            });
            let mut others = [pin!(spend(3)), pin!(spend(3))];
            let mut are_over = [false; 2];
            poll_fn(|cx| {
                let _: Poll<()> = busy.as_mut().poll(cx);
                for (other, is_over) in others.iter_mut().zip(&mut are_over) {
                    *is_over = *is_over || other.as_mut().poll(cx).is_ready();
                }
                if are_over == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
    });
}

/// An executor inside of a task does not come back to the runtime: what it polls goes on when it is polled again.
#[test]
fn a_foreign_executor_inside_of_a_task_is_refused_a_few_times_in_a_row() {
    fn most_refusals_in_a_row() -> usize {
        let (mut in_a_row, mut most) = (0, 0);
        for _ in 0..10_000 {
            block_on_elsewhere(async {
                let mut one = pin!(consume_budget());
                poll_fn(|cx| {
                    let polled = one.as_mut().poll(cx);
                    in_a_row = if polled.is_ready() { 0 } else { in_a_row + 1 };
                    most = most.max(in_a_row);
                    polled
                })
                .await;
            });
        }
        most
    }
    const MOST: usize = 17;
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            assert_eq!(most_refusals_in_a_row(), MOST, "in block_on");
            assert_eq!(mini::spawn(async { most_refusals_in_a_row() }).await.unwrap(), MOST, "in a task");
        });
    });
}

/// As many programs ask what they need not wait for, and as libraries do that poll by hand.
#[test]
fn outside_of_tasks_nothing_that_is_ready_is_refused() {
    const MANY: usize = 1_000;

    /// How often a message that is there is not found.
    fn refusals() -> usize {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        (0..MANY).for_each(|_| sender.send(()).unwrap());
        (0..MANY).filter(|_| poll_with(&mut pin!(receiver.recv()), &Counts::new()).is_pending()).count()
    }
    /// How often a socket that has data is not read.
    fn refused_reads() -> usize {
        let (here, there) = UnixStream::pair().unwrap();
        there.try_write(&[7; MANY]).unwrap();
        (0..MANY).filter(|_| poll_with(&mut pin!(here.read(&mut [0])), &Counts::new()).is_pending()).count()
    }

    assert_eq!((refusals(), refused_reads()), (0, 0), "without a runtime");
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let entered = runtime.enter();
        assert_eq!((refusals(), refused_reads()), (0, 0), "in `enter`");
        drop(entered);
        runtime.block_on(spend(100));
        assert_eq!(refusals(), 0, "after `block_on`");
        caught(|| {
            runtime.block_on(async {
                spend(100).await;
                panic!("inside");
            })
        });
        assert_eq!(refusals(), 0, "after a panic in `block_on`");
        let job = mini::runtime::Handle::clone(runtime.handle());
        let job = runtime.spawn_blocking(move || (refusals(), job.block_on(spend(100)), refusals()));
        assert_eq!(runtime.block_on(job).unwrap(), (0, (), 0), "in a job, before and after `block_on`");
        assert_eq!(runtime.block_on(async { refusals() }).min(1), 1, "in a task some are");
    });
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let in_place = async {
        spend_all().await;
        let in_place = block_in_place(refusals);
        (in_place, refusals().min(1))
    };
    assert_eq!(runtime.block_on(runtime.spawn(in_place)).unwrap(), (0, 1), "in `block_in_place`, and after it");

    let runtime = Builder::new_current_thread().build().unwrap();
    let task = runtime.spawn(spend(1_000));
    while !task.is_finished() {
        runtime.turn(Duration::ZERO);
        assert_eq!(refusals(), 0, "between the turns of an embedder");
    }
}

/// A set of futures in a task has the task's budget: it polls again those that were refused, but not for ever.
#[test]
fn futures_that_a_task_polls_in_a_set_have_its_budget() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let other = mini::spawn_local(async {});
            let rounds = Cell::new(0);
            let is_over = || other.is_finished() || rounds.get() > 100_000;
            let flood = async || {
                while !is_over() {
                    let (mut first, mut second) = (consume_budget(), consume_budget());
                    poll_fn(|cx| match Pin::new(&mut first).poll(cx) {
                        Poll::Pending => Pin::new(&mut second).poll(cx),
                        ready => ready,
                    })
                    .await;
                    rounds.set(rounds.get() + 1);
                }
            };
            let mut floods: FuturesUnordered<_> = (0..3).map(|_| flood()).collect();
            while floods.next().await.is_some() {}
            assert!(rounds.get() < 10 * 128, "{}", rounds.get());
        });
    });
}

/// The set polls a child that has woken itself once more, and begins to count anew with each item.
#[test]
fn a_set_whose_children_are_replaced_has_the_budget_of_its_task() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let other = mini::spawn_local(async {});
            let mut set = FuturesUnordered::<Pin<Box<dyn Future<Output = ()>>>>::new();
            set.push(Box::pin(std::future::pending()));
            let mut rounds = 0;
            while !other.is_finished() && rounds < 100_000 {
                set.push(Box::pin(consume_budget()));
                set.next().await;
                rounds += 1;
            }
            assert!(rounds < 10 * 128, "{rounds}");
        });
    });
}

#[test]
fn one_poll_has_128_units() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let mut task = Box::pin(spend(128 * 10));
            let polled = counted(&counts, |cx| task.as_mut().poll(cx));
            mini::task::yield_now().await;
            polled.await;
            assert_eq!(counts.polls(), 10);
        });
    });
}

/// What is looked at first is chosen if it is ready, however much of the budget is spent.
#[test]
fn what_comes_first_is_chosen_with_a_spent_budget_too() {
    const MESSAGES: usize = 1000;
    async fn drain(way: usize) -> usize {
        let (sender, mut receiver) = mpsc::channel(MESSAGES);
        (0..MESSAGES).for_each(|number| sender.try_send(number).unwrap());
        let stop = CancelToken::new();
        stop.cancel(Reason::Requested);
        for received in 0..MESSAGES {
            let message = match way {
                0 => timeout(Duration::ZERO, receiver.recv()).await.ok(),
                1 => deadline(Instant::now(), receiver.recv()).await.ok(),
                2 => mini::race! { biased; message = receiver.recv() => Some(message), _ = ready(()) => None },
                _ => mini::race! { biased; message = receiver.recv() => Some(message), _ = stop.cancelled() => None },
            };
            if message.flatten() != Some(received) {
                return received;
            }
        }
        MESSAGES
    }
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        for way in 0..4 {
            assert_eq!(runtime.block_on(drain(way)), MESSAGES, "way {way}");
            assert_eq!(runtime.block_on(async { mini::spawn(drain(way)).await.unwrap() }), MESSAGES, "way {way}");
        }
    });
}

/// A future that always comes after one that spends the whole budget, and all that refusals leave.
#[test]
fn a_limit_and_a_cancellation_end_behind_a_loop_that_is_always_ready() {
    async fn behind_a_flood<F: Future>(waits: F) {
        let is_over = Cell::new(false);
        let flood = async {
            while !is_over.get() {
                let (mut first, mut second) = (consume_budget(), consume_budget());
                poll_fn(|cx| match Pin::new(&mut first).poll(cx) {
                    Poll::Pending => Pin::new(&mut second).poll(cx),
                    ready => ready,
                })
                .await;
            }
        };
        let waits = async {
            waits.await;
            is_over.set(true);
        };
        future::zip(flood, waits).await;
    }
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let stop = CancelToken::new();
            stop.cancel(Reason::Requested);
            behind_a_flood(async {
                mini::race! { biased; _ = stop.cancelled() => {}, _ = pending::<()>() => {} }
            })
            .await;
            assert!(timeout(Duration::ZERO, behind_a_flood(pending::<()>())).await.is_err());
            behind_a_flood(timeout(Duration::from_millis(1), pending::<()>())).await;
            behind_a_flood(deadline(Instant::now() + Duration::from_millis(1), pending::<()>())).await;
        });
    });
}

#[test]
fn each_task_begins_its_poll_with_a_full_budget() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            for units in [1, 100, 127] {
                let tasks = (0..300).map(|_| {
                    mini::spawn(async move {
                        let counts = Counts::new();
                        let mut once = Box::pin(async move {
                            spend(units).await;
                            sleep(Duration::ZERO).await;
                        });
                        counted(&counts, |cx| once.as_mut().poll(cx)).await;
                        counts.polls()
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    assert_eq!(task.await.unwrap(), 1);
                }
            }
            mini::task::yield_now().await;
            assert!(poll_with(&mut pin!(spend(128)), &Counts::new()).is_ready(), "nor is this one in debt");
        });
    });
}

#[test]
fn an_unconstrained_future_is_not_made_to_yield() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let counts = Counts::new();
            let mut long = pin!(unconstrained(async {
                spend(1000).await;
                for _ in 0..1000 {
                    sleep(Duration::ZERO).await;
                }
                unconstrained(spend(1000)).await;
                spend(1000).await;
                7
            }));
            assert_eq!(poll_with(&mut long, &counts), Poll::Ready(7));
            assert_eq!(counts.wakes(), 0);
        });
    });
}

#[test]
fn what_was_left_is_left_afterwards_also_after_a_panic() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let mut polls = 0;
            let mut own = Box::pin(async {
                spend(100).await;
                unconstrained(spend(500)).await;
                assert!(
                    caught(|| {
                        let mut bad = pin!(unconstrained(async { panic!("inside") }));
                        let _: Poll<()> = bad.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()));
                    })
                    .message
                    .contains("inside")
                );
                spend(100).await;
            });
            std::future::poll_fn(|cx| {
                polls += 1;
                own.as_mut().poll(cx)
            })
            .await;
            assert!((2..=3).contains(&polls), "{polls}");
        });
    });
}

/// Spends the budget of this poll, whatever a coin decides about the last unit.
async fn spend_all() {
    let left = poll_fn(|cx| {
        let mut left = 0;
        while pin!(consume_budget()).poll(cx).is_ready() {
            left += 1;
        }
        Poll::Ready(left)
    });
    assert!(left.await <= 129);
    consume_budget().await; // the unit that a refusal leaves
}

#[test]
fn a_task_with_a_spent_budget_is_in_line_for_a_notification() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            for _ in 0..50 {
                let (notify, began) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
                let tasks = [(); 2].map(|()| {
                    let (notify, began) = (notify.clone(), began.clone());
                    mini::spawn(async move {
                        spend_all().await;
                        began.fetch_add(1, SeqCst);
                        notify.notified().await;
                    })
                });
                while began.load(SeqCst) < 2 {
                    yield_now().await;
                }
                notify.notify_one();
                notify.notify_one();
                for task in tasks {
                    task.await.unwrap();
                }
            }
        });
    });
}

/// A notification that was kept belongs to the first future that comes, budget or not. If that one goes, it is the
/// next one's.
#[test]
fn a_notification_that_a_refused_future_has_taken_goes_to_the_next() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let mut refused = 0;
            for _ in 0..50 {
                let notify = Notify::new();
                notify.notify_one();
                spend_all().await;
                let mut first = Box::pin(notify.notified());
                if poll_with(&mut first, &Counts::new()).is_pending() {
                    refused += 1;
                    notify.notify_one(); // is kept, as the first has one already
                    yield_now().await;
                    notify.notified().await;
                    drop(first); // without having seen its own
                    notify.notified().await;
                }
                yield_now().await;
            }
            assert!(refused > 0);
        });
    });
}
