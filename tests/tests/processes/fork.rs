//! fork(2): a child cannot do anything with the runtime of its parent, and the parent does not notice the child.
//!
//! Each test is a process of its own, so that no other test's thread has a lock when it forks.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt::Debug;
use std::fs;
use std::future::{pending, poll_fn};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Instant;

use mini::net::{TcpListener, TcpStream, UnixStream};
use mini::process::Command;
use mini::runtime::{Builder, Runtime};
use mini::signal::termination;
use mini::signal::unix::{SignalKind, signal};
use mini::task::{idle, yield_now};
use mini::time::{Duration, sleep};
use mini_tests::{Counts, LIMIT, block_on_elsewhere, caught, in_child, multi_thread, poll_with, spin_until};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, setpgid, waitpid,
};
use signal_hook::low_level::raise;

unsafe extern "C" {
    fn fork() -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

const REFUSAL: &str = "this mini runtime was built before fork(2) and serves only the parent process";

/// A process that has been forked. In the child it is `None`.
struct Forked(Option<Pid>);

impl Forked {
    /// Forks. A child that hangs is killed by a signal before the limit of its test is over.
    fn now() -> Forked {
        if cfg!(target_os = "linux") {
            wait_for_the_others_to_sleep();
        }
        // SAFETY: the child does more than POSIX promises to the child of a process with threads. But the other threads
        // were just seen asleep (elsewhere than on Linux they have nothing to do), so they hold no lock; only this
        // thread wakes them, but for a monitor, which the clock may. And all systems that mini runs on have allocators
        // and standard libraries that can be used in the child.
        let pid = unsafe { fork() };
        assert!(pid >= 0, "fork");
        if pid == 0 {
            // SAFETY: takes a number.
            unsafe { alarm(LIMIT.as_secs() as u32 / 2) };
            // Without a backtrace: to find the names in it takes seconds of a debug build's time, for each panic that a
            // test expects.
            panic::set_hook(Box::new(|panic| eprintln!("in the child: {panic}")));
        }
        Forked(Pid::from_raw(pid))
    }

    fn is_child(&self) -> bool {
        self.0.is_none()
    }

    /// How the child has ended.
    fn wait(self) -> WaitStatus {
        waitpid(self.0, WaitOptions::empty()).unwrap().unwrap().1
    }
}

/// Waits until all threads of this process but the calling one sleep (proc_pid_stat(5)).
fn wait_for_the_others_to_sleep() {
    let limit = Instant::now() + LIMIT / 4;
    spin_until(|| {
        assert!(Instant::now() < limit, "another thread does not come to rest");
        let own = fs::read_link("/proc/thread-self").unwrap();
        fs::read_dir("/proc/self/task").unwrap().flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next().unwrap_or_default(); // empty if the thread has ended
            own.ends_with(thread.file_name()) || state.is_empty() || state.starts_with('S')
        })
    });
}

/// Ends the child: well, if `body` does.
fn end_after(body: impl FnOnce()) -> ! {
    let ended = catch_unwind(AssertUnwindSafe(body));
    // SAFETY: takes a number; what is left undone is the parent's to do.
    unsafe { _exit(i32::from(ended.is_err())) }
}

/// Runs `body` in a forked process, which ends well if that does.
fn in_forked(body: impl FnOnce()) {
    let forked = Forked::now();
    if forked.is_child() {
        end_after(body);
    }
    assert_eq!(forked.wait().exit_status(), Some(0));
}

#[test]
fn a_child_process_of_the_parent_survives_its_handle_in_a_child() {
    let _ = in_child("a_child_process_of_the_parent_survives_its_handle_in_a_child", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let sleeper = Command::new("sleep").arg("10000").kill_on_drop(true).spawn().unwrap();
            let mut sleeper = Some(sleeper);
            in_forked(|| drop(sleeper.take()));
            let sleeper = sleeper.as_mut().unwrap();
            assert_eq!(sleeper.try_wait().unwrap(), None);
            sleeper.kill().await.unwrap();
        });
    });
}

