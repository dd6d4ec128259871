//! futures-io's traits: by value and by reference, buffered, copied; functions to poll, from several tasks at once.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;

use futures_lite::StreamExt;
use futures_lite::future::zip;
use futures_lite::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter, copy, split};
use mini::io::{AsyncRead, AsyncWrite};
use mini::net::{TcpListener, TcpStream, UnixStream};
use mini_tests::net_support::{ANY_PORT, Words, in_each_world, kind_of, tcp_pair, udp, watched};
use mini_tests::{Counts, oneshot, poll_with};

/// Writes a sequence while it reads it back from an echo, knowing nothing but the traits.
async fn there_and_back(reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) {
    const BLOCKS: usize = 32;
    const BLOCK: usize = 64 << 10;
    let (mut reader, mut writer) = (reader, writer);
    let write = async {
        let mut words = Words::new(1);
        for _ in 0..BLOCKS {
            writer.write_all(&words.take(BLOCK)).await.unwrap();
        }
        writer.flush().await.unwrap();
        writer.close().await.unwrap();
        words.sum()
    };
    let read = async {
        let (mut words, mut block) = (Words::new(0), vec![0; BLOCK]);
        for _ in 0..BLOCKS {
            reader.read_exact(&mut block).await.unwrap();
            words.add(&block);
        }
        assert_eq!(reader.read(&mut block).await.unwrap(), 0);
        words.sum()
    };
    let (sent, received) = zip(write, read).await;
    assert_eq!(sent, received);
}

/// An echo made of `copy` from a stream to itself, by reference.
async fn echo<S>(stream: S)
where
    for<'a> &'a S: AsyncRead + AsyncWrite,
{
    copy(&stream, &stream).await.unwrap();
    let mut writer = &stream;
    writer.close().await.unwrap();
}

#[test]
fn streams_are_used_by_reference() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let echo_tcp = mini::spawn(echo(server));
        there_and_back(&client, &client).await;
        echo_tcp.await.unwrap();

        let (a, b) = UnixStream::pair().unwrap();
        let echo_unix = mini::spawn(echo(b));
        there_and_back(&a, &a).await;
        echo_unix.await.unwrap();
    });
}

#[test]
fn streams_are_used_by_value() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let echo_tcp = mini::spawn(echo(server));
        let (reader, writer) = split(client);
        there_and_back(BufReader::new(reader), BufWriter::new(writer)).await;
        echo_tcp.await.unwrap();

        let (a, b) = UnixStream::pair().unwrap();
        let echo_unix = mini::spawn(echo(b));
        let (reader, writer) = split(a);
        there_and_back(reader, writer).await;
        echo_unix.await.unwrap();
    });
}

#[test]
fn lines_are_read_through_a_buffer() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let writer = mini::spawn(async move {
            for part in ["fir", "st\nse", "cond\n", "\nlast"] {
                client.write_all(part.as_bytes()).await.unwrap();
                mini::task::yield_now().await;
            }
        });
        let lines: Vec<String> = BufReader::new(&server).lines().map(Result::unwrap).collect().await;
        assert_eq!(lines, ["first", "second", "", "last"]);
        writer.await.unwrap();
    });
}

#[test]
fn a_close_ends_writing_alone_and_may_be_repeated() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let (mut writer, mut buf) = (&client, [0; 8]);
        writer.close().await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(kind_of(client.write(b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(server.read(&mut buf).await.unwrap(), 0);
        server.write_all(b"pong").await.unwrap();
        assert_eq!(client.read(&mut buf).await.unwrap(), 4);
        server.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(server);
        assert!(client.read(&mut buf).await.is_err());
        writer.close().await.expect("that the peer is gone is as good");
    });
}

#[test]
fn vectored_calls_of_the_traits_use_every_buffer() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let counts = Counts::new();
        let (mut first, mut second) = ([0; 3], [0; 5]);
        let mut into = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let mut reader = &server;
        // The streams have methods of these names themselves; these are the trait's.
        let mut read = AsyncReadExt::read_vectored(&mut reader, &mut into);
        assert!(poll_with(&mut read, &counts).is_pending());
        let mut writer = &client;
        let out = [IoSlice::new(b"pi"), IoSlice::new(b"ng!")];
        assert_eq!(AsyncWriteExt::write_vectored(&mut writer, &out).await.unwrap(), 5);
        assert_eq!(read.await.unwrap(), 5);
        assert_eq!((&first, &second[..2]), (b"pin", &b"g!"[..]));
    });
}

/// Spawns `count` tasks that poll with `poll` until they have something, and returns when all of them wait.
async fn waiting_tasks<T, P, Q>(count: usize, poll: P) -> Vec<mini::task::JoinHandle<T>>
where
    T: Send + 'static,
    P: Fn() -> Q,
    Q: Future<Output = T> + Send + 'static,
{
    let (mut tasks, mut all_wait) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (waits, waiting) = oneshot();
        let future = poll();
        all_wait.push(waiting);
        tasks.push(mini::spawn(async move {
            let mut waits = Some(waits);
            watched(future, || waits.take().into_iter().for_each(|it| it.send(()))).await
        }));
    }
    for waiting in all_wait {
        waiting.await.unwrap();
    }
    tasks
}

