//! Shields: what is inside ends although its caller is gone, within its grace, and shutdowns wait for it.

use std::future::pending;
use std::sync::{Arc, mpsc};

use mini::task::{Group, Reason, shield, yield_now};
use mini::time::{Duration, Instant, pause, sleep, timeout};
use mini_tests::net_support::in_each_runtime;
use mini_tests::{Counts, LIMIT, Token, caught, in_child, line_of, never, oneshot, text_of, until, within};

const SECOND: Duration = Duration::from_secs(1);

fn paused<F: Future<Output = ()>>(body: impl FnOnce() -> F + Send + 'static) {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            body().await;
        });
    });
}

/// Takes `time`, and counts that it was dropped.
fn work(counts: &Arc<Counts>, time: Duration) -> impl Future<Output = u32> + Send + use<> {
    let token = Token::new(counts);
    async move {
        let _token = token;
        sleep(time).await;
        7
    }
}

#[test]
fn a_shield_gives_the_output_and_passes_a_panic_through() {
    in_each_runtime(|| async {
        let (send, receive) = oneshot::<String>();
        let shielded = shield(SECOND, receive);
        send.send("done".to_owned());
        assert_eq!(shielded.await.unwrap(), "done");
        let panics = mini::spawn(shield(SECOND, async {
            yield_now().await;
            if true {
                panic!("inside");
            }
        }));
        assert_eq!(text_of(&*panics.await.unwrap_err().into_panic()), "inside");
    });
}

#[test]
fn it_begins_without_being_polled_and_goes_on_without_its_caller() {
    paused(|| async {
        let counts = Counts::new();
        drop(shield(3 * SECOND, work(&counts, 2 * SECOND)));
        let start = Instant::now();
        while counts.drops() == 0 {
            sleep(SECOND / 10).await;
        }
        assert_eq!(start.elapsed().as_secs(), 2);
        assert!(timeout(SECOND, shield(9 * SECOND, work(&counts, 3 * SECOND))).await.is_err());
        assert_eq!(counts.drops(), 1);
        sleep(3 * SECOND).await;
        assert_eq!(counts.drops(), 2);
    });
}