/// A little of all that a runtime does.
fn use_all() {
    for builder in [Builder::new_current_thread(), multi_thread(2)] {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let (here, there) = UnixStream::pair().unwrap();
            let task = mini::spawn(async move {
                sleep(Duration::from_millis(1)).await;
                there.write_all(&[mini::spawn_blocking(|| 7).await.unwrap()]).await.unwrap();
            });
            let mut byte = [0];
            here.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [7]);
            task.await.unwrap();
        });
    }
}

/// Serves a runtime that no thread serves by itself.
type Serve = fn(&Runtime);

/// Runtimes that serve sockets: by workers, by a thread in `block_on`, and by no thread just now.
fn serving() -> [(Runtime, StdUnixStream, Serve); 3] {
    let echo = |runtime: &Runtime| {
        let (here, there) = StdUnixStream::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        let there = UnixStream::from_std(there).unwrap();
        drop(runtime.spawn(async move {
            let mut byte = [0];
            while let Ok(1..) = there.read(&mut byte).await {
                there.write_all(&byte).await.unwrap();
            }
        }));
        here
    };
    let by_workers = multi_thread(2).build().unwrap();
    let first = echo(&by_workers);

    let by_thread = Builder::new_current_thread().build().unwrap();
    let second = echo(&by_thread);
    let handle = by_thread.handle().clone();
    drop(thread::spawn(move || handle.block_on(pending::<()>())));

    let by_nobody = Builder::new_current_thread().build().unwrap();
    let third = echo(&by_nobody);
    by_nobody.block_on(async {
        for _ in 0..10 {
            yield_now().await; // the task registers its socket
        }
    });
    [
        (by_workers, first, |_| ()),
        (by_thread, second, |_| ()),
        (by_nobody, third, |runtime| assert_eq!(runtime.turn(LIMIT).polls(), 1)),
    ]
}

/// The runtime of the parent still has its events.
fn is_served(runtime: &Runtime, stream: &mut StdUnixStream, serve: Serve) {
    stream.write_all(b"x").unwrap();
    serve(runtime);
    stream.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_new_runtime_works_in_a_child() {
    let _ = in_child("a_new_runtime_works_in_a_child", || {
        in_forked(use_all);
        for (runtime, mut stream, serve) in serving() {
            in_forked(use_all);
            in_forked(|| in_forked(use_all)); // and in a child of that
            is_served(&runtime, &mut stream, serve);
            std::mem::forget(runtime);
        }
    });
}

#[test]
fn the_parents_runtime_refuses_to_serve_in_a_child() {
    let _ = in_child("the_parents_runtime_refuses_to_serve_in_a_child", || {
        for (runtime, mut stream, serve) in serving() {
            let is_multi_thread = format!("{runtime:?}").contains("multi_thread");
            let (handle, inside) = (runtime.handle().clone(), runtime.enter());
            in_forked(|| {
                let refused = |call: &dyn Fn()| {
                    let text = caught(call).message;
                    assert!(text.contains(REFUSAL), "{text}");
                };
                refused(&|| runtime.block_on(async {}));
                refused(&|| handle.block_on(async {}));
                refused(&|| mini::block_on(async {}));
                refused(&|| drop(runtime.enter()));
                refused(&|| drop(handle.spawn(async {})));
                refused(&|| drop(mini::spawn(async {})));
                refused(&|| drop(handle.spawn_blocking(|| ())));
                refused(&|| drop(mini::spawn_blocking(|| ())));
                let (here, _there) = UnixStream::pair().unwrap();
                is_left_in_parent(block_on_elsewhere(here.read(&mut [0])));
                if !is_multi_thread {
                    refused(&|| assert_eq!(runtime.turn(Duration::ZERO).polls(), 0));
                    refused(&|| assert_eq!(runtime.next_deadline(), None));
                }
                use_all(); // inside of it
            });
            drop(inside);
            is_served(&runtime, &mut stream, serve);
            std::mem::forget(runtime);
        }
    });
}

#[test]
fn dropping_the_parents_runtime_in_a_child_changes_nothing() {
    let Some(stderr) = in_child("dropping_the_parents_runtime_in_a_child_changes_nothing", || {
        for (runtime, mut stream, serve) in serving() {
            let mut runtime = Some(runtime);
            in_forked(|| {
                let handle = runtime.as_ref().unwrap().handle().clone();
                drop(runtime.take());
                assert!(caught(|| handle.spawn(async {})).message.contains(REFUSAL));
                drop(handle);
                use_all();
            });
            let runtime = runtime.unwrap();
            is_served(&runtime, &mut stream, serve);
            std::mem::forget(runtime);
        }
    }) else {
        return;
    };
    assert!(!stderr.contains("shutdown left"), "{stderr}");
}

#[test]
fn dropping_a_socket_in_a_child_leaves_it_to_the_parent() {
    let _ = in_child("dropping_a_socket_in_a_child_leaves_it_to_the_parent", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (here, there) = runtime.block_on(async { UnixStream::pair().unwrap() });
        let mut byte = [0];
        let mut read = Box::pin(there.read(&mut byte));
        runtime.block_on(async { assert!(poll_with(&mut read, &Counts::new()).is_pending()) });
        drop(read);
        let mut there = Some(there);
        in_forked(|| drop(there.take()));
        let there = there.unwrap();
        runtime.block_on(async {
            let writer = mini::spawn(async move { here.write_all(b"x").await.unwrap() });
            there.read_exact(&mut byte).await.unwrap();
            writer.await.unwrap();
        });
    });
}

