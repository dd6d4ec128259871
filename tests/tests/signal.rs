//! Signals: each listener hears them, in any runtime, and none is lost. Every test has a signal of its own, as all of
//! them belong to one process.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

use mini::runtime::Builder;
use mini::signal::unix::{SignalKind, signal};
use mini::signal::{ctrl_c, termination};
use mini_tests::child_support::own_test;
use mini_tests::net_support::{in_each_runtime, open_files};
use mini_tests::{Counts, LIMIT, caught, in_child, line_of, multi_thread, poll_with, within};
use rustix::process::{Pid, Signal, getpid, kill_process};
use signal_hook::low_level;

/// Sends `signal` to the process, as another process does. The kernel interrupts a thread of its choice, usually the
/// main one, which is the harness's.
///
/// With `MINI_TEST_RAISE` in the environment it is raised instead; tests/sanitizers.sh says why.
fn send(signal: Signal) {
    match env::var_os("MINI_TEST_RAISE") {
        Some(_) => raise(signal),
        None => kill_process(getpid(), signal).unwrap(),
    }
}

/// Sends `signal` to the calling thread, which is interrupted at once.
fn raise(signal: Signal) {
    low_level::raise(signal.as_raw()).unwrap();
}

#[test]
fn a_signal_wakes_its_listener() {
    in_each_runtime(|| async {
        let mut signals = signal(SignalKind::user_defined1()).unwrap();
        for _ in 0..3 {
            let counts = Counts::new();
            let mut recv = signals.recv();
            assert!(poll_with(&mut recv, &counts).is_pending());
            send(Signal::USR1);
            assert_eq!(recv.await, Some(()));
        }
        let counts = Counts::new();
        assert!(poll_with(&mut signals.recv(), &counts).is_pending());
        assert!(poll_with(&mut signals.recv(), &counts).is_pending());
        send(Signal::USR1);
        assert_eq!(std::future::poll_fn(|cx| signals.poll_recv(cx)).await, Some(()));
    });
}

#[test]
fn every_listener_of_every_runtime_hears_it() {
    within(LIMIT, || {
        let runtimes = [Builder::new_current_thread(), multi_thread(1), multi_thread(2)];
        let runtimes = runtimes.map(|builder| builder.build().unwrap());
        let mut listeners = Vec::new();
        for runtime in &runtimes {
            let _inside = runtime.enter();
            listeners.extend((0..3).map(|_| signal(SignalKind::user_defined2()).unwrap()));
        }
        send(Signal::USR2);
        thread::scope(|scope| {
            for (runtime, three) in runtimes.iter().zip(listeners.chunks_mut(3)) {
                scope.spawn(move || {
                    for listener in three {
                        assert_eq!(runtime.block_on(listener.recv()), Some(()));
                    }
                });
            }
        });
    });
}

#[test]
fn it_does_not_matter_which_thread_is_interrupted() {
    in_each_runtime(|| async {
        let interrupt = || raise(Signal::URG);
        let mut signals = signal(SignalKind::from_raw(Signal::URG.as_raw())).unwrap();
        interrupt();
        assert_eq!(signals.recv().await, Some(()), "that of the listener");
        mini::spawn(async move { interrupt() }).await.unwrap();
        assert_eq!(signals.recv().await, Some(()), "that of a task");
        mini::spawn_blocking(interrupt).await.unwrap();
        assert_eq!(signals.recv().await, Some(()), "one of the blocking pool");
        let counts = Counts::new();
        let mut recv = signals.recv();
        assert!(poll_with(&mut recv, &counts).is_pending());
        let stranger = thread::spawn(interrupt);
        assert_eq!(recv.await, Some(()), "one that the runtime knows nothing of");
        stranger.join().unwrap();
    });
}

