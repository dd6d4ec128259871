//! Open files: none is leaked, and running out of them is an error that a listener survives.
//!
//! Each test counts or limits the files of a whole process, and therefore has one to itself.

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::thread;

use mini::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream, lookup_host, next_connection,
};
use mini::runtime::Builder;
use mini_tests::net_support::{ANY_PORT, ScratchPath, connected_to, now, open_files, refusing_port};
use mini_tests::{Counts, flavours, in_child, poll_with, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Runs `body` with a runtime of each flavour, in a process of its own; in the end no file is left open.
fn in_child_on_each_flavour(test: &str, body: impl Fn(Builder) + Send + 'static) {
    in_child(test, move || {
        for (flavour, builder) in flavours() {
            eprintln!("{flavour}");
            let before = open_files();
            body(builder);
            // The last of a runtime's threads may still be on its way out.
            while open_files() > before {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn five_hundred_connections_leave_no_file_open() {
    in_child_on_each_flavour("five_hundred_connections_leave_no_file_open", |builder| {
        builder.build().unwrap().block_on(async {
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            converse(&listener).await;
            let before = open_files();
            for _ in 0..500 {
                converse(&listener).await;
            }
            assert_eq!(open_files(), before);
        });
    });
}

/// A connection of two tasks that both had to wait; they end before this does.
async fn converse(listener: &TcpListener) {
    let (client, server) = connected_to(listener).await;
    let echo = mini::spawn(async move {
        let mut buf = [0; 8];
        while let received @ 1.. = server.read(&mut buf).await.unwrap() {
            server.write_all(&buf[..received]).await.unwrap();
        }
    });
    let client = mini::spawn(async move {
        for _ in 0..2 {
            client.write_all(b"ping").await.unwrap();
            client.read_exact(&mut [0; 4]).await.unwrap();
        }
    });
    client.await.unwrap();
    echo.await.unwrap();
}

#[test]
fn what_failed_or_was_given_up_leaves_no_file_open() {
    in_child_on_each_flavour("what_failed_or_was_given_up_leaves_no_file_open", |builder| {
        builder.build().unwrap().block_on(async {
            let (_socket, refused) = refusing_port();
            lookup_host("localhost:80").await.unwrap();
            let before = open_files();
            for round in 0..50 {
                TcpStream::connect(refused).await.unwrap_err();
                TcpListener::bind(refused).await.unwrap_err();
                drop(poll_with(&mut TcpStream::connect(refused), &Counts::new()));

                let listener = TcpListener::bind(ANY_PORT).await.unwrap();
                let counts = Counts::new();
                let mut accept = listener.accept();
                assert!(poll_with(&mut accept, &counts).is_pending());
                let addr = listener.local_addr().unwrap();
                let client = TcpStream::connect(addr).await.unwrap();
                until(|| counts.wakes() == 1).await;
                drop(accept);

                let task = mini::spawn(async move { client.read_exact(&mut [0; 4]).await });
                if round % 2 == 0 {
                    mini::task::yield_now().await;
                }
                let aborted = task.cancel().await;
                assert!(aborted.unwrap_err().is_cancelled());
            }
            assert_eq!(open_files(), before);
        });
    });
}

#[test]
fn every_kind_of_socket_is_closed_and_so_is_the_runtime() {
    in_child_on_each_flavour("every_kind_of_socket_is_closed_and_so_is_the_runtime", |builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            // A socket that has waited, so that the runtime needs to open nothing more.
            let (a, _b) = UnixStream::pair().unwrap();
            assert!(poll_with(&mut a.readable(), &Counts::new()).is_pending());
            let before = open_files();
            let (one, two) = (ScratchPath::new("one"), ScratchPath::new("two"));
            let sockets = (
                UdpSocket::bind(ANY_PORT).await.unwrap(),
                UnixListener::bind(&one).unwrap(),
                UnixDatagram::bind(&two).unwrap(),
                UnixStream::pair().unwrap(),
                TcpSocket::new_v4().unwrap(),
            );
            assert!(poll_with(&mut sockets.0.readable(), &Counts::new()).is_pending());
            assert!(poll_with(&mut sockets.1.accept(), &Counts::new()).is_pending());
            assert!(poll_with(&mut sockets.2.readable(), &Counts::new()).is_pending());
            assert!(poll_with(&mut sockets.3.0.readable(), &Counts::new()).is_pending());
            assert_eq!(open_files(), before + 6);
            drop(sockets);
            assert_eq!(open_files(), before);
        });
    });
}

/// Opens all the files that this process may open; dropping them makes room again.
fn exhaust() -> Vec<File> {
    let mut files = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) => {
                assert!(is_exhausted(&error), "{error}");
                return files;
            }
        }
    }
}

fn is_exhausted(error: &std::io::Error) -> bool {
    mini_tests::net_support::raw_os_error(error) == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Few enough that filling them takes no time.
fn allow_few_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum }).unwrap();
}