fn is_left_in_parent<T: Debug>(result: io::Result<T>) {
    let error = result.unwrap_err();
    assert!(error.to_string().contains("built before fork(2)"), "{error}");
}

#[test]
fn sockets_of_the_parents_runtime_do_not_wait_in_a_child() {
    let _ = in_child("sockets_of_the_parents_runtime_do_not_wait_in_a_child", || {
        let runtime = multi_thread(2).build().unwrap();
        let listeners = [(); 2].map(|()| runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap());
        let [registered, fresh] = &listeners;
        assert!(poll_with(&mut registered.accept(), &Counts::new()).is_pending(), "it is registered");
        in_forked(|| {
            let builders = [Builder::new_current_thread(), multi_thread(2)];
            for runtime in builders.map(|builder| builder.build().unwrap()) {
                for listener in &listeners {
                    is_left_in_parent(runtime.block_on(listener.accept()));
                    is_left_in_parent(runtime.block_on(listener.accept()));
                }
            }
            listeners.iter().for_each(|listener| is_left_in_parent(block_on_elsewhere(listener.accept())));
        });
        for listener in [registered, fresh] {
            serve_one(&runtime, listener);
        }
    });
}

#[test]
fn a_socket_is_taken_along_into_the_childs_runtime() {
    let _ = in_child("a_socket_is_taken_along_into_the_childs_runtime", || {
        let runtime = multi_thread(2).build().unwrap();
        let outside = StdListener::bind("127.0.0.1:0").unwrap();
        let outside = TcpListener::from_std(outside).unwrap(); // belongs to none
        let inside = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        assert!(poll_with(&mut inside.accept(), &Counts::new()).is_pending(), "it is registered");
        in_forked(|| {
            let copy = inside.as_fd().try_clone_to_owned().unwrap();
            let copy = TcpListener::from_std(copy.into()).unwrap();
            let runtime = multi_thread(2).build().unwrap();
            serve_one(&runtime, &copy);
            serve_one(&runtime, &outside);
            accept_two_at_once(&runtime, &outside);
        });
        serve_one(&runtime, &inside);
        serve_one(&runtime, &outside);
    });
}

fn serve_one(runtime: &Runtime, listener: &TcpListener) {
    let addr = listener.local_addr().unwrap();
    runtime.block_on(async {
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"x").await.unwrap();
        };
        let client = mini::spawn(async move {
            let stream = TcpStream::connect(addr).await.unwrap();
            stream.read_exact(&mut [0]).await.unwrap();
        });
        server.await;
        client.await.unwrap();
    });
}

fn accept_two_at_once(runtime: &Runtime, listener: &TcpListener) {
    let addr = listener.local_addr().unwrap();
    let waiting = [(); 2].map(|()| listener.accept());
    let clients = thread::spawn(move || [(); 2].map(|()| StdStream::connect(addr).unwrap()));
    runtime.block_on(async {
        for accept in waiting {
            accept.await.unwrap();
        }
    });
    clients.join().unwrap();
}

