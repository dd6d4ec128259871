//! The example `library`, as a library's own integration tests: each in a runtime of its own.

use std::io::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use mini::time::sleep;
use mini_tests::{LIMIT, caught, within};

#[path = "../library.rs"]
#[allow(dead_code)]
mod library;

use library::Latest;

/// A question whose answers are numbered from 1 on; each third one fails.
fn numbers() -> impl FnMut() -> std::future::Ready<Result<u32>> + Send + 'static {
    let mut asked = 0;
    move || {
        asked += 1;
        std::future::ready(if asked % 3 == 0 { Err(Error::other("no answer")) } else { Ok(asked) })
    }
}

#[mini::test(start_paused = true)]
async fn the_last_answer_is_kept() {
    let latest = Latest::start(Duration::from_secs(60), numbers());
    assert_eq!(latest.get(), None);
    for (minutes, expected) in [(0, 1), (1, 2), (2, 2), (3, 4)] {
        sleep(Duration::from_secs(if minutes == 0 { 30 } else { 60 })).await;
        assert_eq!(latest.get(), Some(expected), "after {minutes} minutes and a half");
    }
    latest.stop().await;
}

#[test]
fn it_runs_wherever_its_caller_is() {
    within(LIMIT, || {
        let found = mini::block_on(async {
            let latest = Latest::start(Duration::from_millis(1), numbers());
            while latest.get().is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            latest.get()
        });
        assert!(found.is_some());
    });
}

#[mini::test(start_paused = true)]
async fn when_it_has_stopped_the_question_is_gone() {
    let held = Arc::new(AtomicU32::new(0));
    let inside = held.clone();
    let latest = Latest::start(Duration::from_secs(1), move || {
        inside.fetch_add(1, SeqCst);
        std::future::pending::<Result<()>>()
    });
    sleep(Duration::from_secs(10)).await;
    assert_eq!(held.load(SeqCst), 1, "one question at a time");
    latest.stop().await;
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn outside_of_a_runtime_it_says_what_to_do() {
    let seen = caught(|| drop(Latest::start(Duration::from_secs(1), numbers())));
    assert!(seen.message.contains("mini::spawn") || seen.message.contains("runtime"), "{}", seen.message);
}
