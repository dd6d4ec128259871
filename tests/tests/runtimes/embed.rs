//! A runtime in another program's event loop: what makes its descriptor readable, what a turn runs, how long a host may
//! sleep.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Runtime};
use mini::task::{JoinHandle, yield_now};
use mini::time::{Instant, sleep};
use mini_tests::{Counts, LIMIT, beside_block_on, caught, multi_thread, never, oneshot, until, within};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn runtime() -> Runtime {
    Builder::new_current_thread().shutdown_grace(LIMIT * 10).build().unwrap()
}

/// Waits as a host does, for at most `limit`; says whether the descriptor is readable.
fn wait(runtime: &Runtime, limit: Duration) -> bool {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    let fd = runtime.as_fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match poll(&mut fds, Some(&limit)) {
        Ok(ready) => ready > 0,
        Err(error) if error == rustix::io::Errno::INTR => false,
        Err(error) => panic!("poll: {error}"),
    }
}

fn is_readable(runtime: &Runtime) -> bool {
    wait(runtime, Duration::ZERO)
}

/// Turns until there is nothing to do now.
fn settle(runtime: &Runtime) {
    while runtime.turn(Duration::ZERO).has_more() || is_readable(runtime) {}
}

/// The loop of a host, until `task` is done; returns how often it has turned.
fn drive<T>(runtime: &Runtime, task: &JoinHandle<T>) -> usize {
    let mut turns = 0;
    while !task.is_finished() {
        runtime.turn(Duration::ZERO);
        turns += 1;
        if !task.is_finished() {
            let due = runtime.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
            wait(runtime, due.unwrap_or(LIMIT));
        }
    }
    turns
}

#[test]
fn a_host_serves_sockets_timers_and_jobs() {
    within(LIMIT, || {
        let runtime = runtime();
        let task = runtime.spawn(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let addr = listener.local_addr()?;
            let client = mini::spawn(async move {
                let stream = TcpStream::connect(addr).await?;
                sleep(Duration::from_micros(300)).await;
                stream.write_all(b"ping").await?;
                let mut echo = [0; 4];
                stream.read_exact(&mut echo).await?;
                io::Result::Ok(echo)
            });
            let (stream, _) = listener.accept().await?;
            let mut buf = [0; 4];
            stream.read_exact(&mut buf).await?;
            stream.write_all(&mini::spawn_blocking(move || buf).await.unwrap()).await?;
            client.await.unwrap()
        });
        let turns = drive(&runtime, &task);
        assert!(turns < 50, "the host sleeps in between: {turns} turns");
        assert_eq!(&runtime.block_on(task).unwrap().unwrap(), b"ping");
    });
}

#[test]
fn a_socket_that_waits_lets_the_host_sleep() {
    within(LIMIT, || {
        let runtime = runtime();
        assert!(is_readable(&runtime));
        let task = runtime.spawn(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            listener.accept().await
        });
        let is_awake = || {
            runtime.turn(Duration::ZERO);
            is_readable(&runtime)
        };
        assert!(!(0..10).all(|_| is_awake()), "nothing happens");
        task.abort();
        settle(&runtime);
        assert!(task.is_finished());
    });
}

#[test]
fn a_wake_from_another_thread_makes_it_readable() {
    within(LIMIT, || {
        let runtime = runtime();
        let (give, take) = mpsc::channel::<mini_tests::Sender<()>>();
        let waking = thread::spawn(move || take.into_iter().for_each(|sender| sender.send(())));
        settle(&runtime);
        for round in 0..500 {
            let (send, receive) = oneshot();
            let task = runtime.spawn(receive);
            if round % 2 == 0 {
                settle(&runtime);
                assert!(!is_readable(&runtime) && runtime.next_deadline().is_none());
            }
            give.send(send).unwrap();
            while !task.is_finished() {
                assert!(wait(&runtime, LIMIT), "a wake was lost in round {round}");
                runtime.turn(Duration::ZERO);
            }
        }
        drop(give);
        waking.join().unwrap();
    });
}