#[test]
fn a_child_forked_by_a_future_may_have_a_runtime_but_not_return() {
    let _ = in_child("a_child_forked_by_a_future_may_have_a_runtime_but_not_return", || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            let runtime = builder.build().unwrap();
            let (mut here, there) = StdUnixStream::pair().unwrap();
            there.set_nonblocking(true).unwrap();
            let there = UnixStream::from_std(there).unwrap();
            let mut forked = None;
            let ended = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    let mut byte = [0];
                    assert!(poll_with(&mut there.read(&mut byte), &Counts::new()).is_pending());
                    let process = Forked::now();
                    let is_child = process.is_child();
                    forked = Some(process);
                    if is_child {
                        use_all();
                        poll_fn(|_| Poll::<()>::Pending).await;
                    }
                    here.write_all(b"x").unwrap();
                    there.read_exact(&mut byte).await.unwrap();
                })
            }));
            let forked = forked.unwrap();
            if forked.is_child() {
                end_after(|| {
                    let text = mini_tests::text_of(&*ended.unwrap_err()).to_owned();
                    assert!(text.contains(REFUSAL), "{text}");
                    drop(runtime);
                });
            }
            assert_eq!(forked.wait().exit_status(), Some(0));
            assert!(ended.is_ok());
        }
    });
}

/// Forks in the future of `block_on`, which in the child asks to be polled again and again by `wait`: the first poll,
/// or the next look of its worker, panics.
fn fork_and_go_on<F: Future>(runtime: &Runtime, wait: impl Fn() -> F) {
    let mut forked = None;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let process = Forked::now();
            let is_child = process.is_child();
            forked = Some(process);
            for _ in 0..if is_child { 10_000 } else { 0 } {
                wait().await;
            }
        })
    }));
    let forked = forked.unwrap();
    if forked.is_child() {
        end_after(|| {
            let text = mini_tests::text_of(&*ended.unwrap_err()).to_owned();
            assert!(text.contains(REFUSAL), "{text}");
        });
    }
    assert_eq!(forked.wait().exit_status(), Some(0));
    assert!(ended.is_ok());
}

#[test]
fn a_child_forked_by_a_future_that_never_waits_does_not_go_on() {
    let _ = in_child("a_child_forked_by_a_future_that_never_waits_does_not_go_on", || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            let runtime = builder.build().unwrap();
            fork_and_go_on(&runtime, yield_now);
            fork_and_go_on(&runtime, idle);
        }
        let runtime = Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        let (send, held) = mpsc::channel();
        drop(thread::spawn(move || {
            handle.block_on(async {
                send.send(()).unwrap();
                pending::<()>().await;
            })
        }));
        held.recv().unwrap();
        fork_and_go_on(&runtime, yield_now); // beside the thread that has the core
        std::mem::forget(runtime);
    });
}

#[test]
fn a_child_forked_by_a_future_polls_no_task_of_its_parent() {
    let _ = in_child("a_child_forked_by_a_future_polls_no_task_of_its_parent", || {
        let mut paused = Builder::new_current_thread();
        paused.start_paused(true); // a look comes after a number of polls, however long the fork takes
        for builder in [paused, multi_thread(2)] {
            let runtime = builder.build().unwrap();
            let (polls, mut forked) = (Rc::new(Cell::new(0)), None);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    for _ in 0..3 {
                        let polls = polls.clone();
                        drop(mini::spawn_local(async move { polls.set(polls.get() + 1) }));
                    }
                    forked = Some(Forked::now());
                    yield_now().await;
                });
            }));
            let forked = forked.unwrap();
            if forked.is_child() {
                end_after(|| assert!(ended.is_err() && polls.get() == 0, "{} polls", polls.get()));
            }
            assert_eq!(forked.wait().exit_status(), Some(0));
            assert_eq!((ended.is_ok(), polls.get()), (true, 3));
        }
    });
}

/// A panic of the main future shows them elsewhere.
#[test]
fn a_child_that_is_refused_shows_no_tasks_of_its_parent() {
    let Some(stderr) = in_child("a_child_that_is_refused_shows_no_tasks_of_its_parent", || {
        let runtime = Builder::new_current_thread().warnings(true).build().unwrap();
        runtime.block_on(async { drop(mini::task::Builder::new().name("left").spawn(pending::<()>())) });
        fork_and_go_on(&runtime, yield_now);
    }) else {
        return;
    };
    assert!(stderr.contains(REFUSAL) && !stderr.contains("\"left\""), "{stderr}");
}

