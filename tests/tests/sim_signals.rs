//! Signals, child processes and standard streams in a simulation: the first are simulated, the others refused.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use mini::io::raw_os_error;
use mini::signal::unix::{SignalKind, signal};
use mini::signal::{ctrl_c, termination};
use mini::sim::{Sim, current};
use mini::time::{sleep, timeout};
use mini_tests::{Counts, poll_with};

const SECOND: Duration = Duration::from_secs(1);

/// Under each of some seeds.
fn each_seed(program: impl AsyncFn()) {
    for seed in 0..50 {
        Sim::new(seed).run(program()).unwrap();
    }
}

#[test]
fn every_listener_hears_a_signal_and_each_once() {
    each_seed(async || {
        let kind = SignalKind::hangup();
        let listeners = [(); 3].map(|()| {
            let mut signals = signal(kind).unwrap();
            mini::spawn(async move {
                assert_eq!(signals.recv().await, Some(()));
                timeout(SECOND, signals.recv()).await.is_err()
            })
        });
        current().settle().await;
        current().signal(SignalKind::quit()); // nobody listens to that
        current().signal(kind);
        for listener in listeners {
            assert!(listener.await.unwrap());
        }
        assert_eq!(current().elapsed(), SECOND);
    });
}

#[test]
fn signals_that_were_not_received_yet_are_one_and_later_ones_are_heard_anew() {
    each_seed(async || {
        let kind = SignalKind::user_defined1();
        current().signal(kind); // lost
        let mut signals = signal(kind).unwrap();
        assert!(timeout(SECOND, signals.recv()).await.is_err());
        for _ in 0..3 {
            current().signal(kind);
        }
        assert_eq!(signals.recv().await, Some(()));
        assert!(timeout(SECOND, signals.recv()).await.is_err());
        current().signal(kind);
        assert_eq!(std::future::poll_fn(|cx| signals.poll_recv(cx)).await, Some(()));
    });
}

#[test]
fn requests_to_end_are_heard() {
    each_seed(async || {
        let (interrupt, request, again) = (ctrl_c(), termination(), termination());
        current().signal(SignalKind::interrupt()); // between the calls and the first polls
        interrupt.await.unwrap();
        assert_eq!(request.await.unwrap(), SignalKind::interrupt());
        drop(again);
        let server = mini::spawn(async {
            let request = termination().await;
            sleep(SECOND).await; // a second request does not end the process
            request
        });
        current().settle().await;
        current().signal(SignalKind::terminate());
        sleep(SECOND / 2).await;
        current().signal(SignalKind::terminate());
        assert_eq!(server.await.unwrap().unwrap(), SignalKind::terminate());
    });
}

#[test]
fn a_wait_that_was_dropped_has_taken_nothing_and_wakes_nobody() {
    each_seed(async || {
        let kind = SignalKind::user_defined2();
        let mut signals = signal(kind).unwrap();
        assert!(timeout(SECOND, signals.recv()).await.is_err());
        let (counts, mut recv) = (Counts::new(), signals.recv());
        assert!([(); 2].iter().all(|()| poll_with(&mut recv, &counts).is_pending()));
        let before = counts.wakes(); // 1 if the budget was spent
        drop(recv);
        current().signal(kind);
        assert_eq!(counts.wakes(), before);
        drop(signals.recv());
        assert_eq!(signals.recv().await, Some(()));
    });
}

#[test]
fn a_signal_that_never_comes_is_a_deadlock_with_the_line_of_the_wait() {
    let failure = Sim::new(1).run(async {
        let mut signals = signal(SignalKind::window_change()).unwrap();
        signals.recv().await
    });
    let line = line!() - 2;
    let text = failure.unwrap_err().to_string();
    assert!(text.contains(": deadlock: nothing is left that could wake a task\n"), "{text}");
    assert!(text.contains(&format!("its main task waits for Ready at {}:{line}:", file!())), "{text}");
}

#[test]
fn what_cannot_be_listened_to_is_refused_as_outside() {
    let program = async || {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV] {
            assert_eq!(signal(SignalKind::from_raw(number)).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        for number in [-1, 0, 33, 65, 1000] {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(raw_os_error(&error), Some(libc::EINVAL), "{number}");
        }
        drop(signal(SignalKind::from_raw(64)).unwrap());
    };
    Sim::new(1).run(program()).unwrap();
    mini::block_on(program());
}

#[test]
fn a_listener_that_outlives_its_simulation_hears_nothing() {
    let kind = SignalKind::io();
    let mut signals = Sim::new(1).run(async { signal(kind).unwrap() }).unwrap();
    assert_eq!(mini::block_on(signals.recv()), None);
    let heard = Sim::new(1).run(async {
        current().signal(kind);
        signals.recv().await
    });
    assert_eq!(heard.unwrap(), None);
}

/// What the child process of the next test does.
fn mixes_both_kinds() {
    let mut outside = signal(SignalKind::user_defined1()).unwrap();
    let program = async {
        let mut inside = signal(SignalKind::user_defined1()).unwrap();
        signal_hook::low_level::raise(libc::SIGUSR1).unwrap();
        assert!(timeout(SECOND, inside.recv()).await.is_err(), "not of the system");
        current().signal(SignalKind::user_defined1());
        assert_eq!(inside.recv().await, Some(()));
        let (request, interrupt) = (termination(), ctrl_c());
        current().signal(SignalKind::interrupt());
        request.await.unwrap();
        interrupt.await.unwrap();
    };
    Sim::new(1).run(program).unwrap();
    mini::block_on(async {
        assert_eq!(outside.recv().await, Some(()), "that of the system");
        assert!(timeout(SECOND / 100, outside.recv()).await.is_err(), "not the simulated one");
    });
    signal_hook::low_level::raise(libc::SIGTERM).unwrap(); // ends the process, as nobody has asked for it
}

#[test]
fn no_handler_is_installed_and_no_signal_goes_in_or_out() {
    if std::env::var_os("MINI_BOTH_KINDS").is_some() {
        return mixes_both_kinds();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "no_handler_is_installed_and_no_signal_goes_in_or_out";
    let output = child.args([name, "--exact"]).env("MINI_BOTH_KINDS", "1").output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{}", String::from_utf8_lossy(&output.stdout));
}