#[test]
fn a_storm_of_signals_is_heard_by_all() {
    const EACH: usize = 2_000;
    in_each_runtime(|| async {
        let is_over = Arc::new(AtomicBool::new(false));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let mut signals = signal(SignalKind::hangup()).unwrap();
                let is_over = is_over.clone();
                mini::spawn(async move {
                    let mut heard = 0;
                    while !is_over.load(SeqCst) {
                        signals.recv().await.unwrap();
                        heard += 1;
                    }
                    heard
                })
            })
            .collect();
        let storm = mini::spawn_blocking(|| {
            thread::scope(|scope| {
                let blow = || (0..EACH).for_each(|_| send(Signal::HUP));
                scope.spawn(blow);
                // Listeners that come and go meanwhile disturb no other.
                for _ in 0..100 {
                    drop(signal(SignalKind::hangup()).unwrap());
                }
            });
        });
        storm.await.unwrap();
        is_over.store(true, SeqCst);
        // This signal wakes tasks that have not seen that the storm is over.
        send(Signal::HUP);
        for task in tasks {
            let heard = task.await.unwrap();
            assert!(heard <= EACH + 1, "{heard} of {EACH} were heard");
        }
    });
}

#[test]
fn a_dropped_recv_takes_no_signal_with_it() {
    in_each_runtime(|| async {
        let mut signals = signal(SignalKind::alarm()).unwrap();
        let counts = Counts::new();
        let mut recv = signals.recv();
        assert!(poll_with(&mut recv, &counts).is_pending());
        send(Signal::ALARM);
        mini_tests::until(|| counts.wakes() > 0).await;
        // Woken, and dropped before it could look.
        drop(recv);
        drop(signals.recv());
        assert_eq!(signals.recv().await, Some(()));
    });
}

#[test]
fn a_listener_outlives_its_runtime() {
    within(LIMIT, || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            let first = builder.clone().build().unwrap();
            let mut signals = {
                let _inside = first.enter();
                signal(SignalKind::terminate()).unwrap()
            };
            let counts = Counts::new();
            let mut recv = signals.recv();
            assert!(poll_with(&mut recv, &counts).is_pending());
            drop(first);
            assert!(counts.wakes() > 0, "told, not left to wait");
            assert_eq!(poll_with(&mut recv, &counts), Poll::Ready(None));
            drop(recv);

            let second = builder.build().unwrap();
            assert_eq!(second.block_on(signals.recv()), None, "at once, in another runtime too");
            raise(Signal::TERM);
            assert_eq!(second.block_on(signals.recv()), Some(()), "what it has heard need not be waited for");
        }
    });
}

#[test]
fn a_listener_made_outside_joins_the_runtime_it_waits_in() {
    within(LIMIT, || {
        let mut signals = signal(SignalKind::quit()).unwrap();
        raise(Signal::QUIT);
        assert_eq!(mini::block_on(signals.recv()), Some(()));
        raise(Signal::QUIT); // it is there, so this need not wait, for which its runtime would have to be there
        assert_eq!(mini::block_on(signals.recv()), Some(()));
    });
}

#[test]
fn waiting_without_a_runtime_is_refused_with_the_line() {
    let mut signals = signal(SignalKind::io()).unwrap();
    let mut recv = signals.recv(); // here
    let refused = caught(|| poll_with(&mut recv, &Counts::new()));
    let place = format!("{}:{}", file!(), line_of(include_str!("signal.rs"), "// here"));
    assert!(refused.message.contains(&place), "{}", refused.message);
    assert!(refused.message.contains("no mini runtime"), "{}", refused.message);
}

#[test]
fn signals_that_cannot_be_heard_are_refused() {
    mini::block_on(async {
        for number in [Signal::KILL, Signal::STOP, Signal::SEGV, Signal::ILL, Signal::FPE].map(Signal::as_raw) {
            let refused = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            assert!(refused.to_string().contains(&number.to_string()), "{refused}");
        }
        for number in [0, -1, 1_000, i32::MAX, i32::MIN] {
            let refused = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::INVAL.raw_os_error()), "{number}");
        }
    });
}