/// Two tasks that wait by the same `poll_` method. The second one polled last.
async fn two_that_poll<T, P, Q>(poll: P) -> [mini::task::JoinHandle<T>; 2]
where
    T: Send + 'static,
    P: Fn() -> Q,
    Q: Future<Output = T> + Send + 'static,
{
    let former = waiting_tasks(1, &poll).await.remove(0);
    [former, waiting_tasks(1, &poll).await.remove(0)]
}

#[test]
fn of_two_tasks_that_poll_one_stream_the_last_one_is_woken() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let server = Arc::new(server);
        let [former, last] = two_that_poll(|| {
            let server = server.clone();
            async move {
                let mut byte = [0];
                let read = poll_fn(|cx| Pin::new(&mut &*server).poll_read(cx, &mut byte)).await;
                (read.unwrap(), byte[0])
            }
        })
        .await;
        // The `poll_` methods use the same place.
        let [former_peek, last_peek] = two_that_poll(|| {
            let server = server.clone();
            async move { poll_fn(|cx| server.poll_peek(cx, &mut [0; 4])).await.unwrap() }
        })
        .await;
        let future = waiting_tasks(1, || {
            let server = server.clone();
            async move { server.readable().await.is_ok() }
        });
        let future = future.await.remove(0);
        client.write_all(b"ab").await.unwrap();
        assert_eq!(last_peek.await.unwrap(), 2);
        assert!(future.await.unwrap(), "a future has a place of its own");
        assert!(former_peek.cancel().await.unwrap_err().is_cancelled(), "it was not woken");
        for reader in [former, last] {
            assert!(reader.cancel().await.unwrap_err().is_cancelled(), "nor were these");
        }
    });
}

#[test]
fn twenty_tasks_that_wait_for_one_stream_are_all_served() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let server = Arc::new(server);
        let peeks = waiting_tasks(20, || {
            let server = server.clone();
            async move { server.peek(&mut [0; 4]).await.unwrap() }
        })
        .await;
        client.write_all(b"ping").await.unwrap();
        for peek in peeks {
            assert_eq!(peek.await.unwrap(), 4);
        }
    });
}

#[test]
fn a_listener_and_a_datagram_socket_are_polled() {
    in_each_world(|| async {
        let listener = Arc::new(TcpListener::bind(ANY_PORT).await.unwrap());
        let addr = listener.local_addr().unwrap();
        let accepts = two_that_poll(|| {
            let listener = listener.clone();
            async move { poll_fn(|cx| listener.poll_accept(cx)).await.unwrap().1 }
        });
        let [former, accept] = accepts.await;
        let client = TcpStream::connect(addr).await.unwrap();
        assert_eq!(accept.await.unwrap(), client.local_addr().unwrap());
        assert!(former.cancel().await.unwrap_err().is_cancelled());

        let (a, b) = (udp().await, Arc::new(udp().await));
        let b_addr = b.local_addr().unwrap();
        let receives = two_that_poll(|| {
            let b = b.clone();
            async move {
                let mut buf = [0; 8];
                poll_fn(|cx| b.poll_recv_from(cx, &mut buf)).await.unwrap().0
            }
        });
        let [former, receive] = receives.await;
        assert_eq!(poll_fn(|cx| a.poll_send_to(cx, b"ping", b_addr)).await.unwrap(), 4);
        assert_eq!(receive.await.unwrap(), 4);
        assert!(former.cancel().await.unwrap_err().is_cancelled());
        a.connect(b_addr).await.unwrap();
        assert_eq!(poll_fn(|cx| a.poll_send(cx, b"hello")).await.unwrap(), 5);
        assert_eq!(poll_fn(|cx| b.poll_recv(cx, &mut [0; 8])).await.unwrap(), 5);
    });
}

#[test]
fn one_task_polls_to_read_and_another_to_write() {
    in_each_world(|| async {
        let (client, server) = tcp_pair().await;
        let server = Arc::new(server);
        poll_fn(|cx| server.poll_write_ready(cx)).await.unwrap();
        while server.try_write(&[0; 1 << 16]).is_ok() {}
        let waits = |is_read: bool| {
            let server = server.clone();
            waiting_tasks(1, move || {
                let server = server.clone();
                async move {
                    let ready = poll_fn(|cx| match is_read {
                        true => server.poll_read_ready(cx),
                        false => server.poll_write_ready(cx),
                    });
                    ready.await.is_ok()
                }
            })
        };
        let [reader, writer] = [waits(true).await.remove(0), waits(false).await.remove(0)];
        client.write_all(b"ping").await.unwrap();
        assert!(reader.await.unwrap());
        let drain =
            mini::spawn(async move { while client.read(&mut [0; 1 << 16]).await.is_ok_and(|read| read > 0) {} });
        assert!(writer.await.unwrap());
        drop(server);
        drain.await.unwrap();
    });
}
