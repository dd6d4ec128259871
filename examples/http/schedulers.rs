//! What event loops have schedulers for: something later, something now and then, something when there is nothing else
//! to do, and something with a result that something else waits for.
//!
//! Here each is a task that awaits. To cancel one is to abort its task.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mini::task::{JoinHandle, idle, yield_now};
use mini::time::{Instant, MissedTickBehavior, interval, sleep};

/// Calls `f` once, after `delay`.
fn once(delay: Duration, f: impl FnOnce() + 'static) -> JoinHandle<()> {
    mini::spawn_local(async move {
        sleep(delay).await;
        f();
    })
}

/// Calls `f` at once, and then every `period`; late calls are left out, and not made up for.
fn periodic(period: Duration, mut f: impl FnMut() + 'static) -> JoinHandle<()> {
    mini::spawn_local(async move {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            f();
        }
    })
}

/// Calls `f` each time that nothing else is ready, until it returns `false`.
fn when_idle(mut f: impl FnMut() -> bool + 'static) -> JoinHandle<()> {
    mini::spawn_local(async move {
        loop {
            idle().await;
            if !f() {
                break;
            }
        }
    })
}

/// A value that comes later, and what is done with it. Errors skip the steps between, and go to the task that awaits
/// the end.
async fn chained(text: &'static str) -> Result<u32, std::num::ParseIntError> {
    let deferred: JoinHandle<String> = mini::spawn(async move {
        sleep(Duration::from_millis(1)).await;
        text.to_owned()
    });
    let number: u32 = deferred.await.expect("it neither panics nor is cancelled").parse()?; // then
    let doubled = mini::spawn_blocking(move || number * 2); // then, in a thread
    Ok(doubled.await.expect("it does not panic") + 1) // then
}

/// Runs one of each, and prints when they are called.
pub(crate) async fn show() -> io::Result<()> {
    let begin = Instant::now();
    let log = Rc::new(RefCell::new(Vec::new()));
    let note = |what: &'static str| {
        let log = log.clone();
        move || {
            println!("  {:>6.1} ms  {what}", begin.elapsed().as_secs_f64() * 1000.0);
            log.borrow_mut().push(what);
        }
    };
    println!("schedulers:");
    let late = once(Duration::from_millis(35), note("once, after 35 ms"));
    let never = once(Duration::from_secs(3600), note("once, after an hour"));
    let ticks = periodic(Duration::from_millis(10), note("every 10 ms"));
    let mut left = 3;
    let note_idle = note("idle");
    let lazy = when_idle(move || {
        note_idle();
        left -= 1;
        left > 0
    });
    let note_busy = note("busy");
    let busy = mini::spawn_local(async move {
        for _ in 0..3 {
            note_busy();
            yield_now().await;
        }
    });
    busy.await?;
    lazy.await?;
    late.await?;
    ticks.abort();
    never.abort(); // an event that is cancelled
    assert!(ticks.await.is_err_and(|error| error.is_cancelled()));
    assert!(never.await.is_err_and(|error| error.is_cancelled()));

    let good = chained("20").await;
    let bad = chained("twenty").await;
    println!("  a chain from \"20\" ends with {good:?}, one from \"twenty\" with {bad:?}");
    assert!(good == Ok(41) && bad.is_err());

    let log = log.borrow();
    let count = |what| log.iter().filter(|&&entry| entry == what).count();
    let place = |what| log.iter().position(|&entry| entry == what);
    assert!(count("busy") == 3 && count("idle") == 3 && place("idle") > log.iter().rposition(|&entry| entry == "busy"));
    assert!(count("once, after 35 ms") == 1 && count("once, after an hour") == 0);
    assert!(count("every 10 ms") >= 1);
    Ok(())
}
