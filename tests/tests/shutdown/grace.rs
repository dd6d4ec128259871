//! Programs with a grace: what ends them, how, and with which exit code. Each runs in a process of its own.

use std::future::pending;
use std::panic::catch_unwind;
use std::process::{ExitCode, Output};
use std::rc::Rc;
use std::sync::{Condvar, Mutex};

use mini::task::{Group, Reason, yield_now};
use mini::time::Duration;
use mini_tests::child_support::own_test;
use mini_tests::{in_child, line_of, text_of};
use rustix::process::{Signal, getpid, kill_process};

fn ask(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

fn is_code(code: ExitCode, expected: u8) -> bool {
    format!("{code:?}") == format!("{:?}", ExitCode::from(expected))
}

/// What the child has said by itself.
fn said(stderr: &str) -> Vec<&str> {
    stderr.lines().skip_while(|line| !line.starts_with("mini: ")).collect()
}

#[test]
fn a_signal_ends_body_and_groups_within_the_grace_and_the_code_is_that_of_main() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h", worker_threads = 2)]
        pub(super) async fn main() -> ExitCode {
            let group = Group::new();
            let token = group.token();
            let obedient = group.spawn_any(async move { token.cancelled().await.reason() });
            ask(Signal::TERM);
            let why = mini::shutdown().cancelled().await;
            assert_eq!((why.reason(), why.location().file()), (Reason::Signal, file!()));
            assert_eq!(obedient.await.unwrap(), Reason::Signal);
            ExitCode::from(7)
        }
    }
    let name = "a_signal_ends_body_and_groups_within_the_grace_and_the_code_is_that_of_main";
    if let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 7))) {
        assert_eq!(said(&stderr), [""; 0], "{stderr}");
    }
}

#[test]
fn what_is_left_after_the_grace_is_aborted_and_named_and_the_code_is_124() {
    mod program {
        use super::*;

        #[mini::main(grace = "50ms")] // main starts here
        pub(super) async fn main() -> Result<(), std::fmt::Error> {
            let group = Group::new().name("web");
            group.spawn_named("deaf", async {
                mini::time::sleep(std::time::Duration::from_secs(3600)).await; // deaf waits here
            });
            ask(Signal::INT);
            pending::<()>().await;
            Err(std::fmt::Error)
        }
    }
    let name = "what_is_left_after_the_grace_is_aborted_and_named_and_the_code_is_124";
    let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 124))) else { return };
    let line = |mark| line_of(include_str!("grace.rs"), mark);
    let main = line("// main starts here");
    let said = said(&stderr).join("\n");
    assert!(
        said.contains(&format!(", signal at tests/tests/shutdown/grace.rs:{main}:9: 0 finished, 2 aborted\n")),
        "{stderr}"
    );
    assert!(
        said.contains("\n  aborted  \"deaf\" of group \"web\" spawned at tests/tests/shutdown/grace.rs:"),
        "{stderr}"
    );
    assert!(
        said.contains(&format!(
            ", waiting for Timer at tests/tests/shutdown/grace.rs:{}:17",
            line("// deaf waits here")
        )),
        "{stderr}"
    );
    assert!(
        said.contains(&format!("\n  aborted  \"main\" spawned at tests/tests/shutdown/grace.rs:{main}:9")),
        "{stderr}"
    );
}

#[test]
fn a_main_that_fails_is_told_once_and_counts_as_failed() {
    mod program {
        use super::*;

        #[mini::main(grace = "50ms")] // a main that fails
        pub(super) async fn main() -> Result<(), std::fmt::Error> {
            let group = Group::new();
            group.spawn_named("deaf", pending::<()>());
            Err(std::fmt::Error)
        }
    }
    let name = "a_main_that_fails_is_told_once_and_counts_as_failed";
    let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 124))) else { return };
    assert_eq!(stderr.matches(&std::fmt::Error.to_string()).count(), 1, "{stderr}");
    assert!(stderr.contains(": 0 finished, 1 failed, 1 aborted\n"), "{stderr}");
    let main = line_of(include_str!("grace.rs"), "// a main that fails");
    let failed = format!(
        "\n  failed   \"main\" spawned at tests/tests/shutdown/grace.rs:{main}:9: its exit code is one of failure\n"
    );
    assert!(stderr.contains(&failed), "{stderr}");
}

