//! Groups of tasks: a shutdown ends all of them in time, says what became of each, and misses none.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use mini::runtime::Builder;
use mini::task::{Group, Reason, yield_now};
use mini::time::{Duration, Instant, pause, sleep};
use mini_tests::net_support::in_each_runtime;
use mini_tests::{
    Counts, LIMIT, Token, caught, counted, in_child, line_of, multi_thread, never, on_each_flavour, text_of, until,
    within,
};

mod errors;
mod jobs;
mod many;

const SECOND: Duration = Duration::from_secs(1);

fn line(mark: &str) -> u32 {
    line_of(include_str!("group.rs"), mark)
}

/// Runs `body` on one worker with a paused clock.
fn paused<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            body().await;
        });
    });
}

/// Ends at the cancellation of `group`, after `delay`.
fn obedient(group: &Group, delay: Duration) -> impl Future<Output = ()> + Send + use<> {
    let token = group.token();
    async move {
        token.cancelled().await;
        sleep(delay).await;
    }
}

#[test]
fn a_shutdown_waits_for_those_that_end_and_aborts_the_rest_after_the_grace() {
    paused(|| async {
        let group = Group::new().name("all").grace(5 * SECOND);
        let counts = Counts::new();
        for delay in [0, 1, 4] {
            group.spawn(obedient(&group, delay * SECOND));
        }
        let deaf = Token::new(&counts);
        group.spawn_named("deaf", async move {
            let _deaf = deaf;
            sleep(99 * SECOND).await; // deaf waits here
        });
        group.spawn(never(&counts)); // never waits here
        yield_now().await;
        let start = Instant::now();
        let report = group.shutdown(Reason::Deadline).await; // ends here
        assert_eq!(start.elapsed().as_secs(), 5);
        assert_eq!((counts.drops(), group.len()), (2, 0), "they are gone");
        assert_eq!((report.finished(), report.aborted().len(), report.running().len()), (3, 2, 0));
        let why = report.why().unwrap();
        assert_eq!((why.reason(), why.location().line()), (Reason::Deadline, line("// ends here")));
        let text = report.to_string();
        let expected = [
            format!("shutdown after 5.0s, deadline passed at tests/tests/groups/group.rs:{}:28", line("// ends here")),
            ": 3 finished, 2 aborted\n".to_owned(),
            "  aborted  \"deaf\" of group \"all\" spawned at tests/tests/groups/group.rs:".to_owned(),
            format!(", waiting for Timer at tests/tests/groups/group.rs:{}:13", line("// deaf waits here")),
            format!(
                "  aborted  a task of group \"all\" spawned at tests/tests/groups/group.rs:{}:15",
                line("// never waits here")
            ),
        ];
        for part in expected {
            assert!(text.contains(&part), "{part:?} is missing in {text}");
        }
        assert!(!report.is_clean());
    });
}

#[test]
fn a_shutdown_ends_with_the_last_task_and_at_once_without_any() {
    paused(|| async {
        let group = Group::new();
        group.spawn(obedient(&group, 2 * SECOND));
        let start = Instant::now();
        assert!(group.shutdown(Reason::Requested).await.is_clean());
        assert_eq!(start.elapsed().as_secs(), 2);
        assert!(Group::new().shutdown(Reason::Requested).await.is_clean());
        assert_eq!(start.elapsed().as_secs(), 2);
    });
}

#[test]
fn a_shutdown_covers_what_is_below_with_its_own_grace() {
    paused(|| async {
        let top = Group::new().name("top").grace(3 * SECOND);
        let left = top.child().name("left").grace(SECOND);
        let right = top.child().grace(99 * SECOND);
        let below = left.child().name("below");
        below.spawn(obedient(&below, 2 * SECOND));
        left.spawn_named("deaf", pending::<()>());
        right.spawn(async { Err::<(), _>("torn") });
        assert_eq!((top.len(), left.len(), below.len(), right.len()), (3, 2, 1, 1));
        let start = Instant::now();
        let report = top.shutdown(Reason::Signal).await;
        assert_eq!(start.elapsed().as_secs(), 3);
        assert_eq!((report.finished(), report.failures(), report.aborted().len()), (1, 1, 1));
        assert_eq!((report.aborted()[0].group(), report.failed()[0].error()), (Some("left"), "torn"));
        assert_eq!(below.token().why(), report.why());
        assert!(below.spawn(async {}).await.unwrap_err().is_cancelled(), "closed too");
        assert!(right.child().spawn(async {}).await.unwrap_err().is_cancelled(), "and what comes below");
    });
}

