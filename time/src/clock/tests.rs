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
fn advance_goes_as_far_as_timers_do() {
    let clock = Clock::pausable(true);
    for too_far in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
        assert_eq!(clock.advance(too_far), Err(ClockError::TooFar));
    }
    assert_eq!(clock.now_nanos(), 0, "it has not moved");
    let last = Duration::from_nanos(u64::MAX - 1);
    assert_eq!(clock.advance(last), Ok(()));
    assert_eq!(clock.now_nanos(), u64::MAX - 1);
    assert_eq!(clock.advance(Duration::ZERO), Ok(()));
    assert_eq!(clock.advance(Duration::from_nanos(1)), Err(ClockError::TooFar));
    clock.resume().unwrap();
    assert!(clock.now_nanos() >= u64::MAX - 1);
}

#[test]
fn advance_to_never_goes_back() {
    let clock = Clock::pausable(true);
    assert_eq!(clock.advance_to(70), 70);
    assert_eq!(clock.advance_to(30), 70);
}