#[test]
fn kinds_are_their_numbers() {
    let all = [
        (SignalKind::alarm(), Signal::ALARM),
        (SignalKind::child(), Signal::CHILD),
        (SignalKind::hangup(), Signal::HUP),
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::io(), Signal::IO),
        (SignalKind::pipe(), Signal::PIPE),
        (SignalKind::quit(), Signal::QUIT),
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::user_defined1(), Signal::USR1),
        (SignalKind::user_defined2(), Signal::USR2),
        (SignalKind::window_change(), Signal::WINCH),
    ];
    for (kind, signal) in all {
        assert_eq!(kind.as_raw_value(), signal.as_raw());
        assert_eq!(SignalKind::from(i32::from(kind)), kind);
    }
    assert_eq!(format!("{:?} {:?}", SignalKind::terminate(), SignalKind::from(64)), "SIGTERM SignalKind(64)");
    assert_eq!(all.map(|(kind, _)| kind).into_iter().collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn ctrl_c_is_heard_and_ends_nothing_any_more() {
    let _ = in_child("ctrl_c_is_heard_and_ends_nothing_any_more", || {
        mini::block_on(async {
            let counts = Counts::new();
            let mut first = ctrl_c();
            assert!(poll_with(&mut first, &counts).is_pending());
            send(Signal::INT);
            first.await.unwrap();
            // Signals count from the call on.
            let second = ctrl_c();
            send(Signal::INT);
            second.await.unwrap();
            // No listener is left, and the process does not die.
            send(Signal::INT);
        });
    });
}

#[test]
fn ctrl_c_of_a_runtime_that_is_gone_is_an_error() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let mut wait = {
            let _inside = runtime.enter();
            ctrl_c()
        };
        let counts = Counts::new();
        assert!(poll_with(&mut wait, &counts).is_pending());
        drop(runtime);
        let Poll::Ready(result) = poll_with(&mut wait, &counts) else { panic!("it hangs") };
        assert!(result.unwrap_err().to_string().contains("shut down"));
    });
}

#[test]
fn termination_hears_both_signals_and_says_which() {
    let _ = in_child("termination_hears_both_signals_and_says_which", || {
        mini::block_on(async {
            for (signal, kind) in [(Signal::TERM, SignalKind::terminate()), (Signal::INT, SignalKind::interrupt())] {
                let counts = Counts::new();
                let mut asked = termination();
                assert!(poll_with(&mut asked, &counts).is_pending());
                send(signal);
                assert_eq!(asked.await.unwrap(), kind);
            }
            // Signals count from the call on.
            let asked = termination();
            send(Signal::TERM);
            assert_eq!(asked.await.unwrap(), SignalKind::terminate());
            // As long as somebody listens, the next ones end nothing.
            let mut interrupts = signal(SignalKind::interrupt()).unwrap();
            send(Signal::INT);
            assert_eq!(interrupts.recv().await, Some(()));
        });
    });
}

#[test]
fn a_second_request_ends_the_program() {
    let test = "a_second_request_ends_the_program";
    if std::env::var_os("MINI_ASKED_TWICE").is_some() {
        return mini::block_on(async {
            let mut asked = termination();
            println!("ready");
            assert_eq!((&mut asked).await.unwrap(), SignalKind::interrupt());
            println!("stopping");
            std::future::pending::<()>().await; // `asked` is still there
        });
    }
    within(LIMIT, move || {
        let mut child = own_test(test).env("MINI_ASKED_TWICE", "1").stdout(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut wait_for = |word: &str| assert!(lines.any(|line| line.ends_with(word)), "{word}");
        wait_for("ready");
        kill_process(pid, Signal::INT).unwrap();
        wait_for("stopping");
        // Half a second must be over: until then it counts as the first one.
        while child.try_wait().unwrap().is_none() {
            kill_process(pid, Signal::TERM).unwrap();
            thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_listeners_leave_no_descriptor() {
    let _ = in_child("dropped_listeners_leave_no_descriptor", || {
        mini::block_on(async {
            let before = open_files();
            let mut kept = signal(SignalKind::window_change()).unwrap();
            for _ in 0..500 {
                let mut signals = signal(SignalKind::window_change()).unwrap();
                assert!(poll_with(&mut signals.recv(), &Counts::new()).is_pending());
            }
            send(Signal::WINCH);
            kept.recv().await.unwrap();
            drop(kept);
            assert_eq!(open_files(), before);
            // Nothing is written to dropped listeners.
            send(Signal::WINCH);
        });
    });
}