#[test]
fn a_subgroup_ends_alone_and_its_past_is_kept_by_its_parent() {
    paused(|| async {
        let top = Group::new();
        let session = top.child().grace(SECOND);
        session.spawn(async {});
        session.spawn(async { Err::<(), _>("lost") });
        session.spawn(pending::<()>());
        let other = top.spawn(pending::<()>());
        let report = session.shutdown(Reason::Requested).await;
        assert_eq!((report.finished(), report.failures(), report.aborted().len()), (1, 1, 1));
        assert!(!top.token().is_cancelled() && !other.is_finished());
        assert!(format!("{top:?}").contains("subgroups: 1"), "{top:?}");
        drop(session);
        assert!(format!("{top:?}").contains("subgroups: 0"), "{top:?}");
        other.abort();
        let report = top.shutdown(Reason::Requested).await;
        // What was aborted then has been reported then.
        let counts = (report.finished(), report.failures(), report.aborted().len(), report.cancelled());
        assert_eq!(counts, (1, 1, 0, 2), "{report}");
    });
}

#[test]
fn failures_and_panics_are_told_with_their_texts() {
    in_each_runtime(|| async {
        struct Odd;
        let group = Group::new();
        let failed = group.spawn_named("disk", async { std::io::Result::<()>::Err(std::io::Error::other("full")) });
        let panicked = group.spawn(async {
            yield_now().await;
            if true {
                panic!("out of luck");
            }
        });
        let odd = group.spawn_any(async { Result::<u8, Odd>::Err(Odd) });
        group.spawn_any(async { 7 });
        group.spawn_blocking(|| "7".parse::<u8>().map(drop));
        assert!(failed.await.unwrap().is_err() && odd.await.unwrap().is_err());
        assert_eq!(text_of(&*panicked.await.unwrap_err().into_panic()), "out of luck");
        group.wait().await;
        let report = group.shutdown(Reason::Requested).await;
        assert_eq!((report.finished(), report.failures(), report.is_clean()), (2, 3, false));
        let mut failed: Vec<_> =
            report.failed().iter().map(|task| (task.error().to_owned(), task.is_panic())).collect();
        failed.sort();
        assert_eq!((&failed[1], &failed[2]), (&("full".to_owned(), false), &("out of luck".to_owned(), true)));
        assert!(failed[0].0.starts_with("an `Err` of a core::result::Result<u8, "), "{failed:?}");
        assert!(
            report.to_string().contains("\n  failed   \"disk\" spawned at tests/tests/groups/group.rs:"),
            "{report}"
        );
        assert!(report.to_string().contains(" panicked: out of luck"), "{report}");
    });
}

#[test]
fn what_never_returns_can_be_spawned() {
    paused(|| async {
        let group = Group::new().grace(SECOND);
        group.spawn(async {
            loop {
                sleep(SECOND).await;
            }
        });
        assert_eq!(group.shutdown(Reason::Requested).await.aborted().len(), 1);
    });
}

/// Blocks its thread in `poll` until the sender is dropped.
struct Blocks(mpsc::Receiver<()>, mpsc::Sender<()>);

impl Future for Blocks {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let _ = self.1.send(());
        let _ = self.0.recv();
        Poll::Pending
    }
}

#[test]
fn a_task_that_blocks_is_named_and_not_waited_for() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (quit, wait) = mpsc::channel();
        let (begins, has_begun) = mpsc::channel();
        // A task, which can leave the thread that is stuck.
        let body = runtime.spawn(async move {
            let group = Group::new().name("all").grace(Duration::ZERO);
            group.spawn_named("stuck", Blocks(wait, begins)); // stuck here
            mini::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!((report.aborted().len(), report.running().len()), (0, 1));
            assert_eq!(report.running()[0].location().line(), line("// stuck here"));
            assert!(report.to_string().contains("\n  running  \"stuck\" of group \"all\" spawned at"), "{report}");
            drop(quit);
            group.wait().await; // it goes when it can
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!((report.aborted().len(), report.running().len()), (1, 0));
        });
        runtime.block_on(body).unwrap();
    });
}

#[test]
fn a_shutdown_that_is_dropped_half_way_goes_on_with_the_next_call() {
    paused(|| async {
        let group = Group::new().grace(6 * SECOND);
        group.spawn(pending::<()>());
        let start = Instant::now();
        let first = mini::time::timeout(2 * SECOND, group.shutdown(Reason::Requested)).await;
        assert!(first.is_err() && group.len() == 1);
        sleep(2 * SECOND).await;
        let both = [group.shutdown(Reason::Signal), group.shutdown(Reason::Deadline)].map(mini::spawn);
        for report in both {
            let report = report.await.unwrap();
            assert_eq!((report.aborted().len(), report.why().unwrap().reason()), (1, Reason::Requested));
        }
        assert_eq!(start.elapsed().as_secs(), 6);
        sleep(SECOND).await;
        assert_eq!(group.shutdown(Reason::Requested).await.aborted().len(), 1, "and after the end");
    });
}