#[test]
fn what_is_left_of_the_grace_is_all_of_it_until_the_end_has_begun() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h")]
        pub(super) async fn main() {
            let hour = Duration::from_secs(3600);
            assert_eq!(mini::grace_left(), Some(hour));
            ask(Signal::TERM);
            mini::shutdown().cancelled().await;
            let left = || mini::grace_left().unwrap();
            let before = left();
            assert!(before < hour && before > hour / 2);
            mini::time::sleep(Duration::from_millis(1)).await;
            assert!(left() < before);
        }
    }
    in_child("what_is_left_of_the_grace_is_all_of_it_until_the_end_has_begun", || {
        assert_eq!(mini::grace_left(), None);
        assert!(is_code(program::main(), 0));
    });
}

#[test]
fn a_main_that_returns_ends_the_groups_that_are_left() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h", flavor = "current_thread")]
        pub(super) async fn main() {
            let group = Group::new();
            let inside = group.clone();
            group.spawn(async move {
                let why = inside.token().cancelled().await;
                yield_now().await;
                println!("ended by {}", why.reason());
            });
        }
    }
    if let Some(stderr) = in_child("a_main_that_returns_ends_the_groups_that_are_left", || {
        assert!(is_code(program::main(), 0));
        assert_eq!(mini::shutdown().reason(), Some(Reason::Shutdown));
    }) {
        assert_eq!(said(&stderr), [""; 0], "{stderr}");
    }
}

#[test]
fn a_body_that_is_not_send_has_the_grace_too() {
    mod program {
        use super::*;

        #[mini::main(grace = "50ms", worker_threads = 2)]
        pub(super) async fn main() {
            let not_send = Rc::new(7);
            assert!(mini::shutdown().cancel(Reason::Requested)); // the program may end itself
            yield_now().await;
            pending::<()>().await;
            drop(not_send);
        }
    }
    let name = "a_body_that_is_not_send_has_the_grace_too";
    let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 124))) else { return };
    let said = said(&stderr).join("\n");
    assert!(
        said.contains("requested at tests/tests/shutdown/grace.rs:") && said.contains("aborted  \"main\""),
        "{stderr}"
    );
}

#[test]
fn a_panic_of_the_body_passes_through_after_the_groups_have_ended() {
    mod program {
        use super::*;

        pub(super) static HAS_ENDED: Mutex<bool> = Mutex::new(false);

        #[mini::main(grace = "1h")]
        pub(super) async fn main() {
            let group = Group::new();
            let inside = group.clone();
            group.spawn(async move {
                inside.token().cancelled().await;
                *HAS_ENDED.lock().unwrap() = true;
            });
            panic!("the body of the test");
        }
    }
    in_child("a_panic_of_the_body_passes_through_after_the_groups_have_ended", || {
        let payload = catch_unwind(program::main).unwrap_err();
        assert_eq!((text_of(&*payload), *program::HAS_ENDED.lock().unwrap()), ("the body of the test", true));
    });
}

#[test]
fn a_panic_of_the_body_passes_through_also_if_something_is_cut_off() {
    mod program {
        use super::*;

        #[mini::main(grace = "50ms")]
        pub(super) async fn main() {
            let group = Group::new();
            group.spawn_named("deaf", pending::<()>());
            panic!("the body of the test");
        }
    }
    let name = "a_panic_of_the_body_passes_through_also_if_something_is_cut_off";
    let Some(stderr) = in_child(name, || {
        assert_eq!(text_of(&*catch_unwind(program::main).unwrap_err()), "the body of the test");
    }) else {
        return;
    };
    assert!(stderr.contains(": 0 finished, 1 failed, 1 aborted\n"), "{stderr}");
}

