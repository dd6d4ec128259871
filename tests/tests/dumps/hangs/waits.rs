//! Tasks that wait for the world, for a time, for their children, or for nothing.

use std::future::{pending, poll_fn};
use std::io::{BufRead, BufReader};
use std::task::Poll;
use std::time::Duration;

use mini::net::{TcpListener, UnixStream};
use mini::sync::oneshot;
use mini::task::Group;
use mini::time::sleep;
use mini_tests::net_support::tcp_pair;
use mini_tests::{LIMIT, in_child, multi_thread, on_each_flavour, within};
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use rustix::stdio::dup2_stderr;

use super::{End, at, hang, hang_in, task, until};

#[test]
fn a_future_that_drops_its_waker() {
    async fn program(_: End) {
        let (_end, ended) = oneshot::channel::<()>();
        let forgetful = poll_fn(|_| Poll::<()>::Pending); // keeps no waker
        let task = task("forgetful", forgetful); // is lost
        let _ = ended.await;
        drop(task);
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[&["1 LOST task"], &["\"forgetful\"", &at!("// is lost"), "LOST", "unknown to mini"]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_peer_that_says_nothing() {
    async fn program(_: End) {
        let (client, _server) = tcp_pair().await;
        let asks = async move {
            client.write_all(b"PING").await.unwrap();
            let _ = client.read(&mut [0; 4]).await; // no answer
        };
        task("asks", asks);
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["\"asks\"", "Read on fd ", &at!("// no answer"), "unchanged since the dump before"]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_group_that_waits_for_one_task_of_many() {
    async fn program(_: End) {
        let group = Group::new().grace(Duration::ZERO);
        for _ in 0..50 {
            drop(group.spawn(async {}));
        }
        let (stream, _peer) = UnixStream::pair().unwrap();
        let stays = async move {
            let _ = stream.read(&mut [0]).await; // the one stays
        };
        drop(group.spawn(stays)); // spawns it
        let theirs = group.clone();
        task("waits", async move { theirs.wait().await }); // waits for the group
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[
            &["\"waits\"", "Join of one task at", &at!("// waits for the group")],
            &[&at!("// spawns it"), "Read", &at!("// the one stays")],
        ];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_scope_that_waits_for_one_child_of_many() {
    async fn program(_: End) {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let scope = mini::scope!(|scope| {
            for n in 0..3 {
                let stream = &stream;
                scope.spawn(async move {
                    mini::task::yield_now().await;
                    if n == 1 {
                        let _ = stream.read(&mut [0]).await; // the child
                    }
                });
            }
        });
        scope.await;
    }
    on_each_flavour(|builder| {
        let in_a_task = |end| async move { task("scope", program(end)).await.unwrap() };
        hang(&builder, in_a_task, &[&["\"scope\"", "Read", &at!("// the child")]]);
    });
}

#[test]
fn seconds_taken_for_milliseconds() {
    async fn program(_: End) {
        const RETRY_AFTER_MS: u64 = 10_000; // milliseconds
        let retry = async {
            sleep(Duration::from_secs(RETRY_AFTER_MS)).await; // sleeps for hours
        };
        task("retry", retry);
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[&["\"retry\"", "Timer", &at!("// sleeps for hours"), "due in 3 h"]];
        hang(&builder, program, shown);
    });
}

/// The dump has both lines, until the task waits for something else.
#[test]
fn two_waits_of_one_task() {
    async fn program(go: End, end: End) {
        let ((first, a), (second, b)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let both = async move {
            let one = async { first.read(&mut [0]).await }; // the one
            let other = async { second.read(&mut [0]).await }; // the other
            let _ = mini::join!(one, other);
            let _ = end.recv().await; // unknown
        };
        task("both", both);
        let _ = go.recv().await;
        drop((a, b));
        pending().await
    }
    on_each_flavour(|builder| {
        let (go, gone) = async_channel::bounded(1);
        hang_in(
            builder.build().unwrap(),
            |end| program(gone, end),
            |handle| {
                until(handle, &[&["\"both\"", "Read", &at!("// the one"), "also: ", &at!("// the other")]]);
                drop(go);
                let dump = until(handle, &[&["\"both\"", "waiting: something unknown"]]);
                assert!(!dump.to_string().contains("beside"), "{dump}");
            },
        );
    });
}

#[test]
fn a_shutdown_that_waits_for_a_task_that_does_not_end() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (quit, wait) = std::sync::mpsc::channel::<()>();
        let stays = async move {
            begun.send(()).unwrap();
            let _ = wait.recv();
        };
        let task = mini::task::Builder::new().name("stays").spawn_on(stays, runtime.handle()); // stays
        has_begun.recv().unwrap();
        let handle = runtime.handle().clone();
        let left = runtime.shutdown_timeout(Duration::from_millis(1));
        let text = left.to_string();
        assert!(text.contains(&format!("left task {} \"stays\" behind", task.id())), "{text}");
        assert!(text.contains(&at!("// stays")), "{text}");
        // It can still be seen in a dump.
        until(&handle, &[&["worker", "in task", "\"stays\"", &at!("// stays")]]);
        drop(quit);
    });
}

#[test]
fn no_file_descriptor_is_left() {
    async fn program(_: End) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accepts = async move {
            let mut open = Vec::new();
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => open.push(stream),
                    Err(_) => mini::task::yield_now().await, // and once more
                }
            }
        };
        task("accepts", accepts); // accepts
        let mut clients = Vec::new();
        while let Ok(client) = mini::net::TcpStream::connect(addr).await {
            clients.push(client);
        }
        pending().await
    }
    in_child("waits::no_file_descriptor_is_left", || {
        let mut builder = multi_thread(2);
        builder.dump_on_quit(true);
        let runtime = builder.build().unwrap();
        let (stderr, writer) = std::io::pipe().unwrap();
        dup2_stderr(&writer).unwrap();
        let limit = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).unwrap();
        hang_in(runtime, program, |handle| {
            let shown: &[&[&str]] = &[
                &["no file descriptor is free: Too many open files", "RLIMIT_NOFILE"],
                &["\"accepts\"", &at!("// accepts"), "polled", "times"],
            ];
            until(handle, shown);
            // The dump at SIGQUIT needs no descriptor either.
            kill_process(getpid(), Signal::QUIT).unwrap();
            let mut said = BufReader::new(&stderr).lines().map_while(Result::ok);
            assert!(said.any(|line| line.contains("no file descriptor is free")));
        });
    });
}
