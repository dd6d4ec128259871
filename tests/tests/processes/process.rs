//! Child processes: status, pipes, kills, and how they are reaped: no zombie and no descriptor is left behind.

#![allow(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::task::Poll;
use std::thread;

use mini::process::{Child, Command};
use mini::runtime::Builder;
use mini_tests::child_support::{cat, children, is_known, sh, sleeper};
use mini_tests::net_support::{in_each_runtime, kind_of, open_files};
use mini_tests::{
    Counts, LIMIT, block_on_elsewhere, caught, flavours, in_child, line_of, multi_thread, on_each_flavour, poll_with,
    until, within,
};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

#[test]
fn a_child_ends_with_its_status() {
    in_each_runtime(|| async {
        let mut child = sh("exit 3").spawn().unwrap();
        assert!(child.id().is_some());
        assert_eq!(child.wait().await.unwrap().code(), Some(3));
        assert_eq!(child.id(), None);
        assert_eq!(child.wait().await.unwrap().code(), Some(3), "kept");
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        assert_eq!(child.wait_with_output().await.unwrap().status.code(), Some(3));
        assert!(Command::new("true").status().await.unwrap().success());
        assert_eq!(Command::new("false").status().await.unwrap().code(), Some(1));
    });
}

#[test]
fn try_wait_sees_the_end_too() {
    in_each_runtime(|| async {
        let mut child = cat().spawn().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        assert!(child.stdin.is_some(), "left open");
        child.stdin = None;
        let mut status = None;
        until(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        assert!(status.unwrap().success() && child.id().is_none());
    });
}

#[test]
fn a_killed_child_ends_by_the_signal() {
    in_each_runtime(|| async {
        let mut child = sleeper().spawn().unwrap();
        child.start_kill().unwrap();
        child.start_kill().unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        child.start_kill().expect("an ended one is left alone");
        child.kill().await.unwrap();

        let mut child = sleeper().spawn().unwrap();
        child.kill().await.unwrap();
        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(9));
    });
}

#[test]
fn what_cannot_be_started_is_an_error() {
    in_each_runtime(|| async {
        let missing = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!((missing.kind(), missing.raw_os_error()), (ErrorKind::NotFound, Some(2)));
        let not_a_program = Command::new("/etc").spawn().unwrap_err();
        assert_eq!(not_a_program.kind(), ErrorKind::PermissionDenied);
        assert_eq!(kind_of(Command::new("true").current_dir("/no/such/place").spawn()), ErrorKind::NotFound);
        assert_eq!(kind_of(Command::new("true").arg("a\0b").spawn()), ErrorKind::InvalidInput);
        assert_eq!(kind_of(Command::new("/no/such/program").output().await), ErrorKind::NotFound);
        assert_eq!(kind_of(Command::new("/no/such/program").status().await), ErrorKind::NotFound);
    });
}