#[test]
fn a_child_that_returns_to_a_thread_of_the_runtime_is_ended() {
    let Some(stderr) = in_child("a_child_that_returns_to_a_thread_of_the_runtime_is_ended", || {
        let runtime = multi_thread(2).build().unwrap();
        let (send, forked) = mpsc::channel();
        let report = move || {
            let process = Forked::now();
            if !process.is_child() {
                send.send(process).unwrap();
            }
        };
        let report_too = report.clone();
        drop(runtime.spawn(async move { report() }));
        let task = forked.recv().unwrap();
        drop(runtime.spawn_blocking(report_too));
        let job = forked.recv().unwrap();
        for forked in [task, job] {
            let status = forked.wait();
            assert_eq!(status.terminating_signal(), Some(6), "SIGABRT: {status:?}");
        }
        runtime.block_on(yield_now());
    }) else {
        return;
    };
    assert_eq!(stderr.matches(REFUSAL).count(), 2, "{stderr}");
}

/// A runtime that shows the task `name` at SIGQUIT.
fn dumping(name: &str) -> Runtime {
    let runtime = Builder::new_current_thread().dump_on_quit(true).build().unwrap();
    runtime.block_on(async { drop(mini::task::Builder::new().name(name).spawn(pending::<()>())) });
    runtime
}

/// Has a runtime in a child, which answers a SIGQUIT.
fn dump_in_the_child() {
    let _own = dumping("of the child");
    let (out, stderr) = rustix::pipe::pipe().unwrap();
    rustix::stdio::dup2_stderr(&stderr).unwrap();
    spin_until(|| {
        // The thread that answers may not wait yet, and then a SIGQUIT ends the process.
        fs::read_dir("/proc/self/task")
            .unwrap()
            .flatten()
            .any(|thread| fs::read_to_string(thread.path().join("comm")).unwrap_or_default() == "mini-dump\n")
    });
    wait_for_the_others_to_sleep();
    kill_process(getpid(), Signal::QUIT).unwrap();
    let mut lines = BufReader::new(fs::File::from(out)).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"of the child\"")));
}

/// The handler of the parent is still there in a child that has one of its own.
#[test]
fn a_childs_request_for_a_dump_is_not_its_parents() {
    let Some(stderr) = in_child("a_childs_request_for_a_dump_is_not_its_parents", || {
        let runtime = dumping("of the parent");
        in_forked(dump_in_the_child);
        wait_for_the_others_to_sleep(); // what the parent was asked for, it has told
        drop(runtime);
    }) else {
        return;
    };
    assert!(!stderr.contains("\"of the parent\""), "{stderr}");
}

#[test]
fn a_child_answers_sigquit_although_its_parent_listens_to_it() {
    let _ = in_child("a_child_answers_sigquit_although_its_parent_listens_to_it", || {
        let _listener = signal(SignalKind::quit()).unwrap();
        in_forked(dump_in_the_child);
    });
}

/// Waits for an event of its own: afterwards the reactor has delivered all events that came before.
async fn hear_the_reactor() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut byte = [0];
    let mut read = there.read(&mut byte);
    assert!(poll_with(&mut read, &Counts::new()).is_pending());
    here.write_all(b"x").await.unwrap();
    read.await.unwrap();
}

#[test]
fn a_signal_to_a_child_ends_it_and_is_not_heard_by_its_parent() {
    let _ = in_child("a_signal_to_a_child_ends_it_and_is_not_heard_by_its_parent", || {
        for builder in [Builder::new_current_thread(), multi_thread(2)] {
            let runtime = builder.build().unwrap();
            let inside = runtime.enter();
            let mut signals = signal(SignalKind::terminate()).unwrap();
            drop(inside);
            runtime.block_on(async { assert!(poll_with(&mut signals.recv(), &Counts::new()).is_pending()) });
            let forked = Forked::now();
            if forked.is_child() {
                end_after(|| {
                    loop {
                        thread::park();
                    }
                });
            }
            // It may come before the child has done anything.
            kill_process(forked.0.unwrap(), Signal::TERM).unwrap();
            assert_eq!(forked.wait().terminating_signal(), Some(Signal::TERM.as_raw()));
            runtime.block_on(async {
                hear_the_reactor().await;
                assert!(poll_with(&mut signals.recv(), &Counts::new()).is_pending());
                raise(Signal::TERM.as_raw()).unwrap();
                assert_eq!(signals.recv().await, Some(()));
            });
        }
    });
}