#[test]
fn a_spawn_between_two_turns_is_seen() {
    within(LIMIT, || {
        let runtime = runtime();
        assert!(is_readable(&runtime), "the first turn is always due");
        settle(&runtime);
        for _ in 0..3 {
            assert!(!is_readable(&runtime));
            assert_eq!(runtime.next_deadline(), None);
            let task = runtime.spawn(async { 1 });
            assert!(is_readable(&runtime));
            assert!(runtime.next_deadline().unwrap() <= Instant::now());
            let turn = runtime.turn(Duration::ZERO);
            assert_eq!((turn.polls(), turn.has_more(), task.is_finished()), (1, false, true));
        }
    });
}

#[test]
fn what_was_spawned_before_the_descriptor_was_asked_for_runs() {
    within(LIMIT, || {
        let runtime = runtime();
        let task = runtime.spawn(async {});
        assert_eq!(runtime.as_raw_fd(), runtime.as_fd().as_raw_fd());
        assert!(is_readable(&runtime));
        runtime.turn(Duration::ZERO);
        assert!(task.is_finished());
        settle(&runtime);
        assert!(!is_readable(&runtime), "and a host sleeps when nothing is left to do");
    });
}

#[test]
fn a_turn_is_bounded_and_says_that_there_is_more() {
    within(LIMIT, || {
        let runtime = runtime();
        let (task, stop) = yields(&runtime);
        let turn = runtime.turn(LIMIT);
        assert!(turn.polls() > 0 && turn.has_more());
        assert!(is_readable(&runtime));
        assert!(runtime.next_deadline().unwrap() <= Instant::now());
        assert_eq!(turn.to_string(), format!("{} polls, and more to run", turn.polls()));
        stop.store(true, SeqCst);
        settle(&runtime);
        assert!(task.is_finished());
    });
}

/// However many tasks compute and yield, a turn ends after the run in which its time is over.
#[test]
fn a_turn_beside_tasks_that_compute_is_as_long_as_one_run() {
    within(LIMIT, || {
        let runtime = runtime();
        for _ in 0..10 {
            drop(runtime.spawn(async {
                loop {
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_millis(2) {}
                    yield_now().await;
                }
            }));
        }
        for _ in 0..20 {
            assert_eq!(runtime.turn(Duration::ZERO).polls(), 1);
        }
    });
}

/// A task that yields until it is told to stop, after one turn; from then on the descriptor tells.
fn yields(runtime: &Runtime) -> (JoinHandle<()>, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = stop.clone();
    let task = runtime.spawn(async move {
        while !is_over.load(SeqCst) {
            yield_now().await;
        }
    });
    let _ = runtime.as_fd();
    runtime.turn(Duration::ZERO);
    (task, stop)
}

#[test]
fn a_deadline_of_another_thread_is_told() {
    within(LIMIT, || {
        let runtime = runtime();
        drop(runtime.spawn(sleep(LIMIT * 60)));
        settle(&runtime);
        let first = runtime.next_deadline().unwrap();
        assert!(!is_readable(&runtime));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _inside = runtime.enter();
                let mut sooner = pin!(sleep(LIMIT));
                assert!(sooner.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                assert!(wait(&runtime, LIMIT), "the host sleeps too long");
                assert!(runtime.next_deadline().unwrap() < first);
            });
        });
    });
}

#[test]
fn a_turn_waits_for_work_but_not_for_longer_than_it_may() {
    within(LIMIT, || {
        let runtime = runtime();
        assert_eq!(runtime.turn(Duration::from_micros(100)).polls(), 0);
        let (send, receive) = oneshot::<()>();
        let task = runtime.spawn(receive);
        assert_eq!(runtime.turn(Duration::MAX).polls(), 1);
        let (polling, may_send) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                may_send.recv().unwrap();
                send.send(());
            });
            polling.send(()).unwrap();
            while !task.is_finished() {
                runtime.turn(Duration::MAX);
            }
        });
        let task = runtime.spawn(sleep(Duration::from_micros(200)));
        while !task.is_finished() {
            runtime.turn(Duration::MAX);
        }
    });
}

#[test]
fn a_job_that_ends_makes_it_readable() {
    within(LIMIT, || {
        let runtime = runtime();
        for _ in 0..50 {
            let task = runtime.spawn(async { mini::spawn_blocking(|| 3).await.unwrap() });
            drive(&runtime, &task);
            assert_eq!(runtime.block_on(task).unwrap(), 3);
        }
    });
}

