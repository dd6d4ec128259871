//! What a wake does to a task that is idle, queued, running or done, and what its wakers are.

#![allow(clippy::waker_clone_wake, reason = "a clone that is woken and gone is what is tested")]

use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use mini::task::yield_now;
use mini_tests::{Counts, counted, on_each_flavour, on_single_workers, poll_with, until};

#[test]
fn a_wake_of_an_idle_task_polls_it_once_more() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let (give, take) = mpsc::channel();
        let task = runtime.spawn(counted::<(), _>(&counts, move |cx| {
            let _ = give.send(cx.waker().clone());
            Poll::Pending
        }));
        for polls in 1..10 {
            runtime.block_on(until(|| counts.polls() == polls));
            take.recv().unwrap().wake();
        }
        runtime.block_on(until(|| counts.polls() == 10));
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (10, 1));
        assert!(mini::block_on(task).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_wake_of_a_queued_task_does_nothing() {
    on_single_workers(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let waker = Arc::new(Mutex::new(None));
        let kept = waker.clone();
        let task = counted::<(), _>(&counts, move |cx| {
            *kept.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        });
        runtime.block_on(async {
            drop(mini::spawn_local(task));
            until(|| counts.polls() == 1).await;
            let waker: Waker = waker.lock().unwrap().take().unwrap();
            for _ in 0..5 {
                waker.wake_by_ref();
            }
            thread::spawn(move || waker.wake()).join().unwrap();
            assert_eq!(counts.polls(), 1, "this worker is busy here");
            until(|| counts.polls() == 2).await;
            for _ in 0..100 {
                yield_now().await;
            }
            // One poll more if the other thread's wake was a message of its own (current_thread), never more.
            assert!(counts.polls() <= 3, "{} polls", counts.polls());
        });
    });
}

#[test]
fn wakes_of_a_running_task_make_one_more_poll() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let mut polls = 0;
        let task = runtime.spawn(counted(&counts, move |cx| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            cx.waker().clone().wake();
            Poll::Pending
        }));
        runtime.block_on(task).unwrap();
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (3, 1));
    });
}

#[test]
fn wakes_of_a_finished_task_do_nothing() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let counts = Counts::new();
        let (give, take) = mpsc::channel();
        let task = runtime.spawn(counted(&counts, move |cx| {
            give.send(cx.waker().clone()).unwrap();
            Poll::Ready(5)
        }));
        assert_eq!(runtime.block_on(task).unwrap(), 5);
        let waker: Waker = take.recv().unwrap();
        waker.wake_by_ref();
        runtime.block_on(async {
            waker.wake_by_ref();
            let other = waker.clone();
            mini::spawn(async move { other.wake() }).await.unwrap();
        });
        drop(runtime);
        waker.wake();
        assert_eq!((counts.polls(), counts.drops()), (1, 1));
    });
}

#[test]
fn wakers_are_equal_for_one_task_and_differ_between_two() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (give, take) = mpsc::channel::<(usize, Waker)>();
        for name in 0..2 {
            let give = give.clone();
            let mut polls = 0;
            drop(runtime.spawn(counted(&Counts::new(), move |cx| {
                polls += 1;
                give.send((name, cx.waker().clone())).unwrap();
                cx.waker().wake_by_ref();
                if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
            })));
        }
        drop(give);
        let mut wakers = Vec::new();
        runtime.block_on(until(|| {
            wakers.extend(take.try_iter());
            wakers.len() == 6
        }));
        for (a, first) in &wakers {
            for (b, second) in &wakers {
                assert_eq!(first.will_wake(second), a == b);
            }
            assert!(first.clone().will_wake(first));
        }
    });
}

#[test]
fn the_last_waker_may_be_dropped_anywhere() {
    on_each_flavour(|builder| {
        let output = Counts::new();
        let (give, take) = mpsc::channel::<Waker>();
        let runtime = builder.build().unwrap();
        let made = output.clone();
        let mut task = runtime.spawn(counted(&Counts::new(), move |cx| {
            give.send(cx.waker().clone()).unwrap();
            Poll::Ready(mini_tests::Token::new(&made))
        }));
        runtime.block_on(until(|| task.is_finished()));
        drop(runtime);
        let waker = take.recv().unwrap();
        assert!(poll_with(&mut task, &Counts::new()).is_ready());
        assert_eq!(output.drops(), 1);
        drop(task);
        thread::spawn(move || drop(waker)).join().unwrap();
    });
}

/// The runtime has the only other reference, and another worker may end the task before the wake is over.
#[test]
fn a_wake_may_use_up_the_only_waker_of_a_detached_task() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, wakers) = (Counts::new(), Arc::new(Mutex::new(Vec::<Waker>::new())));
        let (seen, slot) = (counts.clone(), wakers.clone());
        let waking = runtime.spawn(async move {
            for round in 1..=50 {
                for _ in 0..40 {
                    let (slot, mut is_woken) = (slot.clone(), false);
                    drop(mini::spawn(counted(&seen, move |cx| {
                        if std::mem::replace(&mut is_woken, true) {
                            return Poll::Ready(());
                        }
                        slot.lock().unwrap().push(cx.waker().clone());
                        Poll::Pending
                    })));
                }
                until(|| slot.lock().unwrap().len() == 40).await;
                std::mem::take(&mut *slot.lock().unwrap()).into_iter().for_each(Waker::wake);
                until(|| seen.drops() == 40 * round).await;
            }
        });
        runtime.block_on(waking).unwrap();
        assert_eq!((counts.polls(), counts.drops()), (2 * 40 * 50, 40 * 50));
    });
}

/// They are made in the next poll too, and more of them than a small count would hold.
#[test]
fn wakers_made_in_a_poll_may_be_dropped_anywhere() {
    const WAKERS: usize = 40_000;
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (counts, wakers) = (Counts::new(), Arc::new(Mutex::new(Vec::<Waker>::new())));
        let (slot, mut polls) = (wakers.clone(), 0);
        let task = runtime.spawn(counted(&counts, move |cx| {
            polls += 1;
            if polls == 4 {
                return Poll::Ready(());
            }
            let wakers = (0..WAKERS).map(|_| cx.waker().clone()).collect();
            drop(std::mem::replace(&mut *slot.lock().unwrap(), wakers));
            Poll::Pending
        }));
        let seen = counts.clone();
        let woken = runtime.spawn(async move {
            for polls in 1..=3 {
                until(|| seen.polls() == polls && wakers.lock().unwrap().len() == WAKERS).await;
                let mut taken = std::mem::take(&mut *wakers.lock().unwrap());
                let last = taken.pop().unwrap();
                match polls {
                    1 => thread::spawn(|| drop(taken)).join().unwrap(),
                    2 => *wakers.lock().unwrap() = taken,
                    _ => drop(taken),
                }
                last.wake();
            }
        });
        runtime.block_on(async { (woken.await.unwrap(), task.await.unwrap()) });
        assert_eq!((counts.polls(), counts.drops()), (4, 1));
    });
}