#[test]
fn std_settings_reach_the_child() {
    in_each_runtime(|| async {
        let mut command = Command::from(std::process::Command::new("/bin/sh"));
        command.arg0("shell").arg("-c").arg("echo $0 $A $B $C $PWD").env_clear().env("A", "1");
        command.envs([("B", "2"), ("C", "3")]).env_remove("B").current_dir("/").process_group(0);
        assert_eq!(command.output().await.unwrap().stdout, b"shell 1 3 /\n");
        assert_eq!(command.as_std().get_program(), "/bin/sh");
        command.as_std_mut().arg("ignored");
        assert_eq!(command.into_std().get_args().count(), 3);

        let mut command = Command::new("true");
        // SAFETY: it makes an error of a number, and nothing else.
        unsafe { command.pre_exec(|| Err(io::Error::from_raw_os_error(7))) };
        assert_eq!(command.spawn().unwrap_err().raw_os_error(), Some(7));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_inherits_none_of_our_descriptors() {
    let _ = in_child("a_child_inherits_none_of_our_descriptors", || {
        let before = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
        mini::block_on(async {
            let _other = cat().kill_on_drop(true).spawn().unwrap();
            let _signals = mini::signal::unix::signal(mini::signal::unix::SignalKind::hangup()).unwrap();
            let output = Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output().await.unwrap();
            assert_eq!(output.stdout, before.stdout);
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_does_not_inherit_the_exact_timers_of_a_worker() {
    in_each_runtime(|| async {
        for _ in 0..2 {
            let slack = Command::new("cat").arg("/proc/self/timerslack_ns").output().await.unwrap();
            assert_eq!(slack.stdout, b"50000\n");
        }
    });
}

#[test]
fn many_wait_at_the_same_time() {
    in_each_runtime(|| async {
        let mut tasks: Vec<_> = (0..20)
            .map(|code| {
                let mut child = sh(&format!("read line; exit {code}")).stdin(Stdio::piped()).spawn().unwrap();
                let stdin = child.stdin.take().unwrap();
                (mini::spawn(async move { child.wait().await.unwrap().code() }), stdin)
            })
            .collect();
        // Ended in another order than they were started in.
        for (code, (task, stdin)) in tasks.drain(..).enumerate().rev() {
            drop(stdin);
            assert_eq!(task.await.unwrap(), Some(code as i32));
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_dropped_child_goes_on_and_is_reaped() {
    in_each_runtime(|| async {
        let mut child = cat().spawn().unwrap();
        let (id, stdin, stdout) = (child.id().unwrap(), child.stdin.take().unwrap(), child.stdout.take().unwrap());
        drop(child);
        stdin.write_all(b"ping").await.unwrap();
        let mut buf = [0; 4];
        stdout.read_exact(&mut buf).await.unwrap();
        drop(stdin);
        until(|| !is_known(id)).await;
    });
}

#[cfg(target_os = "linux")]
#[test]
fn kill_on_drop_kills_and_reaps() {
    in_each_runtime(|| async {
        let mut sleeps = sleeper();
        assert!(!sleeps.get_kill_on_drop());
        let child = sleeps.kill_on_drop(true).spawn().unwrap();
        assert!(sleeps.get_kill_on_drop());
        let id = child.id().unwrap();
        drop(child);
        until(|| !is_known(id)).await;

        let mut command = sh("echo $$; exec sleep 10000");
        let child = command.kill_on_drop(true).stdout(Stdio::piped()).spawn().unwrap();
        let id = child.id().unwrap();
        let mut output = Box::pin(child.wait_with_output());
        assert!(poll_with(&mut output, &Counts::new()).is_pending());
        drop(output);
        until(|| !is_known(id)).await;
    });
}

/// Waits on a plain thread: no runtime runs, and no child is started.
#[cfg(target_os = "linux")]
fn wait_until_reaped(id: u32) {
    while is_known(id) {
        thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_that_outlives_its_runtime_is_reaped() {
    let _ = in_child("a_child_that_outlives_its_runtime_is_reaped", || {
        for (_, builder) in flavours() {
            let runtime = builder.build().unwrap();
            let (id, stdin) = runtime.block_on(async {
                let mut child = cat().spawn().unwrap();
                let stdin = child.stdin.take().unwrap().into_owned_fd().unwrap();
                (child.id().unwrap(), stdin)
            });
            drop(runtime);
            drop(stdin); // the child ends
            wait_until_reaped(id);
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_dropped_outside_is_reaped() {
    let _ = in_child("a_child_dropped_outside_is_reaped", || {
        let reap = |start: &dyn Fn(&mut Command) -> Child| {
            let child = start(sleeper().kill_on_drop(true));
            let id = child.id().unwrap();
            drop(child);
            wait_until_reaped(id);

            let mut child = start(&mut cat());
            let (id, stdin) = (child.id().unwrap(), child.stdin.take());
            drop(child);
            drop(stdin); // the child ends
            wait_until_reaped(id);
        };
        for (_, builder) in flavours() {
            let runtime = builder.build().unwrap();
            reap(&|command| runtime.block_on(async { command.spawn().unwrap() }));
        }
        reap(&|command| command.spawn().unwrap());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_dropped_in_another_runtime_is_reaped_by_that() {
    within(LIMIT, || {
        let still = Builder::new_current_thread().build().unwrap();
        let other = multi_thread(2).build().unwrap();
        let mut child = still.block_on(async { cat().spawn().unwrap() });
        let (id, stdin) = (child.id().unwrap(), child.stdin.take());
        other.block_on(async { drop(child) });
        drop(stdin);
        wait_until_reaped(id);
        drop(still);
    });
}

#[test]
fn a_child_that_somebody_else_has_reaped_is_an_error() {
    in_each_runtime(|| async {
        let mut child = cat().spawn().unwrap();
        let stdin = child.stdin.take();
        let id = Pid::from_raw(child.id().unwrap() as i32).unwrap();
        let counts = Counts::new();
        let mut wait = child.wait();
        assert!(poll_with(&mut wait, &counts).is_pending());
        drop(stdin);
        let reaped = waitpid(Some(id), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(reaped.1.exit_status(), Some(0));
        let error = wait.await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::CHILD.raw_os_error()));
        assert!(child.try_wait().is_err());
        child.start_kill().expect("nobody is left to be killed");
    });
}

#[test]
fn waits_for_a_child_and_its_pipes_end_with_their_runtime() {
    on_each_flavour(|builder| {
        let runtime = builder.clone().build().unwrap();
        let mut child = runtime.block_on(async { cat().spawn().unwrap() });
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let counts = Counts::new();
        let (mut buf, mut again) = ([0; 4], [0; 4]);
        let (mut wait, mut read) = (child.wait(), stdout.read(&mut buf));
        assert!(poll_with(&mut wait, &counts).is_pending() && poll_with(&mut read, &counts).is_pending());
        drop(runtime);
        assert!(matches!(poll_with(&mut wait, &counts), Poll::Ready(Err(_))));
        assert!(matches!(poll_with(&mut read, &counts), Poll::Ready(Err(_))));
        drop((wait, read));
        builder.build().unwrap().block_on(async {
            assert!(child.wait().await.is_err() && stdout.read_exact(&mut again).await.is_err(), "at once");
            drop(stdin); // the child ends
            until(|| child.try_wait().unwrap().is_some()).await;
            assert!(child.wait().await.unwrap().success());
        });
    });
}

#[test]
fn a_child_started_outside_joins_the_runtime_it_waits_in() {
    within(LIMIT, || {
        let mut child = sh("exit 6").spawn().unwrap();
        assert_eq!(mini::block_on(child.wait()).unwrap().code(), Some(6));
        // A wait for a child that has ended needs no runtime.
        assert_eq!(block_on_elsewhere(child.wait()).unwrap().code(), Some(6));
        let mut child = sleeper().kill_on_drop(true).spawn().unwrap();
        let mut wait = child.wait(); // here
        let refused = caught(|| poll_with(&mut wait, &Counts::new()));
        let place = format!("{}:{}", file!(), line_of(include_str!("process.rs"), "// here"));
        assert!(refused.message.contains(&place), "{}", refused.message);
    });
}

/// One child, in one of the ways in which children end.
#[cfg(target_os = "linux")]
async fn one(way: usize) {
    let mut command = Command::new(if way.is_multiple_of(5) { "cat" } else { "true" });
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    match way % 5 {
        0 => child.kill().await.unwrap(),
        1 => assert!(child.wait().await.unwrap().success()),
        2 => assert!(child.wait_with_output().await.unwrap().status.success()),
        3 => drop(child),
        // Dropped in the middle of a wait, or at its end.
        _ => drop(poll_with(&mut child.wait(), &Counts::new())),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_children_leave_nothing_behind() {
    let _ = in_child("a_thousand_children_leave_nothing_behind", || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            builder.build().unwrap().block_on(async {
                mini::spawn(one(1)).await.unwrap();
                let before = open_files();
                let tasks: Vec<_> = (0..50)
                    .map(|lane| {
                        mini::spawn(async move {
                            for round in 0..20 {
                                one(lane + round).await;
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
                // Dropped children are reaped in the background.
                until(|| children().is_empty()).await;
                until(|| open_files() == before).await;
            });
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_keeps_one_reactor_of_a_runtime_that_is_gone() {
    let _ = in_child("a_child_keeps_one_reactor_of_a_runtime_that_is_gone", || {
        mini::block_on(async { assert!(Command::new("true").status().await.unwrap().success()) });
        let before = open_files();
        let runtime = multi_thread(4).build().unwrap();
        let child = runtime.block_on(async { sleeper().kill_on_drop(true).spawn().unwrap() });
        drop(runtime);
        // A pidfd and its reactor's three (the stand-in for a kqueue has four, and there the child listens to a pair of
        // sockets); without a child there would be none, with all four reactors thirteen.
        let kept = if cfg!(mini_kqueue_shim) { 6 } else { 4 };
        while open_files() > before + kept {
            thread::yield_now(); // threads may be on their way out
        }
        drop(child);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn without_descriptors_a_spawn_fails_and_leaves_no_child() {
    let _ = in_child("without_descriptors_a_spawn_fails_and_leaves_no_child", || {
        mini::block_on(async {
            let before = open_files();
            let limit = getrlimit(Resource::Nofile);
            // A child needs 3 at a time while it is started, and keeps 3: the spawn fails at each point in turn.
            for spare in 0..12 {
                let narrow = Rlimit { current: Some((before + spare) as u64), maximum: limit.maximum };
                setrlimit(Resource::Nofile, narrow).unwrap();
                let mut started = Vec::new();
                let refused = loop {
                    match cat().spawn() {
                        Ok(child) => started.push(child),
                        Err(refused) => break refused,
                    }
                };
                assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
                setrlimit(Resource::Nofile, limit).unwrap();
                for mut child in started {
                    child.kill().await.unwrap();
                }
                // Children that could not be watched were killed.
                until(|| children().is_empty()).await;
                until(|| open_files() == before).await;
            }
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn in_a_runtime_that_is_gone_a_spawn_fails_and_leaves_no_child() {
    let _ = in_child("in_a_runtime_that_is_gone_a_spawn_fails_and_leaves_no_child", || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            let runtime = builder.build().unwrap();
            let handle = runtime.handle().clone();
            drop(runtime);
            let inside = handle.enter();
            assert!(sleeper().spawn().unwrap_err().to_string().contains("shut down"));
            drop(inside);
            while !children().is_empty() {
                thread::yield_now();
            }
        }
    });
}
