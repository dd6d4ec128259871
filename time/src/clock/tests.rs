use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_real_clock_cannot_be_paused_or_moved() {
    let clock = Clock::real();
    assert_eq!(clock.pause(), Err(ClockError::Unpausable));
    assert_eq!(clock.resume(), Err(ClockError::Unpausable));
    assert_eq!(clock.advance(SECOND), Err(ClockError::Unpausable));
    assert!(!clock.is_paused());
}

#[test]
fn a_running_clock_cannot_be_moved() {
    assert_eq!(Clock::pausable(false).advance(SECOND), Err(ClockError::Running));
}

#[test]
fn clones_are_the_same_clock() {
    let clock = Clock::pausable(true);
    let other = clock.clone();
    let start = other.now();
    clock.advance(SECOND).unwrap();
    assert_eq!(other.now() - start, SECOND);
}

#[test]
fn time_goes_on_from_where_it_was_paused_and_moved() {
    let clock = Clock::pausable(false);
    let start = clock.now();
    clock.pause().unwrap();
    clock.pause().unwrap();
    clock.advance(1000 * SECOND).unwrap();
    let paused = clock.now();
    assert!(paused >= start + 1000 * SECOND);
    clock.resume().unwrap();
    clock.resume().unwrap();
    let resumed = clock.now();
    assert!(resumed >= paused);
    clock.pause().unwrap();
    assert!(clock.now() >= resumed);
}

#[test]
fn advance_takes_any_duration() {
    let clock = Clock::pausable(true);
    for _ in 0..3 {
        clock.advance(Duration::MAX).unwrap();
    }
    assert_eq!(clock.now_nanos(), u64::MAX);
    clock.resume().unwrap();
    assert_eq!(clock.now_nanos(), u64::MAX);
}

#[test]
fn advance_to_never_goes_back() {
    let clock = Clock::pausable(true);
    assert_eq!(clock.advance_to(70), 70);
    assert_eq!(clock.advance_to(30), 70);
}