#[test]
fn a_task_may_shut_down_its_own_group() {
    paused(|| async {
        let group = Group::new().grace(2 * SECOND);
        let below = group.child();
        let inside = group.clone();
        let caller = below.spawn_any(async move {
            let report = inside.shutdown(Reason::Requested).await;
            (report, inside.len())
        });
        group.spawn(pending::<()>());
        let start = Instant::now();
        let (report, left) = caller.await.unwrap();
        assert_eq!((report.aborted().len(), report.finished(), left), (1, 0, 1), "{report}");
        assert_eq!(start.elapsed().as_secs(), 2);
        assert!(group.is_empty());
    });
}

#[test]
fn a_task_that_shuts_down_its_own_group_and_stays_is_aborted_by_another_shutdown() {
    paused(|| async {
        for wait in [Duration::ZERO, 10 * SECOND] {
            let group = Group::new().grace(SECOND);
            let inside = group.clone();
            group.spawn(async move {
                drop(inside.shutdown(Reason::Requested).await);
                pending::<()>().await;
            });
            group.spawn(pending::<()>());
            yield_now().await; // its timer comes first
            sleep(wait).await;
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!((report.aborted().len(), report.running().len(), group.len()), (2, 0, 0), "{report}");
        }
    });
}

#[test]
fn a_group_whose_end_another_runtime_was_to_see_to_is_aborted_when_that_ends() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let counts = Counts::new();
    let group = Group::new().grace(3600 * SECOND);
    runtime.block_on(async { drop(group.spawn(never(&counts))) });
    mini::block_on(async move { drop(group) });
    runtime.block_on(until(|| counts.drops() == 1));
}

#[test]
fn a_task_that_could_not_be_spawned_leaves_no_place_behind() {
    within(LIMIT, || {
        mini::block_on(async {
            let group = Group::new();
            let inside = group.clone();
            let call = move || inside.spawn_local(async {});
            assert!(mini::task::spawn_blocking(call).await.is_err_and(|error| error.is_panic()));
            let token = group.token();
            drop(group);
            assert!(!token.is_cancelled(), "nothing was left behind");
        });
    });
}

#[test]
fn tasks_that_both_shut_down_their_group_do_not_wait_for_ever() {
    paused(|| async {
        let group = Group::new().grace(2 * SECOND);
        for _ in 0..2 {
            let inside = group.clone();
            group.spawn(async move { drop(inside.shutdown(Reason::Requested).await) });
        }
        group.wait().await;
        let report = group.shutdown(Reason::Requested).await;
        assert_eq!((report.finished(), report.aborted().len()), (1, 1), "{report}");
    });
}

#[test]
fn a_task_that_waits_for_its_group_does_not_wait_for_itself() {
    paused(|| async {
        let group = Group::new();
        let inside = group.clone();
        let waits = group.spawn(async move { inside.wait().await });
        let other = group.spawn(sleep(SECOND));
        waits.await.unwrap();
        assert!(other.is_finished() && !group.token().is_cancelled());
    });
}

#[test]
fn tasks_come_during_the_grace_and_are_refused_after_it() {
    paused(|| async {
        let group = Group::new();
        let (inside, counts) = (group.clone(), Counts::new());
        let seen = counts.clone();
        group.spawn(async move {
            inside.token().cancelled().await;
            let late = inside.token();
            inside.spawn(async move {
                assert!(late.is_cancelled());
                sleep(SECOND).await;
                drop(Token::new(&seen));
            });
        });
        assert!(group.shutdown(Reason::Requested).await.is_clean());
        assert_eq!(counts.drops(), 1, "it was waited for");

        let refused = group.spawn(counted(&counts, |_| Poll::Ready(())));
        assert_eq!((counts.polls(), counts.drops()), (0, 2), "dropped by the call");
        assert!(refused.await.unwrap_err().is_cancelled());
        let job = group.spawn_blocking(|| panic!("must not run"));
        assert!(job.await.unwrap_err().is_cancelled());
        assert_eq!(group.shutdown(Reason::Requested).await.refused(), 2);
    });
}