#[test]
fn a_signal_to_the_group_is_heard_once_by_each_process() {
    let _ = in_child("a_signal_to_the_group_is_heard_once_by_each_process", || {
        setpgid(None, None).unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let inside = runtime.enter();
        let mut signals = signal(SignalKind::interrupt()).unwrap();
        drop(inside);
        let (mut here, mut there) = StdUnixStream::pair().unwrap();
        let forked = Forked::now();
        if forked.is_child() {
            end_after(|| {
                Builder::new_current_thread().build().unwrap().block_on(async {
                    let mut own = signal(SignalKind::interrupt()).unwrap();
                    there.write_all(b"x").unwrap();
                    assert_eq!(own.recv().await, Some(()));
                    hear_the_reactor().await;
                    assert!(poll_with(&mut own.recv(), &Counts::new()).is_pending());
                    drop(own);
                    raise(Signal::INT.as_raw()).unwrap(); // it ends nothing any more
                });
            });
        }
        here.read_exact(&mut [0]).unwrap();
        kill_process_group(getpid(), Signal::INT).unwrap();
        assert_eq!(forked.wait().exit_status(), Some(0));
        runtime.block_on(async {
            assert_eq!(signals.recv().await, Some(()));
            hear_the_reactor().await;
            assert!(poll_with(&mut signals.recv(), &Counts::new()).is_pending());
        });
    });
}

#[test]
fn a_listener_of_the_parent_is_refused_in_a_child_and_goes_on_in_the_parent() {
    let _ = in_child("a_listener_of_the_parent_is_refused_in_a_child_and_goes_on_in_the_parent", || {
        let runtime = multi_thread(2).build().unwrap();
        let mut outside = signal(SignalKind::user_defined1()).unwrap();
        let mut asked = termination();
        let inside = runtime.enter();
        let mut inner = signal(SignalKind::user_defined1()).unwrap();
        drop(inside);
        raise(Signal::USR1.as_raw()).unwrap(); // what the child may take away
        in_forked(|| {
            let runtime = Builder::new_current_thread().build().unwrap();
            let refused = |call: &mut dyn FnMut()| {
                let text = caught(|| runtime.block_on(async { call() })).message;
                assert!(text.contains("made before fork(2)"), "{text}");
            };
            let counts = Counts::new();
            for listener in [&mut outside, &mut inner] {
                refused(&mut || assert!(poll_with(&mut listener.recv(), &counts).is_pending()));
            }
            refused(&mut || assert!(poll_with(&mut asked, &counts).is_pending()));
        });
        runtime.block_on(async {
            for listener in [&mut outside, &mut inner] {
                assert_eq!(listener.recv().await, Some(()));
                raise(Signal::USR1.as_raw()).unwrap();
                assert_eq!(listener.recv().await, Some(()));
            }
        });
    });
}

#[test]
fn a_child_goes_on_after_a_signal_that_does_nothing_by_default() {
    let _ = in_child("a_child_goes_on_after_a_signal_that_does_nothing_by_default", || {
        let _listener = signal(SignalKind::window_change()).unwrap();
        in_forked(|| {
            raise(Signal::WINCH.as_raw()).unwrap();
            let mut own = signal(SignalKind::window_change()).unwrap();
            raise(Signal::WINCH.as_raw()).unwrap();
            assert_eq!(Builder::new_current_thread().build().unwrap().block_on(own.recv()), Some(()));
        });
    });
}