#[test]
fn after_the_grace_it_is_dropped_and_its_lines_are_told() {
    let Some(stderr) = in_child("after_the_grace_it_is_dropped_and_its_lines_are_told", || {
        paused(|| async {
            let counts = Counts::new();
            let group = Group::new().grace(99 * SECOND);
            let seen = counts.clone();
            let caller = group.spawn(async move {
                let token = Token::new(&seen);
                let inside = async move {
                    let _token = token;
                    sleep(50 * SECOND).await; // waits here
                };
                let shielded = shield(2 * SECOND, inside); // shielded here
                shielded.await;
            });
            yield_now().await;
            sleep(10 * SECOND).await;
            assert_eq!(counts.drops(), 0, "the grace has not begun");
            let start = Instant::now();
            caller.abort();
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!((start.elapsed().as_secs(), counts.drops()), (2, 1));
            assert_eq!((report.failures(), report.cancelled(), report.aborted().len()), (1, 1, 0), "{report}");
            let failed = &report.failed()[0];
            assert_eq!((failed.name(), failed.location().line()), (Some("shield"), line("// shielded here")));
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 1, "{stderr}");
    let lines = (line("// shielded here"), line("// waits here"));
    assert!(
        said[0].contains(&format!("shielded at tests/tests/groups/shield.rs:{}:32 has not ended", lines.0)),
        "{stderr}"
    );
    assert!(said[0].contains("within its grace of 2s"), "{stderr}");
    assert!(said[0].ends_with(&format!("Timer at tests/tests/groups/shield.rs:{}:21", lines.1)), "{stderr}");
}

/// However the caller goes: before the end, after it, or after it has read the error.
#[test]
fn an_error_that_the_caller_does_not_read_is_told_and_in_the_report() {
    let Some(stderr) = in_child("an_error_that_the_caller_does_not_read_is_told_and_in_the_report", || {
        paused(|| async {
            for (name, waits, reads) in [("early", 1, false), ("late", 3, false), ("read", 3, true)] {
                let group = Group::new();
                group.spawn(async move {
                    let shielded = shield(9 * SECOND, async move {
                        sleep(2 * SECOND).await;
                        Err::<(), _>(std::io::Error::other(name))
                    });
                    sleep(waits * SECOND).await;
                    if reads {
                        assert_eq!(shielded.await.unwrap_err().to_string(), name);
                    }
                });
                sleep(4 * SECOND).await;
                let report = group.shutdown(Reason::Requested).await;
                assert_eq!((report.failures(), report.finished()), (1, 1), "{report}");
            }
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 2, "{stderr}");
    for (said, name) in said.iter().zip(["early", "late"]) {
        assert!(said.ends_with(&format!("ended with an error, and no task awaits it: {name}")), "{stderr}");
    }
}

fn line(mark: &str) -> u32 {
    line_of(include_str!("shield.rs"), mark)
}

#[test]
fn a_shutdown_waits_for_what_its_tasks_have_shielded() {
    paused(|| async {
        let (counts, outer) = (Counts::new(), Group::new().grace(9 * SECOND));
        let group = outer.child();
        let (inside, seen) = (group.token(), counts.clone());
        let caller = group.spawn_any(async move { inside.run(shield(5 * SECOND, work(&seen, 3 * SECOND))).await });
        yield_now().await;
        let start = Instant::now();
        let report = outer.shutdown(Reason::Requested).await;
        assert!(caller.await.unwrap().is_err(), "it went at once");
        assert_eq!((start.elapsed().as_secs(), counts.drops()), (3, 1));
        assert_eq!((report.finished(), report.is_clean()), (2, true), "{report}");
    });
}

#[test]
fn the_grace_of_a_shutdown_ends_shields_too() {
    paused(|| async {
        let (counts, group) = (Counts::new(), Group::new().grace(2 * SECOND));
        let seen = counts.clone();
        group.spawn_any(async move { shield(99 * SECOND, work(&seen, 50 * SECOND)).await });
        yield_now().await;
        let start = Instant::now();
        let report = group.shutdown(Reason::Requested).await;
        assert_eq!((start.elapsed().as_secs(), counts.drops(), report.aborted().len()), (2, 1, 2));
        assert_eq!(report.aborted()[1].name(), Some("shield"));
    });
}

#[test]
fn what_is_shielded_in_a_destructor_of_an_aborted_task_belongs_to_the_group_above() {
    struct LastWords(Arc<Counts>);
    impl Drop for LastWords {
        fn drop(&mut self) {
            drop(shield(SECOND, work(&self.0, SECOND / 2)));
        }
    }
    paused(|| async {
        let (counts, outer) = (Counts::new(), Group::new());
        let group = outer.child().grace(Duration::ZERO);
        let words = LastWords(counts.clone());
        group.spawn(async move {
            let _words = words;
            pending::<()>().await;
        });
        yield_now().await;
        assert_eq!(group.shutdown(Reason::Requested).await.aborted().len(), 1);
        assert_eq!((outer.len(), counts.drops()), (1, 0));
        assert!(outer.shutdown(Reason::Requested).await.is_clean());
        assert_eq!((outer.len(), counts.drops()), (0, 1));
    });
}

#[test]
fn an_error_that_nobody_awaits_any_more_is_told() {
    let Some(stderr) = in_child("an_error_that_nobody_awaits_any_more_is_told", || {
        mini::block_on(async {
            let (ended, has_ended) = mpsc::channel::<()>();
            drop(shield(SECOND, async move {
                let _ended = ended;
                std::io::Result::<()>::Err(std::io::Error::other("full"))
            }));
            until(|| has_ended.try_recv() == Err(mpsc::TryRecvError::Disconnected)).await;
            let shielded = shield(SECOND, async { std::io::Result::<()>::Err(std::io::Error::other("seen")) });
            assert!(shielded.await.is_err());
        });
    }) else {
        return;
    };
    let said: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].ends_with("ended with an error, and no task awaits it: full"), "{stderr}");
}

#[test]
fn a_shield_whose_task_was_aborted_says_so() {
    paused(|| async {
        let (counts, group) = (Counts::new(), Group::new().grace(Duration::ZERO));
        let (send, receive) = oneshot();
        let seen = counts.clone();
        group.spawn(async move { send.send(shield(SECOND, never(&seen))) });
        let shielded = receive.await.unwrap();
        group.shutdown(Reason::Requested).await;
        let error = mini::spawn(shielded).await.unwrap_err();
        let text = text_of(&*error.into_panic()).to_owned();
        assert!(text.starts_with("the task of an awaited shield is gone: task "), "{text}");
    });
}

#[test]
fn a_shield_needs_a_runtime() {
    let panicked = caught(|| drop(shield(SECOND, async {})));
    assert!(panicked.message.contains("mini::task::shield") && panicked.file.ends_with("shield.rs"), "{panicked:?}");
}
