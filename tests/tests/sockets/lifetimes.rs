//! Sockets and runtimes that do not live equally long: moved between tasks and runtimes, left behind by one that ended,
//! waited for on foreign threads, served while their worker is busy.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener as StdListener, TcpStream as StdStream};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use mini::io::AsyncFd;
use mini::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use mini_tests::net_support::{ANY_PORT, in_each_runtime, kind_of, now, tcp_pair, udp_pair, watched};
use mini_tests::{
    Counts, LIMIT, block_on_elsewhere, caught, multi_thread, on_each_flavour, oneshot, poll_with, within,
};

/// A connection whose other end uses blocking calls.
fn blocking_pair() -> (TcpStream, StdStream) {
    let listener = StdListener::bind(ANY_PORT).unwrap();
    let outside = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    (TcpStream::from_std(listener.accept().unwrap().0).unwrap(), outside)
}

fn is_shut_down<T>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.to_string().contains("has shut down"))
}

/// Makes `stream`, on which nothing has arrived, wait once, so that it joins the runtime.
fn join(stream: &TcpStream) {
    assert!(poll_with(&mut stream.read(&mut [0; 4]), &Counts::new()).is_pending());
}

#[test]
fn a_stream_moves_from_task_to_task() {
    in_each_runtime(|| async {
        let (client, server) = tcp_pair().await;
        let mut client = Some(client);
        for round in 0..20u8 {
            join(&server);
            let mine = client.take().unwrap();
            let writer = mini::spawn(async move {
                mine.write_all(&[round]).await.unwrap();
                mine
            });
            let mut byte = [0xff];
            server.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [round]);
            client = Some(writer.await.unwrap());
        }
    });
}

#[test]
fn local_tasks_share_a_stream_without_an_arc() {
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let (client, server) = tcp_pair().await;
            let (client, server) = (Rc::new(client), Rc::new(server));
            let echo = mini::spawn_local({
                let server = server.clone();
                async move {
                    let mut buf = [0; 8];
                    while let received @ 1.. = server.read(&mut buf).await.unwrap() {
                        server.write_all(&buf[..received]).await.unwrap();
                    }
                }
            });
            let reader = mini::spawn_local({
                let client = client.clone();
                async move {
                    let mut buf = [0; 8];
                    client.read_exact(&mut buf).await.unwrap();
                    buf
                }
            });
            client.write_all(b"pingpong").await.unwrap();
            assert_eq!(&reader.await.unwrap(), b"pingpong");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            echo.await.unwrap();
        });
    });
}

#[test]
fn a_stream_works_in_another_runtime_until_its_own_ends() {
    on_each_flavour(|builder| {
        let (own, other) = (multi_thread(1).build().unwrap(), builder.build().unwrap());
        let (stream, mut outside) = {
            let _inside = own.enter();
            blocking_pair()
        };
        let (reader, writer) = stream.into_split();
        let mut buf = [0; 4];
        other.block_on(async {
            let counts = Counts::new();
            let mut read = reader.read(&mut buf);
            assert!(poll_with(&mut read, &counts).is_pending());
            outside.write_all(b"ping").unwrap();
            assert_eq!(read.await.unwrap(), 4);
        });
        let (waits, all_wait) = mpsc::channel();
        let end = thread::spawn(move || {
            all_wait.recv().unwrap();
            drop(own);
        });
        other.block_on(async {
            let result = watched(reader.read(&mut buf), || _ = waits.send(())).await;
            assert!(is_shut_down(result), "the wait has ended with the runtime");
            end.join().unwrap();
            assert!(is_shut_down(reader.read(&mut buf).await), "and so does any other, at once");
            assert!(is_shut_down(reader.readable().await));
            writer.write_all(b"pong").await.expect("what need not wait still works");
            outside.read_exact(&mut buf).unwrap();

            let stream = reader.reunite(writer).unwrap();
            let stream = TcpStream::from_std(stream.into_std().unwrap()).unwrap();
            join(&stream);
            outside.write_all(b"ping").unwrap();
            stream.read_exact(&mut buf).await.unwrap();
            assert_eq!(&buf, b"ping", "it has begun anew");
        });
    });
}