/// Runs `program`, which does not return, in a process of its own, as a part of the test called `test`.
fn ended(test: &str, program: fn() -> ExitCode) -> Option<Output> {
    const CHILD: &str = "MINI_TEST_ENDED";
    if std::env::var_os(CHILD).is_some() {
        program();
        return None;
    }
    Some(own_test(test).env(CHILD, "1").output().unwrap())
}

/// Never returns.
fn blocks() {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    drop(never.wait_while(lock.lock().unwrap(), |()| true));
}

mod blocked {
    use super::*;

    #[mini::main(grace = "50ms", flavor = "current_thread")]
    pub(super) async fn main() {
        Group::new().spawn_named("stuck", async { blocks() }); // its last handle goes here
        Group::new().spawn_named("victim", pending::<()>());
        mini::spawn_blocking(|| ask(Signal::TERM)).await.unwrap();
        yield_now().await;
    }
}

#[test]
fn a_task_that_blocks_the_only_worker_is_named_and_the_process_ends() {
    let Some(output) = ended("a_task_that_blocks_the_only_worker_is_named_and_the_process_ends", blocked::main) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert!(stderr.contains("\n  running  \"stuck\" spawned at tests/tests/shutdown/grace.rs:"), "{stderr}");
    assert!(stderr.contains(", still occupies its thread"), "{stderr}");
    let victim = stderr.lines().find(|line| line.starts_with("  ready    \"victim\" spawned at "));
    assert!(victim.is_some_and(|line| line.contains(", had no thread to end on")), "{stderr}");
}

mod in_the_way {
    use super::*;

    #[mini::main(grace = "0s", flavor = "current_thread")]
    pub(super) async fn main() {
        drop(mini::spawn(async { blocks() }));
    }
}

#[test]
fn a_task_of_no_group_that_blocks_the_thread_of_main_does_not_keep_the_process() {
    let test = "a_task_of_no_group_that_blocks_the_thread_of_main_does_not_keep_the_process";
    let Some(output) = ended(test, in_the_way::main) else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert!(stderr.contains("a task outside every group blocks the thread of `main`"), "{stderr}");
}

mod unheard {
    use super::*;

    #[mini::main(grace = "1h", flavor = "current_thread")]
    pub(super) async fn main() {
        ask(Signal::INT);
        mini::shutdown().cancelled().await;
        mini::time::sleep(std::time::Duration::from_millis(600)).await; // what comes sooner is the same request
        ask(Signal::INT);
        pending::<()>().await;
    }
}

mod unasked {
    use super::*;

    #[mini::main(grace = "1h", flavor = "current_thread")]
    pub(super) async fn main() -> ExitCode {
        let group = Group::new();
        let token = group.token();
        group.spawn(async move {
            token.cancelled().await;
            loop {
                ask(Signal::INT);
                mini::time::sleep(std::time::Duration::from_millis(600)).await; // what comes sooner is the same request
            }
        });
        ExitCode::SUCCESS
    }
}

#[test]
fn a_second_signal_ends_a_program_at_once_that_ends_by_itself() {
    use std::os::unix::process::ExitStatusExt;

    let test = "a_second_signal_ends_a_program_at_once_that_ends_by_itself";
    let Some(output) = ended(test, unasked::main) else { return };
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}

/// Asks twice, so that the second request is not taken for the first one, and never returns.
fn asks_twice() {
    let pause = || std::thread::sleep(std::time::Duration::from_millis(600));
    pause(); // in which `main` ends
    ask(Signal::INT);
    pause();
    ask(Signal::INT);
    blocks();
}

mod over {
    use super::*;

    #[mini::main(grace = "1h", flavor = "current_thread")]
    pub(super) async fn main() {
        drop(mini::spawn(async { asks_twice() }));
    }
}