#[test]
fn block_on_between_turns_leaves_the_host_awake() {
    within(LIMIT, || {
        let runtime = runtime();
        let (send, receive) = oneshot();
        let task = runtime.spawn(receive);
        settle(&runtime);
        runtime.block_on(yield_now());
        assert!(is_readable(&runtime), "what was announced is no longer");
        settle(&runtime);
        assert!(!is_readable(&runtime));
        thread::scope(|scope| scope.spawn(|| runtime.block_on(yield_now())).join().unwrap());
        thread::spawn(move || send.send(9));
        drive(&runtime, &task);
        assert_eq!(runtime.block_on(task).unwrap(), Some(9));
    });
}

#[test]
fn while_another_thread_is_in_block_on_a_turn_runs_nothing() {
    within(LIMIT, || {
        let runtime = runtime();
        beside_block_on(&runtime, async {}, || {
            let task = runtime.spawn(async {});
            assert_eq!(runtime.turn(Duration::ZERO).polls(), 0);
            assert_eq!(runtime.turn(Duration::from_millis(1)).polls(), 0);
            while !task.is_finished() {
                thread::yield_now(); // the other thread runs it
            }
        });
        let task = runtime.spawn(async {});
        drive(&runtime, &task);
    });
}

#[test]
fn what_another_thread_runs_is_not_due_for_the_host() {
    within(LIMIT, || {
        let runtime = runtime();
        let (task, stop) = yields(&runtime);
        assert!(runtime.turn(Duration::ZERO).has_more());
        stop.store(true, SeqCst);
        beside_block_on(&runtime, async { task.await.unwrap() }, || {
            assert!(!runtime.turn(Duration::ZERO).has_more());
            let due = runtime.next_deadline();
            assert!(due.is_none_or(|due| due > Instant::now()), "the host would spin: {due:?}");
        });
    });
}

#[test]
fn a_deadline_beside_a_busy_block_on_does_not_leave_it_readable() {
    within(LIMIT, || {
        let runtime = runtime();
        settle(&runtime);
        let due = Instant::now() + Duration::from_millis(5);
        let task = runtime.spawn(mini::time::sleep_until(due));
        beside_block_on(&runtime, async {}, || {
            let (busy, stop) = yields(&runtime); // the other thread waits for the deadline, and stops doing so
            while !task.is_finished() {
                thread::yield_now();
            }
            while is_readable(&runtime) {
                thread::yield_now(); // until the other thread looks
            }
            stop.store(true, SeqCst);
            while !busy.is_finished() {
                thread::yield_now();
            }
        });
    });
}

#[test]
fn what_a_block_on_has_left_is_work_for_the_next_turn() {
    within(LIMIT, || {
        let runtime = runtime();
        let ran = Arc::new(AtomicUsize::new(0));
        settle(&runtime);
        let (counted, mut left) = (ran.clone(), None);
        runtime.block_on(async {
            left = Some(mini::spawn(async move {
                counted.fetch_add(1, SeqCst);
                mini::task::yield_now().await;
            }));
        });
        let task = left.expect("just spawned");
        while !task.is_finished() {
            assert!(runtime.next_deadline().unwrap() <= Instant::now(), "it has run {} times", ran.load(SeqCst));
            runtime.turn(Duration::ZERO);
        }
        let task = runtime.spawn(async { (0..1000).for_each(|_| ()) });
        runtime.turn(Duration::ZERO);
        runtime.block_on(task).unwrap();
        assert_eq!(runtime.next_deadline(), None);
    });
}

#[test]
fn a_jump_of_time_is_work_for_the_next_turn_after_a_block_on_too() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let task = runtime.spawn(sleep(LIMIT * 10));
        runtime.turn(Duration::ZERO);
        assert!(runtime.next_deadline().is_some());
        runtime.block_on(async {});
        while !task.is_finished() {
            assert!(runtime.next_deadline().is_some());
            runtime.turn(Duration::ZERO);
        }
    });
}

