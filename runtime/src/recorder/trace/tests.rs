//! Pictures of made-up events, and of no events at all.

use std::cell::RefCell;
use std::panic::Location;

use super::decode::{Kind, Shown, Trace};
use super::*;

fn drawn(copied: Copied<'_>) -> Trace {
    Trace::read(&draw(copied, |_| HashMap::new()))
}

fn copied(workers: Vec<Vec<Words>>, outside: Vec<Words>) -> Copied<'static> {
    let workers = workers.into_iter().map(|events| (events, (Doing::Nothing, 0))).collect();
    Copied { tick: 1.0, first: 0, workers, outside, line: &|_| None }
}

fn task(number: u64) -> Number {
    Number::of(number)
}

fn poll(number: u64, from: u64, to: u64, then: Then) -> Words {
    Event::Poll { task: task(number), took: to - from, then }.pack(to)
}

fn wake(number: u64, at: u64) -> Words {
    Event::Wake { task: task(number) }.pack(at)
}

fn spawn(number: u64, at: u64) -> Words {
    Event::Spawn { task: task(number), place: 1 }.pack(at)
}

/// The slices of a track, each as name, begin and end.
fn slices(trace: &Trace, track: &str) -> Vec<(String, u64, Option<u64>)> {
    trace.slices(trace.track(track)).into_iter().map(|slice| (slice.name.clone(), slice.at, slice.end)).collect()
}

fn expected(slices: &[(&str, u64, Option<u64>)]) -> Vec<(String, u64, Option<u64>)> {
    slices.iter().map(|&(name, begin, end)| (name.to_owned(), begin, end)).collect()
}

#[test]
fn a_picture_of_nothing_is_a_picture() {
    let trace = drawn(copied(vec![Vec::new(), Vec::new()], Vec::new()));
    assert!(trace.events.is_empty());
    assert_ne!(trace.track("worker 0"), trace.track("worker 1"));
    assert_ne!(trace.track("worker 0"), trace.track("other threads"));
}

#[test]
fn polls_and_waits_are_slices_and_wakes_lie_in_the_poll_that_wakes() {
    let worker = vec![
        spawn(7, 100),
        spawn(8, 150),
        wake(8, 1_050),
        poll(7, 1_000, 1_100, Then::Waits),
        poll(8, 1_100, 1_300, Then::Ended),
        Event::Wait { took: 500 }.pack(2_000),
        Event::Ready { events: 3 }.pack(2_010),
        Event::Timers { fired: 4 }.pack(2_011),
        Event::Steal { tasks: 5 }.pack(2_012),
    ];
    let trace = drawn(copied(vec![worker], Vec::new()));
    let polls = [("task 7", 1_000, Some(1_100)), ("task 8", 1_100, Some(1_300)), ("parked", 1_500, Some(2_000))];
    assert_eq!(slices(&trace, "worker 0"), expected(&polls));
    let moments =
        [("sockets are ready", 2_010, "3"), ("timers fire", 2_011, "4"), ("takes tasks of another worker", 2_012, "5")];
    for (name, at, count) in moments {
        let moment = trace.instants(name).next().unwrap();
        assert_eq!((moment.at, moment.notes["count"].as_str()), (at, count), "{name}");
    }
    let ends: Vec<u64> = trace.instants("spawns").map(|spawn| trace.arrow(spawn).at).collect();
    assert_eq!(ends, [1_000, 1_100]);
}

#[test]
fn a_task_waits_for_what_it_awaits_and_then_for_a_worker() {
    let first = vec![
        spawn(7, 1_000),
        poll(7, 3_000, 4_000, Then::Waits),
        poll(7, 20_000, 21_000, Then::Asks),
        poll(7, 23_000, 24_000, Then::Waits),
    ];
    let trace = drawn(copied(vec![first], vec![wake(7, 12_000), wake(7, 40_000)]));
    let states = [
        ("waits for a worker", 1_000, Some(3_000)),
        ("runs", 3_000, Some(4_000)),
        ("waits", 4_000, Some(12_000)),
        ("waits for a worker", 12_000, Some(20_000)),
        ("runs", 20_000, Some(21_000)),
        ("waits for a worker", 21_000, Some(23_000)),
        ("runs", 23_000, Some(24_000)),
        ("waits", 24_000, Some(40_000)),
        ("waits for a worker", 40_000, None),
    ];
    assert_eq!(slices(&trace, "task 7 #7"), expected(&states));
    let wakes: Vec<_> = trace.instants("wakes").collect();
    assert!(wakes.iter().all(|wake| wake.track == trace.track("other threads")));
    assert_eq!(trace.arrow(wakes[0]).at, 20_000);
    let is_end = |event: &&Shown| event.ends == wakes[1].flow;
    assert_eq!(trace.events.iter().filter(is_end).count(), 0, "its poll is still to come");
}

#[test]
fn the_end_of_a_poll_is_noted_after_another_worker_has_begun_the_next() {
    let one = vec![poll(7, 10_000, 20_500, Then::Waits)];
    let other = vec![wake(7, 20_100), poll(7, 20_050, 30_000, Then::Ended)];
    let trace = drawn(copied(vec![one, other], Vec::new()));
    let states = [("runs", 10_000, Some(20_100)), ("runs", 20_100, Some(30_000))];
    assert_eq!(slices(&trace, "task 7 #7"), expected(&states), "it never runs twice at a time");
    let arrow = trace.arrow(trace.instants("wakes").next().unwrap());
    assert_eq!((arrow.at, arrow.track), (20_100, trace.track("worker 1")), "not to the poll that was before it");
}