/// An eventfd is served by a thread, as it is no pipe, terminal or socket. Reading blocks while it is zero, writing
/// while it is full.
#[cfg(target_os = "linux")]
fn counter(count: u64) -> fs::File {
    use rustix::event::{EventfdFlags, eventfd};

    let fd = fs::File::from(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    (&fd).write_all(&count.to_ne_bytes()).unwrap();
    fd
}

/// Standard streams that threads of the parent read and write when it forks.
#[cfg(target_os = "linux")]
#[test]
fn standard_streams_are_served_by_threads_of_the_child() {
    use mini::io::{stdin, stdout};

    let _ = in_child("standard_streams_are_served_by_threads_of_the_child", || {
        let (empty, full) = (counter(0), counter(u64::MAX - 1));
        let own = rustix::io::dup(rustix::stdio::stdout()).unwrap();
        rustix::stdio::dup2_stdin(&empty).unwrap();
        rustix::stdio::dup2_stdout(&full).unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let mut bytes = [0; 8];
        runtime.block_on(async {
            assert!(poll_with(&mut stdin().read(&mut bytes), &Counts::new()).is_pending());
            stdout().write_all(&1_u64.to_ne_bytes()).await.unwrap();
            assert!(poll_with(&mut stdout().flush(), &Counts::new()).is_pending());
        });
        in_forked(use_streams_of_the_child);
        (&empty).write_all(&3_u64.to_ne_bytes()).unwrap();
        (&full).read_exact(&mut [0; 8]).unwrap();
        runtime.block_on(async {
            assert_eq!(stdin().read(&mut bytes).await.unwrap(), 8);
            stdout().flush().await.unwrap();
        });
        assert_eq!(bytes, 3_u64.to_ne_bytes());
        (&full).read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, 1_u64.to_ne_bytes());
        rustix::stdio::dup2_stdout(&own).unwrap();
    });
}

#[cfg(target_os = "linux")]
fn use_streams_of_the_child() {
    use mini::io::{stdin, stdout};

    let (input, output) = (counter(7), counter(0));
    rustix::stdio::dup2_stdin(&input).unwrap();
    rustix::stdio::dup2_stdout(&output).unwrap();
    Builder::new_current_thread().build().unwrap().block_on(async {
        let mut bytes = [0; 8];
        assert_eq!(stdin().read(&mut bytes).await.unwrap(), 8);
        assert_eq!(bytes, 7_u64.to_ne_bytes());
        stdout().flush().await.unwrap(); // what waits is the parent's to write
        stdout().write_all(&5_u64.to_ne_bytes()).await.unwrap();
        stdout().flush().await.unwrap();
        (&output).read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, 5_u64.to_ne_bytes(), "and nothing of the parent's");
    });
}

/// The standard library forks only if it has to do something in the child.
#[test]
fn starting_a_program_changes_nothing() {
    let _ = in_child("starting_a_program_changes_nothing", || {
        let runtime = multi_thread(2).build().unwrap();
        runtime.block_on(async {
            for is_forked in [false, true] {
                let mut command = Command::new("true");
                if is_forked {
                    command.uid(rustix::process::getuid().as_raw());
                }
                assert!(command.status().await.unwrap().success());
                mini::spawn(sleep(Duration::from_millis(1))).await.unwrap();
            }
        });
        assert_eq!(mini_tests::block_on_elsewhere(runtime.spawn_blocking(|| 7)).unwrap(), 7);
    });
}

/// The thread that finds out what a stack means is not there in a child.
#[test]
#[cfg(all(feature = "backtrace", target_os = "linux", target_arch = "x86_64", not(mini_kqueue_shim)))]
fn a_stack_that_nobody_finds_out_is_not_waited_for() {
    let _ = in_child("a_stack_that_nobody_finds_out_is_not_waited_for", || {
        let (send, warnings) = mpsc::channel();
        let hook = move |warning: &mini::runtime::Warning| drop(send.send(warning.clone()));
        let runtime = Builder::new_current_thread().on_warning(hook).build().unwrap();
        let warning = runtime.block_on(async { warnings.recv().unwrap() });
        // At once: in a debug build that thread is at work for half a second.
        // SAFETY: the child looks at a value that is there, and ends.
        let pid = unsafe { fork() };
        if pid == 0 {
            // SAFETY: takes a number.
            unsafe { alarm(LIMIT.as_secs() as u32 / 4) };
            let _ = warning.stack();
            // SAFETY: takes a number.
            unsafe { _exit(0) };
        }
        let status = waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap().1;
        assert_eq!(status.exit_status(), Some(0), "{status:?}");
        drop(runtime);
    });
}