#[test]
fn a_listener_survives_running_out_of_files() {
    in_child_on_each_flavour("a_listener_survives_running_out_of_files", |builder| {
        allow_few_files();
        builder.build().unwrap().block_on(async {
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let addr = listener.local_addr().unwrap();
            connected_to(&listener).await;
            let clients = [StdStream::connect(addr).unwrap(), StdStream::connect(addr).unwrap()];
            let files = exhaust();
            for _ in 0..3 {
                // Each accept returns the error: it does not wait and try again by itself.
                let counts = Counts::new();
                let error = now(poll_with(&mut listener.accept(), &counts)).unwrap_err();
                assert!(is_exhausted(&error), "{error}");
                assert_eq!(counts.wakes(), 0);
            }
            drop(files);
            for client in &clients {
                let (_server, from) = listener.accept().await.unwrap();
                assert_eq!(from, client.local_addr().unwrap());
            }
            connected_to(&listener).await;
        });
    });
}

#[test]
fn a_server_that_has_no_files_left_waits_for_some_and_says_so_once() {
    let test = "a_server_that_has_no_files_left_waits_for_some_and_says_so_once";
    let stderr = in_child(test, || {
        allow_few_files();
        for (_, builder) in flavours() {
            builder.build().unwrap().block_on(async {
                let listeners =
                    [TcpListener::bind(ANY_PORT).await.unwrap(), TcpListener::bind(ANY_PORT).await.unwrap()];
                let (client, server) = connected_to(&listeners[0]).await;
                let clients =
                    listeners.each_ref().map(|listener| StdStream::connect(listener.local_addr().unwrap()).unwrap());
                let files = exhaust();
                let counts = Counts::new();
                let mut accepts = listeners.each_ref().map(next_connection);
                for tries in 0..3 {
                    until(|| counts.wakes() >= 2 * tries).await;
                    assert!(accepts.iter_mut().all(|accept| poll_with(accept, &counts).is_pending()));
                    client.write_all(b"ping").await.unwrap();
                    server.read_exact(&mut [0; 4]).await.unwrap();
                }
                drop(files);
                for (accept, client) in accepts.into_iter().zip(&clients) {
                    let (_server, from) = accept.await.unwrap();
                    assert_eq!(from, client.local_addr().unwrap());
                }
            });
        }
    });
    if let Some(stderr) = stderr {
        let said: Vec<&str> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
        assert_eq!(said.len(), 1, "{stderr}");
        assert!(said[0].starts_with("mini: failed to accept a connection: Too many open files"), "{stderr}");
        assert!(said[0].contains("; the limit is RLIMIT_NOFILE = 200"), "{stderr}");
    }
}

#[test]
fn a_waiting_accept_is_told_once_that_there_are_no_files_left() {
    in_child_on_each_flavour("a_waiting_accept_is_told_once_that_there_are_no_files_left", |builder| {
        allow_few_files();
        builder.build().unwrap().block_on(async {
            let listener = Arc::new(TcpListener::bind(ANY_PORT).await.unwrap());
            let addr = listener.local_addr().unwrap();
            let counts = Counts::new();
            let mut accept = listener.accept();
            assert!(poll_with(&mut accept, &counts).is_pending());
            let prepared = TcpSocket::new_v4().unwrap();
            let files = exhaust();
            let client = prepared.connect(addr).await.unwrap();
            until(|| counts.wakes() > 0).await;
            let error = now(poll_with(&mut accept, &counts)).unwrap_err();
            assert!(is_exhausted(&error), "{error}");
            drop(accept);
            for _ in 0..500 {
                mini::task::yield_now().await;
            }
            assert_eq!(counts.wakes(), 1, "nobody asked again");
            assert!(is_exhausted(&TcpStream::connect(addr).await.unwrap_err()));
            assert!(is_exhausted(&UdpSocket::bind(ANY_PORT).await.unwrap_err()));
            drop(files);

            let (server, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
            server.write_all(b"ping").await.unwrap();
            client.read_exact(&mut [0; 4]).await.unwrap();
            let waiting = mini::spawn({
                let listener = listener.clone();
                async move { listener.accept().await.map(|(_, from)| from) }
            });
            let next = TcpStream::connect(addr).await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap(), next.local_addr().unwrap());
        });
    });
}

#[test]
fn a_runtime_that_cannot_be_built_says_why() {
    in_child("a_runtime_that_cannot_be_built_says_why", || {
        allow_few_files();
        let files = exhaust();
        for (flavour, builder) in flavours() {
            let error = builder.build().unwrap_err();
            assert!(is_exhausted(&error), "{flavour}: {error}");
        }
        drop(files);
        let built = flavours().into_iter().map(|(_, builder)| builder.build().unwrap());
        for runtime in built {
            runtime.block_on(async { assert_eq!(kind_of_read().await, ErrorKind::WouldBlock) });
        }
    });
}

async fn kind_of_read() -> ErrorKind {
    let (a, _b) = UnixStream::pair().unwrap();
    assert!(poll_with(&mut a.readable(), &Counts::new()).is_pending());
    a.try_read(&mut [0; 4]).unwrap_err().kind()
}
