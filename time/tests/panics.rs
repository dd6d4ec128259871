//! Wrong arguments are reported at the line that passed them.
//!
//! A program of its own, as the panic hook belongs to the whole process.

use std::panic;
use std::sync::Mutex;
use std::time::Duration;

use mini_time::{Instant, interval, interval_at, pause, resume};

static LINES: Mutex<Vec<(String, u32)>> = Mutex::new(Vec::new());

#[test]
fn wrong_calls_are_reported_at_the_line_of_the_caller() {
    panic::set_hook(Box::new(|info| {
        let location = info.location().unwrap();
        LINES.lock().unwrap().push((location.file().to_owned(), location.line()));
    }));
    let first = line!() + 2;
    let calls: [fn(); 6] = [
        || drop(interval(Duration::ZERO)),
        || drop(interval_at(Instant::now(), Duration::ZERO)),
        || pause(),
        || resume(),
        || _ = Instant::now() + Duration::MAX,
        || _ = Instant::now() - Duration::MAX,
    ];
    for call in calls {
        assert!(panic::catch_unwind(call).is_err());
    }
    let _ = panic::take_hook();
    let expected: Vec<_> = (first..).take(6).map(|line| (file!().to_owned(), line)).collect();
    assert_eq!(*LINES.lock().unwrap(), expected);
}
