//! Timers: none is left in the wheel (it would hold the waker), and an interval keeps its tick.

use std::future::pending;

use mini::runtime::{Handle, RuntimeFlavor};
use mini::time::{
    Duration, Instant, advance, deadline, inherit, interval, interval_at, pause, resume, sleep, sleep_until, timeout,
    timeout_at,
};

use crate::List;

const LONG: Duration = Duration::from_secs(3600);

pub(crate) async fn rows(list: &mut List) {
    waits!(list, sleep(LONG));
    waits!(list, sleep_until(Instant::now() + LONG));
    waits!(list, timeout(LONG, pending::<()>()));
    waits!(list, timeout_at(Instant::now() + LONG, pending::<()>()));
    waits!(list, deadline(Instant::now() + LONG, pending::<()>()));
    waits!(list, inherit(pending::<()>()));

    let due = Instant::now() + Duration::from_millis(50);
    let mut beat = interval_at(due, LONG);
    if !begins!(list, beat.tick(), kept) {
        assert_eq!(beat.tick().await, due, "the tick was kept");
    }
    waits!(list, beat.tick(), kept);
    let mut beat = interval(LONG);
    beat.tick().await;
    waits!(list, beat.tick(), kept);

    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        pause();
        let start = Instant::now();
        begins!(list, advance(LONG));
        assert_eq!(start.elapsed(), LONG, "it was polled once, and has moved the clock");
        resume();
    }
}
