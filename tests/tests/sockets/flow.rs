//! Many bytes and many connections: back-pressure, both directions at once, one listener for many tasks, 100 MB there
//! and back.

use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use futures_lite::future::zip;
use mini::net::{TcpListener, TcpStream, UnixStream};
use mini_tests::net_support::{ANY_PORT, Words, connected_to, in_each_world, narrow_tcp_pair, tcp_pair, watched};
use mini_tests::{Counts, on_each_flavour, oneshot, poll_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// One block; whole words.
const BLOCK: usize = 256 << 10;

#[test]
fn a_writer_stops_while_nobody_reads_and_goes_on_with_nothing_lost() {
    in_each_world(|| async {
        let (client, server) = narrow_tcp_pair().await;
        let counts = Counts::new();
        let (mut words, mut sent) = (Words::new(1), 0);
        let mut pending: Vec<u8> = Vec::new();
        loop {
            assert!(sent < 64 << 20, "the buffer has no end");
            if pending.is_empty() {
                pending = words.take(8 << 10);
            }
            let polled = poll_with(&mut client.write(&pending), &counts);
            match polled {
                Poll::Ready(written) => sent += pending.drain(..written.unwrap()).len(),
                Poll::Pending => break,
            }
        }
        let rest = sent + pending.len() + 100 * BLOCK;
        let reader = mini::spawn(async move {
            let (mut words, mut buf) = (Words::new(0), vec![0; 8 << 10]);
            for _ in 0..rest / buf.len() {
                server.read_exact(&mut buf).await.unwrap();
                words.add(&buf);
            }
            assert_eq!(server.read(&mut buf).await.unwrap(), 0);
            words.sum()
        });
        client.write_all(&pending).await.unwrap();
        for _ in 0..100 {
            client.write_all(&words.take(BLOCK)).await.unwrap();
        }
        drop(client);
        assert_eq!(reader.await.unwrap(), words.sum());
    });
}

/// Sends the sequence `mine` and receives another at the same time; the sums of both.
async fn exchange(stream: &TcpStream, mine: u64) -> (u64, u64) {
    const BLOCKS: usize = 16;
    let send = async {
        let mut words = Words::new(mine);
        for _ in 0..BLOCKS {
            stream.write_all(&words.take(BLOCK)).await.unwrap();
        }
        words.sum()
    };
    let receive = async {
        let (mut words, mut buf) = (Words::new(0), vec![0; BLOCK]);
        for _ in 0..BLOCKS {
            stream.read_exact(&mut buf).await.unwrap();
            words.add(&buf);
        }
        words.sum()
    };
    zip(send, receive).await
}

#[test]
fn both_directions_flow_at_once() {
    in_each_world(|| async {
        let (client, server) = narrow_tcp_pair().await;
        let there = mini::spawn(async move { exchange(&client, 1).await });
        let (sent, received) = exchange(&server, 2).await;
        assert_eq!(there.await.unwrap(), (received, sent));
    });
}

#[test]
fn both_directions_flow_between_two_tasks_on_each_side() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let tasks: Vec<_> = [Arc::new(a), Arc::new(b)]
            .into_iter()
            .flat_map(|stream| {
                let writer = stream.clone();
                let write = mini::spawn(async move {
                    let mut words = Words::new(1);
                    for _ in 0..16 {
                        writer.write_all(&words.take(BLOCK)).await.unwrap();
                    }
                    words.sum()
                });
                let read = mini::spawn(async move {
                    let (mut words, mut buf) = (Words::new(0), vec![0; BLOCK]);
                    for _ in 0..16 {
                        stream.read_exact(&mut buf).await.unwrap();
                        words.add(&buf);
                    }
                    words.sum()
                });
                [write, read]
            })
            .collect();
        let mut sums = Vec::new();
        for task in tasks {
            sums.push(task.await.unwrap());
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    });
}

/// Sends back all that comes, until the end.
async fn echo(stream: TcpStream, room: usize) {
    let mut buf = vec![0; room];
    while let received @ 1.. = stream.read(&mut buf).await.unwrap() {
        stream.write_all(&buf[..received]).await.unwrap();
    }
}