#[test]
fn a_reader_is_heard_after_a_writer_in_another_runtime_has_waited() {
    const MUCH: usize = 4 << 20;
    let main = multi_thread(2).build().unwrap();
    let side = mini::runtime::Builder::new_current_thread().build().unwrap();
    let (here, mut peer) = StdUnixStream::pair().unwrap();
    let stream = {
        let _inside = main.enter();
        Arc::new(UnixStream::from_std(here).unwrap())
    };
    let (waits, it_waits) = mpsc::channel();
    let reader = stream.clone();
    let reading = main.spawn(async move {
        let mut buf = [0; 4];
        watched(reader.read(&mut buf), || _ = waits.send(())).await.unwrap()
    });
    it_waits.recv().unwrap();
    let mut drain = peer.try_clone().unwrap();
    let drained =
        thread::spawn(move || io::copy(&mut Read::by_ref(&mut drain).take(MUCH as u64), &mut io::sink()).unwrap());
    side.block_on(async { stream.write_all(&vec![7; MUCH]).await.unwrap() });
    assert_eq!(drained.join().unwrap(), MUCH as u64);
    // No thread drives `side` now.
    peer.write_all(b"x").unwrap();
    within(LIMIT, move || assert_eq!(main.block_on(reading).unwrap(), 1));
}

#[test]
fn a_stream_of_an_ended_runtime_waits_in_none() {
    on_each_flavour(|builder| {
        let (stream, mut outside) = blocking_pair();
        let own = builder.build().unwrap();
        own.block_on(async { join(&stream) });
        drop(own);
        let mut buf = [0; 4];
        assert!(is_shut_down(block_on_elsewhere(stream.read_exact(&mut buf))));
        assert_eq!(kind_of(stream.try_read(&mut buf)), ErrorKind::WouldBlock);
        assert!(is_shut_down(block_on_elsewhere(stream.readable())));

        block_on_elsewhere(stream.write_all(b"pong")).expect("what need not wait still works");
        let mut answer = [0; 4];
        outside.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"pong");
    });
}

#[test]
fn tasks_that_wait_on_sockets_end_with_their_runtime() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let (mut tasks, mut peers) = (Vec::new(), Vec::new());
        runtime.block_on(async {
            for number in 0..20 {
                let (stream, outside) = blocking_pair();
                let (waits, waiting) = oneshot();
                let mut waits = Some(waits);
                tasks.push(mini::spawn(async move {
                    let on_wait = || waits.take().into_iter().for_each(|it| it.send(()));
                    if number % 2 == 0 {
                        watched(stream.read(&mut [0; 4]), on_wait).await.map(drop)
                    } else {
                        watched(stream.read_exact(&mut [0; 4]), on_wait).await
                    }
                }));
                waiting.await.unwrap();
                peers.push(outside);
            }
        });
        drop(runtime);
        for mut peer in peers {
            assert_eq!(peer.read(&mut [0; 4]).unwrap(), 0, "the task's socket was closed");
        }
        for task in tasks {
            assert!(block_on_elsewhere(task).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn waits_on_foreign_threads_end_with_the_runtime() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let listener = runtime.block_on(TcpListener::bind(ANY_PORT)).unwrap();
        let (_peer, udp) = runtime.block_on(udp_pair());
        let (a, _b) = UnixStream::pair().unwrap();
        let (io, _other_io) = StdUnixStream::pair().unwrap();
        runtime.block_on(async {
            assert!(poll_with(&mut listener.accept(), &Counts::new()).is_pending());
            assert!(poll_with(&mut udp.recv(&mut [0; 4]), &Counts::new()).is_pending());
            assert!(poll_with(&mut a.read(&mut [0; 4]), &Counts::new()).is_pending());
        });
        let fd = runtime.block_on(async { AsyncFd::new(io).unwrap() });
        let (waits, all_wait) = mpsc::channel();
        thread::scope(|threads| {
            let signal = || {
                let waits = waits.clone();
                move || waits.send(()).unwrap()
            };
            let (w1, w2, w3, w4) = (signal(), signal(), signal(), signal());
            let ends = [
                threads.spawn(|| is_shut_down(block_on_elsewhere(watched(listener.accept(), w1)))),
                threads.spawn(|| is_shut_down(block_on_elsewhere(watched(udp.recv(&mut [0; 4]), w2)))),
                threads.spawn(|| is_shut_down(block_on_elsewhere(watched(a.read(&mut [0; 4]), w3)))),
                threads.spawn(|| is_shut_down(block_on_elsewhere(watched(fd.readable(), w4)))),
            ];
            for _ in 0..4 {
                all_wait.recv().unwrap();
            }
            drop(runtime);
            for end in ends {
                assert!(end.join().unwrap());
            }
        });
    });
}