#[test]
fn what_goes_on_has_no_end() {
    let mut copied = copied(vec![vec![poll(7, 10, 20, Then::Waits)], Vec::new()], Vec::new());
    copied.workers[0].1 = (Doing::Polls(task(7)), 5_000);
    copied.workers[1].1 = (Doing::Waits, 3_000);
    let trace = drawn(copied);
    assert_eq!(slices(&trace, "worker 0")[1], ("task 7".to_owned(), 5_000, None));
    assert_eq!(slices(&trace, "worker 1"), expected(&[("parked", 3_000, None)]));
    assert_eq!(slices(&trace, "task 7 #7").last(), Some(&("runs".to_owned(), 5_000, None)));
}

#[test]
fn a_job_is_a_slice_of_its_own_track() {
    let outside = vec![
        spawn(7, 1_000),
        Event::JobBegin { task: task(7) }.pack(2_000),
        Event::JobBegin { task: task(8) }.pack(2_500),
        Event::JobEnd { task: task(7) }.pack(3_000),
        Event::JobEnd { task: task(9) }.pack(3_000),
    ];
    let trace = drawn(copied(Vec::new(), outside));
    let states = [("waits for a worker", 1_000, Some(2_000)), ("runs", 2_000, Some(3_000))];
    assert_eq!(slices(&trace, "task 7 #7"), expected(&states));
    assert_eq!(slices(&trace, "task 8 #8"), expected(&[("runs", 2_500, None)]));
    assert!(trace.tracks.values().all(|track| !track.contains("#9")), "its begin is not there");
}

#[test]
fn a_task_is_called_by_its_name_or_the_line_of_its_spawn() {
    let line: &'static Location<'static> = Location::caller();
    let text = |bytes: &[u8]| {
        let mut all = [0; 14];
        all[..bytes.len()].copy_from_slice(bytes);
        Event::Text { bytes: all, len: bytes.len() as u8 }.pack(0)
    };
    let events = vec![
        text(b"of a spawn tha"), // which is overwritten
        spawn(7, 10),
        text(b"the name of a "),
        text(b"task"),
        spawn(8, 20),
        poll(7, 30, 40, Then::Ended),
        poll(8, 40, 50, Then::Ended),
        poll(9, 50, 60, Then::Ended),
        poll(1 << 47 | 5, 60, 70, Then::Ended),
        poll(10, 70, 80, Then::Ended),
    ];
    let mut copied = copied(vec![events], Vec::new());
    let find = |number| (number == 1).then_some(line);
    copied.line = &find;
    let asked = RefCell::new(Vec::new());
    let trace = Trace::read(&draw(copied, |others| {
        asked.borrow_mut().extend_from_slice(others);
        HashMap::from([(task(9), Label { line: Some(line), name: b"alive".to_vec() })])
    }));
    assert_eq!(*asked.borrow(), [task(9), task(10), task(1 << 47 | 5)]);
    let names: Vec<String> = slices(&trace, "worker 0").into_iter().map(|(name, ..)| name).collect();
    let place = format!("{}:{}", line.file(), line.line());
    assert_eq!(names, ["the name of a task", &place, "alive", "block_on", "task 10"]);
}

#[test]
fn counters_have_the_last_length_of_a_queue() {
    let events = vec![Event::Queue { tasks: 5 }.pack(10), Event::Injected { tasks: 9 }.pack(11)];
    let trace = drawn(copied(vec![events], Vec::new()));
    let shown = |event: &Shown| (event.kind, event.name.clone(), event.notes["tasks"].clone());
    let expected = [("queue of worker 0", "5"), ("queue for any worker", "9")];
    let expected = expected.map(|(name, tasks)| (Kind::Counter, name.to_owned(), tasks.to_owned()));
    assert_eq!(trace.events.iter().map(shown).collect::<Vec<_>>(), expected);
}

/// Rings may have any words: a worker that has another clock, an event that no version has, times that go back.
#[test]
fn any_words_at_all_make_a_picture_that_is_well_formed() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..300 {
        let few = round % 3; // whether tasks and times repeat, so that events meet
        let mut words = || {
            let (mut first, mut second) = (next() & !(0x7ff << 48), next()); // times that a reader does not round
            if few > 0 {
                first = first & (15 << 59) | first & 0x3ff;
                second = second & (0xf << 59) | second & 3 | (second & 7) << 40;
            }
            if few > 1 && first >> 63 != 0 {
                first >>= 1;
            }
            [first, second]
        };
        let mut events = |count: usize| (0..count).map(|_| words()).collect::<Vec<Words>>();
        let mut copied = copied(vec![events(80), events(5), events(40)], events(60));
        copied.workers[1].1 = (Doing::Polls(task(2)), next() % 1_000);
        copied.workers[2].1 = (Doing::Waits, u64::MAX);
        copied.tick = [1.0, 0.3, 1e-9][round % 3];
        drawn(copied); // which checks it
    }
}