#[test]
fn a_hundred_megabytes_come_back_as_they_went() {
    const BLOCKS: usize = 400;
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let (client, server) = tcp_pair().await;
            let echo = mini::spawn(echo(server, BLOCK));
            let client = Arc::new(client);
            let writer = mini::spawn({
                let client = client.clone();
                async move {
                    let (mut words, mut block) = (Words::new(3), vec![0; BLOCK]);
                    for _ in 0..BLOCKS {
                        words.fill(&mut block);
                        client.write_all(&block).await.unwrap();
                    }
                    client.shutdown(Shutdown::Write).unwrap();
                    words.sum()
                }
            });
            let (mut words, mut block) = (Words::new(0), vec![0; BLOCK]);
            for _ in 0..BLOCKS {
                client.read_exact(&mut block).await.unwrap();
                words.add(&block);
            }
            assert_eq!(client.read(&mut block).await.unwrap(), 0);
            assert_eq!(words.sum(), writer.await.unwrap());
            echo.await.unwrap();
        });
    });
}

#[test]
fn eight_tasks_share_a_listener_and_serve_each_connection_once() {
    const CONNECTIONS: usize = 100;
    in_each_world(|| async {
        let listener = Arc::new(TcpListener::bind(ANY_PORT).await.unwrap());
        let addr = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (mut acceptors, mut all_wait) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            let (listener, accepted) = (listener.clone(), accepted.clone());
            let (waits, waiting) = oneshot();
            all_wait.push(waiting);
            acceptors.push(mini::spawn(async move {
                let mut waits = Some(waits);
                loop {
                    let on_wait = || waits.take().into_iter().for_each(|it| it.send(()));
                    let (stream, _) = watched(listener.accept(), on_wait).await.unwrap();
                    accepted.fetch_add(1, SeqCst);
                    drop(mini::spawn(echo(stream, 64)));
                }
            }));
        }
        for waiting in all_wait {
            waiting.await.unwrap();
        }
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                mini::spawn(async move {
                    let client = TcpStream::connect(addr).await.unwrap();
                    let (sent, mut received) = (number.to_ne_bytes(), [0; size_of::<usize>()]);
                    client.write_all(&sent).await.unwrap();
                    client.read_exact(&mut received).await.unwrap();
                    assert_eq!(sent, received);
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(accepted.load(SeqCst), CONNECTIONS);
        for acceptor in acceptors {
            assert!(acceptor.cancel().await.unwrap_err().is_cancelled());
        }
        // Without a task that accepts it, a connection stays in the queue for the next one.
        connected_to(&listener).await;
    });
}

#[test]
fn a_thousand_connections_are_served_at_once() {
    const CONNECTIONS: usize = 1000;
    allow_open_files(3 * CONNECTIONS as u64);
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            let listener = TcpListener::bind(ANY_PORT).await.unwrap();
            let addr = listener.local_addr().unwrap();
            let server = mini::spawn(async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    drop(mini::spawn(echo(stream, 64)));
                }
            });
            let greeted: Vec<_> = (0..CONNECTIONS).map(|_| mini::spawn(greet(addr))).collect();
            let mut clients = Vec::new();
            for client in greeted {
                clients.push(client.await.unwrap());
            }
            let served: Vec<_> = clients.into_iter().map(|client| mini::spawn(round_trips(client, 10))).collect();
            for client in served {
                client.await.unwrap();
            }
            assert!(server.cancel().await.unwrap_err().is_cancelled());
        });
    });
}

/// A new connection that has had its first echo.
async fn greet(addr: SocketAddr) -> TcpStream {
    round_trips(TcpStream::connect(addr).await.unwrap(), 1).await
}

async fn round_trips(client: TcpStream, rounds: u64) -> TcpStream {
    let mut buf = [0; 8];
    for round in 0..rounds {
        client.write_all(&round.to_ne_bytes()).await.unwrap();
        client.read_exact(&mut buf).await.unwrap();
        assert_eq!(u64::from_ne_bytes(buf), round);
    }
    client
}

/// Raises this process's own limit if the system's default is too low.
fn allow_open_files(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).expect("this many files may be opened");
    }
}
