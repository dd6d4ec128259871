//! Outside of a runtime: a future that cannot work there panics whenever it is polled, also if it would not have to
//! wait, and names the call and its line.

use std::io::{SeekFrom, Write};
use std::net::TcpListener as StdListener;
use std::pin::pin;
use std::process::{Command as StdCommand, Stdio};
use std::task::{Context, Waker};

use mini::fs;
use mini::net::{TcpSocket, TcpStream, UnixListener, UnixStream};
use mini::process::{ChildStdin, ChildStdout, Command};
use mini::signal::unix::{SignalKind, signal};
use mini::task::JoinSet;
use mini_tests::{LIMIT, caught, within};

/// Polls the future that an expression makes, once: that panics, and names `call` and this line.
macro_rules! refused {
    ($call:literal, $future:expr) => {{
        let line = line!();
        let seen = caught(|| match $future {
            future => drop(pin!(future).poll(&mut Context::from_waker(Waker::noop()))),
        });
        let start = format!("`{}`, called at {}:{line}:", $call, file!());
        assert!(seen.message.starts_with(&start), "{start} {seen:?}");
        assert!(seen.message.contains("no mini runtime") || seen.message.contains("needs a mini runtime"), "{seen:?}");
    }};
}

#[test]
fn a_connect_is_refused_whether_or_not_it_would_have_to_wait() {
    within(LIMIT, || {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        refused!("TcpStream::connect", TcpStream::connect(addr));
        refused!("TcpStream::connect", TcpStream::connect("no address"));
        refused!("TcpStream::connect", TcpStream::connect(("localhost", addr.port())));
        refused!("TcpSocket::connect", TcpSocket::new_v4().unwrap().connect(addr));
        assert!(listener.set_nonblocking(true).is_ok() && listener.accept().is_err(), "nobody has come");

        let path = std::env::temp_dir().join(format!("mini-outside-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        refused!("UnixStream::connect", UnixStream::connect(&path));
        refused!("UnixStream::connect", UnixStream::connect(path.join("nothing")));
        drop(listener);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_wait_for_a_child_is_refused_whether_or_not_it_has_ended() {
    within(LIMIT, || {
        let ended = || {
            let mut child = Command::new("true").stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().unwrap();
            let stdout = child.stdout.take().unwrap();
            // Its output ends when it exits, or just before.
            drop(std::io::read_to_string(std::fs::File::from(stdout.into_owned_fd().unwrap())));
            child
        };
        refused!("Child::wait", ended().wait());
        refused!("Child::kill", ended().kill());
        refused!("Child::wait_with_output", ended().wait_with_output());
        refused!("Command::status", Command::new("true").status());
        refused!("Command::output", Command::new("true").output());
        let mut running = Command::new("sleep").arg("1000").kill_on_drop(true).spawn().unwrap();
        refused!("Child::wait", running.wait());
        mini::block_on(running.kill()).unwrap();
        assert!(mini_tests::block_on_elsewhere(running.wait()).is_ok(), "its status is known");
    });
}

#[test]
fn the_pipes_of_a_child_are_refused_a_wait() {
    within(LIMIT, || {
        let mut cat = StdCommand::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = ChildStdin::from_std(cat.stdin.take().unwrap()).unwrap();
        let stdout = ChildStdout::from_std(cat.stdout.take().unwrap()).unwrap();
        refused!("Sender::write_all", stdin.write_all(&[b'x'; 1 << 20]));
        refused!("Receiver::read", stdout.read(&mut [0]));
        refused!("Receiver::read_exact", stdout.read_exact(&mut [0]));
        drop(stdin);
        cat.wait().unwrap();
    });
}

#[test]
fn a_signal_is_refused_whether_or_not_it_has_come() {
    within(LIMIT, || {
        let mut signals = signal(SignalKind::window_change()).unwrap();
        refused!("Signal::recv", signals.recv());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH).unwrap();
        refused!("Signal::recv", signals.recv());
        refused!("Signal::poll_recv", std::future::poll_fn(|cx| signals.poll_recv(cx)));
        assert_eq!(mini::block_on(signals.recv()), Some(()), "it is still there");
        refused!("mini::signal::ctrl_c", mini::signal::ctrl_c());
    });
}

#[test]
fn an_operation_on_a_file_is_refused_whatever_the_kernel_has_in_memory() {
    within(LIMIT, || {
        let dir = std::env::temp_dir().join(format!("mini-outside-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("file");
        std::fs::File::create(&path).unwrap().write_all(b"content").unwrap();
        let mut file = mini::block_on(fs::OpenOptions::new().read(true).write(true).open(&path)).unwrap();
        let mut entries = mini::block_on(fs::read_dir(&dir)).unwrap();

        refused!("mini::fs::read", fs::read(&path));
        refused!("mini::fs::File::read", file.read(&mut [0; 4]));
        refused!("mini::fs::File::read_exact", file.read_exact(&mut [0; 4]));
        refused!("mini::fs::File::read_to_end", file.read_to_end(&mut Vec::new()));
        refused!("mini::fs::File::write", file.write(b"x"));
        refused!("mini::fs::File::write_all", file.write_all(b"x"));
        refused!("mini::fs::File::seek", file.seek(SeekFrom::Start(1)));
        refused!("mini::fs::File::metadata", file.metadata());
        refused!("mini::fs::ReadDir::next_entry", entries.next_entry());
        mini::block_on(async {
            assert!(entries.next_entry().await.unwrap().is_some());
            assert!(entries.next_entry().await.unwrap().is_none());
        });
        refused!("mini::fs::ReadDir::next_entry", entries.next_entry());
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        std::fs::remove_dir_all(dir).unwrap();
    });
}

#[test]
fn a_set_of_tasks_names_its_own_methods_and_the_callers_line() {
    let check = |seen: mini_tests::Caught, line: u32, start: &str| {
        assert_eq!((seen.file.as_str(), seen.line), (file!(), line), "{seen:?}");
        assert!(seen.message.starts_with(start), "{seen:?}");
    };
    check(caught(|| JoinSet::new().spawn(async {})), line!(), "JoinSet::spawn needs a mini runtime");
    check(caught(|| JoinSet::new().spawn_local(async {})), line!(), "JoinSet::spawn_local needs a mini runtime");
    check(caught(|| JoinSet::new().spawn_blocking(|| ())), line!(), "JoinSet::spawn_blocking needs a mini runtime");
    check(caught(|| JoinSet::from_iter([async {}])), line!(), "JoinSet::spawn needs a mini runtime");
    check(caught(|| JoinSet::new().extend([async {}])), line!(), "JoinSet::spawn needs a mini runtime");
}

#[test]
fn a_task_that_waits_for_a_child_shows_the_line_of_the_call() {
    within(LIMIT, || {
        mini::block_on(async {
            let wait_of = async |task: &mini::task::JoinHandle<()>| {
                let mut text = String::new();
                mini_tests::until(|| {
                    text = format!("{task:?}");
                    text.contains("last_wait")
                })
                .await;
                text
            };
            let sleep = || {
                let mut command = Command::new("sleep");
                command.arg("1000").kill_on_drop(true);
                command
            };
            let line = line!() + 1;
            let task = mini::spawn(async move { drop(sleep().status().await) });
            let text = wait_of(&task).await;
            assert!(text.contains(&format!("at {}:{line}:", file!())), "{text}");
            task.abort();
            let line = line!() + 1;
            let task = mini::spawn(async move { drop(sleep().output().await) });
            let text = wait_of(&task).await;
            assert!(text.contains(&format!("at {}:{line}:", file!())), "{text}");
            task.abort();
        });
    });
}