mod dropped {
    use super::*;

    struct Stubborn;

    impl Drop for Stubborn {
        fn drop(&mut self) {
            asks_twice();
        }
    }

    #[mini::main(grace = "1h", flavor = "current_thread")]
    pub(super) async fn main() {
        let stubborn = Stubborn;
        drop(mini::spawn(async move {
            let _stubborn = stubborn;
            pending::<()>().await;
        }));
        yield_now().await;
    }
}

#[test]
fn a_second_signal_ends_a_program_at_once_whose_main_is_over() {
    use std::os::unix::process::ExitStatusExt;

    let test = "a_second_signal_ends_a_program_at_once_whose_main_is_over";
    let Some(output) = ended(test, over::main) else { return };
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}

#[test]
fn a_second_signal_ends_a_program_at_once_that_drops_its_runtime() {
    use std::os::unix::process::ExitStatusExt;

    let test = "a_second_signal_ends_a_program_at_once_that_drops_its_runtime";
    let Some(output) = ended(test, dropped::main) else { return };
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    use std::os::unix::process::ExitStatusExt;

    let Some(output) = ended("a_second_signal_ends_the_program_at_once", unheard::main) else { return };
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
}

#[test]
fn what_belongs_to_no_group_is_dropped_as_without_a_grace() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h")]
        pub(super) async fn main() {
            drop(mini::spawn(pending::<()>()));
            yield_now().await;
        }
    }
    if let Some(stderr) = in_child("what_belongs_to_no_group_is_dropped_as_without_a_grace", || {
        assert!(is_code(program::main(), 0));
    }) {
        assert_eq!(said(&stderr), [""; 0], "{stderr}");
    }
}

#[test]
fn groups_that_main_still_has_when_it_returns_end_with_the_program() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h")]
        pub(super) async fn main() {
            let group = Group::new();
            let token = group.token();
            group.spawn(async move {
                assert_eq!(token.cancelled().await.reason(), Reason::Shutdown);
                yield_now().await;
                eprintln!("mini: obeys");
            });
        }
    }
    let name = "groups_that_main_still_has_when_it_returns_end_with_the_program";
    if let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 0))) {
        assert_eq!(said(&stderr), ["mini: obeys"], "{stderr}");
    }
}

#[test]
fn what_main_leaves_in_a_group_is_told_once_and_the_code_is_124() {
    mod program {
        use super::*;

        #[mini::main(grace = "50ms")]
        pub(super) async fn main() {
            let group = Group::new().name("clients");
            group.spawn_named("deaf", pending::<()>());
        }
    }
    let name = "what_main_leaves_in_a_group_is_told_once_and_the_code_is_124";
    let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 124))) else { return };
    assert_eq!(stderr.matches("mini: ").count(), 1, "{stderr}");
    assert!(stderr.contains(", shutdown at ") && stderr.contains(": 1 finished, 1 aborted\n"), "{stderr}");
}

#[test]
fn a_group_that_main_drops_before_its_end_is_told() {
    mod program {
        use super::*;

        #[mini::main(grace = "1h")]
        pub(super) async fn main() {
            let group = Group::new().name("forgotten");
            let token = group.token();
            let task = group.spawn_any(async move { token.cancelled().await.reason() });
            drop(group);
            yield_now().await; // so this is not the end
            assert_eq!(task.await.unwrap(), Reason::ParentGone);
        }
    }
    let name = "a_group_that_main_drops_before_its_end_is_told";
    let Some(stderr) = in_child(name, || assert!(is_code(program::main(), 0))) else { return };
    assert_eq!(stderr.matches("mini: ").count(), 1, "{stderr}");
    assert!(stderr.contains("the last handle of the group \"forgotten\" made at "), "{stderr}");
    assert!(stderr.contains("was dropped with 1 task alive, which is cancelled"), "{stderr}");
}