#[test]
fn timers_that_another_thread_serves_are_not_the_hosts_until_it_leaves() {
    within(LIMIT, || {
        let runtime = runtime();
        settle(&runtime);
        let due = Instant::now() + LIMIT;
        let task = runtime.spawn(mini::time::sleep_until(due));
        settle(&runtime);
        assert_eq!(runtime.next_deadline(), Some(due));
        beside_block_on(&runtime, async {}, || assert_eq!(runtime.next_deadline(), None));
        assert!(wait(&runtime, LIMIT), "the host is told that the thread has left");
        settle(&runtime);
        assert_eq!(runtime.next_deadline(), Some(due));
        thread::scope(|scope| {
            let turn = scope.spawn(|| runtime.turn(Duration::from_millis(50)));
            while !turn.is_finished() {
                assert_eq!(runtime.next_deadline(), Some(due), "a turn of another thread leaves them to the host");
            }
        });
        drop(task);
        // The thread itself may ask.
        let told = runtime.block_on(async { runtime.next_deadline() });
        assert!(told.is_some_and(|told| told <= due), "{told:?}");
    });
}

#[test]
fn under_a_paused_clock_time_jumps() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let task = runtime.spawn(async {
            let begin = Instant::now();
            sleep(Duration::from_secs(3600)).await;
            mini::spawn_blocking(|| ()).await.unwrap();
            sleep(Duration::from_secs(3600)).await;
            begin.elapsed()
        });
        drive(&runtime, &task);
        assert_eq!(runtime.block_on(task).unwrap(), Duration::from_secs(7200));
    });
}

#[test]
fn a_task_that_waits_for_a_lull_gets_a_turn() {
    within(LIMIT, || {
        let runtime = runtime();
        let task = runtime.spawn(async {
            for _ in 0..3 {
                mini::task::idle().await;
            }
        });
        drive(&runtime, &task);
        settle(&runtime);
        assert!(!is_readable(&runtime));
    });
}

#[test]
fn tasks_end_with_the_runtime() {
    within(LIMIT, || {
        let runtime = runtime();
        let counts = Counts::new();
        let task = runtime.spawn(never(&counts));
        settle(&runtime);
        drop(runtime.spawn(never(&counts)));
        drop(runtime);
        assert_eq!((counts.polls(), counts.drops()), (1, 2));
        assert!(task.is_finished());
    });
}

#[test]
fn local_tasks_bind_the_turns_to_their_thread() {
    within(LIMIT, || {
        let runtime = runtime();
        let [local] = runtime.block_on(async { [mini::spawn_local(yield_now())] });
        thread::scope(|scope| {
            let there = scope.spawn(|| caught(|| runtime.turn(Duration::ZERO)));
            let message = there.join().unwrap().message;
            assert!(message.contains("call turn there"), "{message}");
        });
        drive(&runtime, &local);
        assert!(local.is_finished());
    });
}

#[test]
fn mistakes_are_told_where_they_are_made() {
    within(LIMIT, || {
        let several = multi_thread(2).build().unwrap();
        for wrong in [
            caught(|| several.turn(Duration::ZERO)),
            caught(|| several.next_deadline()),
            caught(|| several.as_fd().as_raw_fd()),
        ] {
            assert!(wrong.message.contains("only a current_thread one can be embedded"), "{}", wrong.message);
        }
        let runtime = runtime();
        let inside = caught(|| runtime.block_on(async { runtime.turn(Duration::ZERO) }));
        assert!(inside.message.starts_with("Runtime::turn inside a task"), "{}", inside.message);
        assert_eq!(inside.file, file!());
        runtime.block_on(until(|| true));
    });
}

#[test]
fn a_paused_clock_has_nothing_to_do_for_timers_that_never_end() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let task = runtime.spawn(sleep(Duration::MAX));
        assert_eq!(runtime.turn(Duration::ZERO).polls(), 1);
        assert!(!runtime.turn(Duration::ZERO).has_more());
        settle(&runtime);
        assert!(!wait(&runtime, Duration::ZERO) && !task.is_finished());
    });
}

/// A thread that waits for the place of another one, in `block_on` or `turn`, hears of it in its own way.
#[test]
fn an_unpark_of_the_caller_is_left_to_its_own_park() {
    within(LIMIT, || {
        let runtime = runtime();
        beside_block_on(&runtime, async {}, || {
            let (send, receive) = oneshot();
            let task = runtime.spawn(receive);
            let sending = thread::spawn(move || send.send(7));
            thread::current().unpark();
            assert_eq!(runtime.block_on(task).unwrap(), Some(7));
            assert_eq!(runtime.turn(Duration::from_millis(1)).polls(), 0);
            thread::park();
            sending.join().unwrap();
        });
    });
}
