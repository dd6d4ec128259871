//! Signals in a simulation, and what is refused there: child processes, the standard input, a clock that runs.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use mini::signal::unix::{SignalKind, signal};
use mini::signal::{ctrl_c, termination};
use mini::sim::{Sim, current};
use mini::time::{sleep, timeout};
use mini_tests::child_support::own_test;
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
        current().signal("test", SignalKind::quit()); // nobody listens to that
        current().signal("test", kind);
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
        current().signal("test", kind); // lost
        let mut signals = signal(kind).unwrap();
        assert!(timeout(SECOND, signals.recv()).await.is_err());
        for _ in 0..3 {
            current().signal("test", kind);
        }
        assert_eq!(signals.recv().await, Some(()));
        assert!(timeout(SECOND, signals.recv()).await.is_err());
        current().signal("test", kind);
        assert_eq!(std::future::poll_fn(|cx| signals.poll_recv(cx)).await, Some(()));
    });
}

#[test]
fn requests_to_end_are_heard() {
    each_seed(async || {
        let (interrupt, request, again) = (ctrl_c(), termination(), termination());
        current().signal("test", SignalKind::interrupt()); // between the calls and the first polls
        interrupt.await.unwrap();
        assert_eq!(request.await.unwrap(), SignalKind::interrupt());
        drop(again);
        let server = mini::spawn(async {
            let request = termination().await;
            sleep(SECOND).await; // a second request does not end the process
            request
        });
        current().settle().await;
        current().signal("test", SignalKind::terminate());
        sleep(SECOND / 2).await;
        current().signal("test", SignalKind::terminate());
        assert_eq!(server.await.unwrap().unwrap(), SignalKind::terminate());
    });
}

#[test]
fn signals_stay_on_their_host() {
    each_seed(async || {
        let sim = current();
        let request = termination();
        let servers = ["one", "two"].map(|name| {
            sim.client(name, async move {
                let request = termination();
                if name == "one" {
                    current().signal("one", SignalKind::terminate());
                }
                timeout(SECOND, request).await.is_ok()
            })
        });
        let mut heard = Vec::new();
        for server in servers {
            heard.push(server.await.unwrap());
        }
        assert_eq!(heard, [true, false]);
        assert!(timeout(SECOND, request).await.is_err());
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
        current().signal("test", kind);
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
    assert!(text.contains(&format!("the main task waits for Signal at {}:{line}:", file!())), "{text}");
}

#[test]
fn what_cannot_be_listened_to_is_refused_as_outside() {
    let program = async || {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV] {
            assert_eq!(signal(SignalKind::from_raw(number)).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        for number in [-1, 0, 33, 65, 1000] {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{number}");
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
        current().signal("test", kind);
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
        current().signal("test", SignalKind::user_defined1());
        assert_eq!(inside.recv().await, Some(()));
        let (request, interrupt) = (termination(), ctrl_c());
        current().signal("test", SignalKind::interrupt());
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
    let mut child = own_test("no_handler_is_installed_and_no_signal_goes_in_or_out");
    let output = child.env("MINI_BOTH_KINDS", "1").output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn child_processes_are_refused_with_the_call_and_its_line() {
    let errors = Sim::new(1).run(async {
        let mut command = mini::process::Command::new("true");
        [command.spawn().map(drop), command.status().await.map(drop), command.output().await.map(drop)]
    });
    let line = line!() - 2;
    for (error, method) in errors.unwrap().into_iter().zip(["spawn", "status", "output"]) {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let (text, place) = (error.to_string(), format!("{}:{line}:", file!()));
        let begin = format!("`Command::{method}`, called at {place}");
        assert!(text.starts_with(&begin) && text.ends_with(": child processes are not simulated"), "{text}");
    }
    assert!(mini::block_on(mini::process::Command::new("true").status()).unwrap().success());
}

#[test]
fn nothing_is_read_from_the_standard_input() {
    let error = Sim::new(1).run(async { mini::io::stdin().read(&mut [0; 1]).await });
    let (line, error) = (line!() - 1, error.unwrap().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let (text, begin) = (error.to_string(), format!("`Stdin::read`, called at {}:{line}:", file!()));
    assert!(text.starts_with(&begin) && text.ends_with(": standard input is not simulated"), "{text}");
}

/// More than a pipe holds.
const LENGTH: usize = 300_000;

fn writes_much() {
    for seed in 0..5 {
        let length = Sim::new(seed).run(async {
            let (out, other) = (mini::io::stdout(), mini::io::stderr());
            other.write_all(&vec![b'e'; LENGTH]).await.unwrap();
            let length = out.write(&vec![b'o'; LENGTH]).await.unwrap();
            out.flush().await.unwrap();
            other.flush().await.unwrap();
            length
        });
        assert_eq!(length.unwrap(), LENGTH, "a pipe that is full is not seen");
    }
}

#[test]
fn what_is_written_to_the_standard_streams_goes_out() {
    if std::env::var_os("MINI_WRITES_MUCH").is_some() {
        return writes_much();
    }
    let file = std::env::temp_dir().join(format!("mini-sim-output-{}", std::process::id()));
    let name = "what_is_written_to_the_standard_streams_goes_out";
    let child = || {
        let mut child = own_test(name);
        child.env("MINI_WRITES_MUCH", "1");
        child
    };
    let count = |bytes: &[u8], byte| bytes.iter().filter(|&&other| other == byte).count();
    let piped = child().output().unwrap();
    assert!(piped.status.success());
    assert!(count(&piped.stdout, b'o') >= 5 * LENGTH && count(&piped.stderr, b'e') >= 5 * LENGTH);
    let filed = child().stdout(std::fs::File::create(&file).unwrap()).output().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(filed.status.success() && count(&bytes, b'o') >= 5 * LENGTH);
}

#[test]
fn the_clock_cannot_be_resumed() {
    let failure = Sim::new(1).run(async {
        mini::time::pause(); // it is
        sleep(SECOND).await;
        mini::time::resume();
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("panicked: `mini::time::resume` was called in a simulation"), "{text}");
    mini::block_on(async {
        mini::time::pause();
        mini::time::resume();
    });
}