#[test]
fn a_refusal_is_said_once_with_the_line_of_the_spawn() {
    let Some(stderr) = in_child("a_refusal_is_said_once_with_the_line_of_the_spawn", || {
        mini::block_on(async {
            let group = Group::new().name("web");
            group.shutdown(Reason::Requested).await;
            drop(group.spawn(async {})); // refused here
            drop(group.spawn(async {}));
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.contains("has shut down and does not run")).collect();
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].starts_with("mini: the group \"web\" made at tests/tests/groups/group.rs:"), "{stderr}");
    assert!(said[0].contains(&format!("group.rs:{}:", line("// refused here"))), "{stderr}");
}

#[test]
fn the_last_handle_ends_the_tasks_and_says_so() {
    let Some(stderr) = in_child("the_last_handle_ends_the_tasks_and_says_so", || {
        paused(|| async {
            let counts = Counts::new();
            let group = Group::new().name("lost").grace(3 * SECOND); // made here
            let token = group.token();
            group.spawn(obedient(&group, SECOND));
            group.spawn_named("deaf", never(&counts));
            let below = group.child();
            drop(group);
            assert!(!token.is_cancelled(), "there is a subgroup");
            let start = Instant::now();
            drop(below);
            assert_eq!(token.reason(), Some(Reason::ParentGone));
            until(|| counts.polls() == 1).await;
            sleep(2 * SECOND).await;
            assert_eq!(counts.drops(), 0);
            while counts.drops() == 0 {
                sleep(SECOND / 4).await;
            }
            assert_eq!(start.elapsed().as_secs(), 3);
            until(|| mini::runtime::Handle::current().metrics().num_alive_tasks() == 0).await;
            drop(Group::new()); // of which nothing is said
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 2, "{stderr}");
    let made = line("// made here");
    assert!(said[0].contains(&format!("\"lost\" made at tests/tests/groups/group.rs:{made}:25")), "{stderr}");
    assert!(said[0].ends_with("was dropped with 2 tasks alive, which are cancelled"), "{stderr}");
    assert!(said[1].contains("parent gone") && said[1].contains("1 finished, 1 aborted"), "{stderr}");
}

/// As the task of an accept loop has one; it may also go on for a while.
#[test]
fn a_last_handle_that_goes_with_the_last_task_is_no_mistake() {
    let Some(stderr) = in_child("a_last_handle_that_goes_with_the_last_task_is_no_mistake", || {
        paused(|| async {
            let group = Group::new();
            let (kept, token) = (group.clone(), group.token());
            let task = group.spawn(async move {
                let _kept = kept;
                sleep(SECOND).await;
            });
            drop(group);
            task.await.unwrap();
            assert!(!token.is_cancelled());

            let group = Group::new();
            let kept = group.clone();
            let task = group.spawn(async move {
                let _kept = kept;
                pending::<()>().await;
            });
            drop(group);
            yield_now().await;
            task.cancel().await.unwrap_err();

            let group = Group::new().name("goes on");
            let (kept, token) = (group.clone(), group.token());
            let task = group.spawn(async move {
                drop(kept);
                assert_eq!(token.cancelled().await.reason(), Reason::ParentGone);
            });
            drop(group);
            task.await.unwrap();
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].contains("goes on") && said[0].ends_with("with 1 task alive, which is cancelled"), "{stderr}");
}

#[test]
fn outside_of_a_runtime_the_last_handle_aborts_at_once_and_an_ending_runtime_says_nothing() {
    let name = "outside_of_a_runtime_the_last_handle_aborts_at_once_and_an_ending_runtime_says_nothing";
    let Some(stderr) = in_child(name, || {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let counts = Counts::new();
        let group = Group::new();
        runtime.block_on(async { drop(group.spawn(never(&counts))) });
        drop(group);
        runtime.block_on(until(|| counts.drops() == 1));
        eprintln!("mini: --");
        let group = Group::new();
        runtime.block_on(async {
            let inside = group.child();
            inside.spawn(never(&counts));
            mini::spawn(async move {
                let _inside = inside;
                pending::<()>().await;
            });
            yield_now().await;
        });
        drop(runtime);
        assert_eq!(counts.drops(), 2);
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 2, "{stderr}");
    assert!(said[0].contains("with 1 task alive") && said[1] == "mini: --", "{stderr}");
}

#[test]
fn a_shutdown_that_nobody_awaits_any_more_is_finished_when_the_last_handle_goes() {
    paused(|| async {
        let counts = Counts::new();
        let group = Group::new().grace(3 * SECOND);
        group.spawn(never(&counts));
        drop(group.shutdown(Reason::Requested));
        drop(group);
        sleep(2 * SECOND).await;
        assert_eq!(counts.drops(), 0);
        sleep(2 * SECOND).await;
        assert_eq!(counts.drops(), 1);
    });
}

#[test]
fn a_group_needs_a_runtime_to_spawn() {
    let group = Group::new();
    let panicked = caught(|| group.spawn(async {}));
    assert!(panicked.message.contains("Group::spawn"), "{}", panicked.message);
    assert!(panicked.file.ends_with("group.rs"), "{}", panicked.file);
    let panicked = caught(|| group.spawn_local(async {}));
    assert!(panicked.message.contains("Group::spawn_local"), "{}", panicked.message);
    assert!(group.is_empty());
    let mut wait = pin!(group.wait());
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn a_wait_leaves_no_waker_behind() {
    paused(|| async {
        let (group, counts) = (Group::new().grace(Duration::ZERO), Counts::new());
        group.spawn(pending::<()>());
        let waker = Waker::from(counts.clone());
        let mut wait = Box::pin(group.wait());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop((wait, waker));
        assert_eq!(Arc::strong_count(&counts), 1);
        group.shutdown(Reason::Requested).await;
        assert_eq!(counts.wakes(), 0);
    });
}

#[test]
fn a_subgroup_whose_last_handle_goes_with_an_aborted_task_is_in_the_report() {
    within(LIMIT, || {
        let runtime = multi_thread(3).build().unwrap();
        for _ in 0..2000 {
            let counts = Counts::new();
            let top = Group::new().grace(Duration::ZERO);
            let begin = || {
                let below = top.child();
                below.spawn(never(&counts));
                let body = never(&counts);
                top.spawn(async move {
                    body.await;
                    drop(below);
                });
            };
            runtime.block_on(async { begin() });
            // By another runtime: it is woken when the last task goes, and the group may be on its way.
            let report = mini::block_on(top.shutdown(Reason::Requested));
            assert_eq!((report.aborted().len(), report.running().len()), (2, 0), "{report}");
        }
    });
}

#[test]
fn a_report_that_was_given_is_not_printed_when_the_group_goes() {
    let name = "a_report_that_was_given_is_not_printed_when_the_group_goes";
    let child = in_child(name, || {
        mini::block_on(async {
            let group = Group::new().grace(Duration::ZERO);
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let (begun, has_begun) = mini::sync::oneshot::channel();
            let job = group.spawn_blocking(move || {
                begun.send(()).unwrap();
                let _ = ended.recv();
            });
            has_begun.await.unwrap();
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!(report.running().len(), 1);
            drop(group);
            mini::task::yield_now().await;
            drop(end);
            job.await.unwrap();
        });
    });
    if let Some(stderr) = child {
        assert!(!stderr.contains("mini: "), "{stderr}");
    }
}

#[test]
fn a_task_can_read_the_deadline_under_which_it_was_spawned() {
    mini::block_on(async {
        mini::time::pause();
        let (group, second) = (Group::new(), Duration::from_secs(1));
        let limited = mini::time::deadline(mini::time::Instant::now() + second, async {
            group.spawn_any(async { mini::time::remaining() }).await.unwrap()
        });
        assert_eq!(limited.await, Ok(Some(second)));
        assert_eq!(group.spawn_any(async { mini::time::remaining() }).await.unwrap(), None);
        group.shutdown(Reason::Requested).await;
    });
}

#[test]
fn local_tasks_belong_to_the_group_and_end_with_it() {
    on_each_flavour(|builder| {
        builder.build().expect("a runtime").block_on(async {
            let (group, count) = (Group::new().grace(Duration::ZERO), Rc::new(Cell::new(0)));
            let (seen, counts) = (count.clone(), Counts::new());
            let counted = group.spawn_local(async move { seen.set(seen.get() + 1) });
            let (held, deaf) = (count.clone(), never(&counts));
            let deaf = group.spawn_local(async move {
                let _held = held;
                deaf.await; // the local one waits here
            });
            counted.await.unwrap();
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!((report.finished(), report.aborted().len(), count.get()), (1, 1, 1));
            assert!(deaf.await.unwrap_err().is_cancelled());
            assert_eq!((counts.drops(), Rc::strong_count(&count)), (1, 1));

            let (late, held) = (Counts::new(), count.clone());
            let (future, refused) = (never(&late), late.clone());
            let handle = group.spawn_local(async move {
                let _held = held;
                future.await;
            });
            assert_eq!((refused.drops(), Rc::strong_count(&count)), (1, 1), "dropped in the call");
            assert!(handle.await.unwrap_err().is_cancelled());
            assert_eq!(group.shutdown(Reason::Requested).await.refused(), 1);
        });
    });
}