#[test]
fn a_runtime_that_has_ended_takes_no_new_sockets() {
    on_each_flavour(|builder| {
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        let (stream, mut outside) = blocking_pair();
        drop(runtime);
        let _inside = handle.enter();
        assert!(is_shut_down(block_on_elsewhere(stream.read(&mut [0; 4]))));
        assert!(is_shut_down(block_on_elsewhere(stream.readable())));
        let (io, _other_io) = StdUnixStream::pair().unwrap();
        assert!(is_shut_down(AsyncFd::new(io)));
        outside.write_all(b"ping").unwrap();
        outside.shutdown(std::net::Shutdown::Write).unwrap();
        let mut copy = stream.into_std().unwrap();
        copy.read_exact(&mut [0; 4]).expect("it is a socket as before");
    });
}

#[test]
fn one_block_on_after_the_other() {
    within(LIMIT, || {
        let listener = mini::block_on(TcpListener::bind(ANY_PORT)).unwrap();
        let addr = listener.local_addr().unwrap();
        let client = mini::block_on(TcpStream::connect(addr)).unwrap();
        let (server, _) = mini::block_on(listener.accept()).expect("it is there");
        mini::block_on(client.write_all(b"ping")).unwrap();
        let mut buf = [0; 4];
        mini::block_on(server.read_exact(&mut buf)).unwrap();
        assert_eq!(&buf, b"ping");

        // The runtimes that they belong to are gone.
        assert!(is_shut_down(mini::block_on(listener.accept())));
        assert!(is_shut_down(mini::block_on(server.read(&mut buf))));
        assert!(is_shut_down(mini::block_on(client.readable())));
    });
}

#[test]
fn a_wait_without_a_runtime_names_the_call_and_its_line() {
    let (stream, _outside) = blocking_pair();
    let mut buf = [0; 4];
    let line = line!() + 1;
    let mut read = stream.read(&mut buf);
    let panic = caught(|| poll_with(&mut read, &Counts::new()).is_pending());
    assert!(panic.message.contains("TcpStream::read") && panic.message.contains("no mini runtime"), "{panic:?}");
    assert!(panic.message.contains(&format!("{}:{line}:", file!())), "{panic:?}");

    let socket = now(poll_with(&mut UdpSocket::bind(ANY_PORT), &Counts::new())).expect("this needs none");
    assert_eq!(now(poll_with(&mut socket.send_to(b"ping", socket.local_addr().unwrap()), &Counts::new())).unwrap(), 4);
    assert_eq!(now(poll_with(&mut socket.recv(&mut [0; 4]), &Counts::new())).unwrap(), 4);
}

/// Talks to `stream`'s other end, which echoes, once the echo waits; then sets `done`.
fn talk(outside: StdStream, echo_waits: mpsc::Receiver<()>, done: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut outside = outside;
        echo_waits.recv().unwrap();
        for message in [b"ping", b"pong"] {
            outside.write_all(message).unwrap();
            let mut answer = [0; 4];
            outside.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, message);
        }
        done.store(true, SeqCst);
    })
}

/// Registers a socket with this worker, gives it to a new task that echoes, and holds the worker until the echo was
/// heard.
fn hold_the_worker_until_its_socket_was_served() {
    let (stream, outside) = blocking_pair();
    join(&stream);
    let (waits, echo_waits) = mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let talking = talk(outside, echo_waits, done.clone());
    drop(mini::spawn(async move {
        let mut buf = [0; 4];
        while let received @ 1.. = watched(stream.read(&mut buf), || waits.send(()).unwrap_or_default()).await.unwrap()
        {
            stream.write_all(&buf[..received]).await.unwrap();
        }
    }));
    while !done.load(SeqCst) {
        thread::yield_now();
    }
    talking.join().unwrap();
}

#[test]
fn a_busy_worker_does_not_hold_up_its_sockets() {
    within(LIMIT, || {
        for workers in [2, 4] {
            let runtime = multi_thread(workers).build().unwrap();
            runtime.block_on(async {
                for _ in 0..5 {
                    let busy = mini::spawn(async { hold_the_worker_until_its_socket_was_served() });
                    busy.await.unwrap();
                }
            });
        }
    });
}

#[test]
fn a_busy_block_on_future_does_not_hold_up_its_sockets() {
    within(LIMIT, || {
        let runtime = multi_thread(2).build().unwrap();
        for _ in 0..5 {
            runtime.block_on(async { hold_the_worker_until_its_socket_was_served() });
        }
    });
}
