//! The halves of a stream: two tasks, two futures, the end when the writer goes, and a stream again.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::net::Shutdown;
use std::task::Poll;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use mini::io::Interest;
use mini::net::{TcpStream, UnixStream, tcp, unix};
use mini_tests::net_support::{Words, in_each_world, kind_of, narrow_tcp_pair, now, open_files, tcp_pair};
use mini_tests::{Counts, in_child, poll_with};

/// Runs the same body with both kinds of stream: `each_kind!((a, b) => { .. })`.
macro_rules! each_kind {
    (($a:ident, $b:ident) => $body:block) => {
        in_each_world(|| async {
            {
                let ($a, $b): (TcpStream, TcpStream) = tcp_pair().await;
                $body
            }
            let ($a, $b): (UnixStream, UnixStream) = UnixStream::pair().unwrap();
            $body
        });
    };
}

#[test]
fn owned_halves_work_in_two_tasks() {
    in_each_world(|| async {
        let (a, b) = narrow_tcp_pair().await;
        let (reader, writer) = a.into_split();
        let echo = mini::spawn(async move {
            let mut buf = [0; 4096];
            while let received @ 1.. = b.read(&mut buf).await.unwrap() {
                b.write_all(&buf[..received]).await.unwrap();
            }
        });
        let writing = mini::spawn(async move {
            let mut words = Words::new(1);
            for _ in 0..64 {
                writer.write_all(&words.take(8192)).await.unwrap();
            }
            words.sum()
        });
        let (mut heard, mut buf) = (Words::new(1), [0; 8192]);
        for _ in 0..64 {
            reader.read_exact(&mut buf).await.unwrap();
            heard.add(&buf);
        }
        assert_eq!(heard.sum(), writing.await.unwrap());
        // The writing half went with its task, and so did the echo.
        assert_eq!(reader.read(&mut buf).await.unwrap(), 0);
        echo.await.unwrap();
    });
}

#[test]
fn borrowed_halves_leave_the_stream_as_it_was() {
    each_kind!((a, b) => {
        let mut a = a;
        {
            let (reader, writer) = a.split();
            assert_eq!(writer.write(b"ping").await.unwrap(), 4);
            assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 4);
            b.write_all(b"pong").await.unwrap();
            assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 4);
        }
        // Dropped, they have ended nothing.
        assert_eq!(kind_of(b.try_read(&mut [0; 8])), ErrorKind::WouldBlock);
        a.write_all(b"more").await.unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn every_method_of_a_half_is_that_of_the_stream() {
    each_kind!((a, b) => {
        let (peer, (reader, writer)) = (b, a.into_split());
        assert!(writer.ready(Interest::WRITABLE).await.unwrap().is_writable());
        writer.writable().await.unwrap();
        std::future::poll_fn(|cx| writer.poll_write_ready(cx)).await.unwrap();
        assert_eq!(writer.try_write(b"a").unwrap(), 1);
        assert_eq!(writer.try_write_vectored(&[IoSlice::new(b"b"), IoSlice::new(b"c")]).unwrap(), 2);
        assert_eq!(writer.write_vectored(&[IoSlice::new(b"d"), IoSlice::new(b"e")]).await.unwrap(), 2);
        let mut buf = [0; 5];
        peer.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abcde");

        assert_eq!(kind_of(reader.try_read(&mut buf)), ErrorKind::WouldBlock);
        assert_eq!(kind_of(reader.try_peek(&mut buf)), ErrorKind::WouldBlock);
        peer.write_all(b"abcde").await.unwrap();
        reader.readable().await.unwrap();
        std::future::poll_fn(|cx| reader.poll_read_ready(cx)).await.unwrap();
        assert!(reader.ready(Interest::READABLE).await.unwrap().is_readable());
        assert_eq!(reader.peek(&mut buf).await.unwrap(), 5);
        assert_eq!(std::future::poll_fn(|cx| reader.poll_peek(cx, &mut buf)).await.unwrap(), 5);
        assert_eq!(reader.try_peek(&mut buf[..2]).unwrap(), 2);
        assert_eq!(reader.try_read(&mut buf[..1]).unwrap(), 1);
        let (mut first, mut second) = ([0; 1], [0; 1]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(reader.try_read_vectored(&mut bufs).unwrap(), 2);
        assert_eq!(reader.read_vectored(&mut bufs).await.unwrap(), 2);
        assert_eq!((&first, &second), (b"d", b"e"));

        let ends = (reader.local_addr().unwrap(), reader.peer_addr().unwrap());
        assert_eq!(format!("{ends:?}"), format!("{:?}", (writer.local_addr().unwrap(), writer.peer_addr().unwrap())));
        assert_eq!(format!("{:?}", ends.1), format!("{:?}", peer.local_addr().unwrap()));
        writer.shutdown().unwrap();
        assert_eq!(peer.read(&mut buf).await.unwrap(), 0);
        assert_eq!(kind_of(writer.write(b"x").await), ErrorKind::BrokenPipe);
    });
}

#[test]
fn dropping_the_owned_writer_is_the_end_and_the_reader_goes_on() {
    each_kind!((a, b) => {
        let (reader, writer) = a.into_split();
        writer.write_all(b"last words").await.unwrap();
        let mut buf = [0; 16];
        let mut waiting = reader.read(&mut buf);
        assert!(poll_with(&mut waiting, &Counts::new()).is_pending());
        drop(writer);
        let mut heard = [0; 16];
        assert_eq!(b.read(&mut heard).await.unwrap(), 10);
        assert_eq!(b.read(&mut heard).await.unwrap(), 0);
        b.write_all(b"answer").await.unwrap();
        assert_eq!(waiting.await.unwrap(), 6);
        // The other order: the stream is closed with the last half.
        drop(reader);
        let counts = Counts::new();
        let mut gone = b.ready(Interest::WRITABLE);
        while !matches!(poll_with(&mut gone, &counts), Poll::Ready(Ok(ready)) if ready.is_write_closed()) {
            // TCP learns of it by the answer to data.
            let _ = b.write(b"x").await;
            gone = b.ready(Interest::WRITABLE);
            mini::task::yield_now().await;
        }
    });
}

#[test]
fn writing_may_end_again_and_the_answer_is_read() {
    each_kind!((a, b) => {
        let (reader, mut writer) = a.into_split();
        let mut buf = [0; 16];
        writer.shutdown().unwrap();
        // So the peer's system has acknowledged it, or does before it sends.
        assert_eq!(b.read(&mut buf).await.unwrap(), 0);
        writer.shutdown().unwrap();
        AsyncWriteExt::close(&mut writer).await.unwrap();
        drop(writer);
        assert_eq!(kind_of(reader.try_read(&mut buf)), ErrorKind::WouldBlock);
        b.write_all(b"answer").await.unwrap();
        assert_eq!(reader.read(&mut buf).await.unwrap(), 6);
    });
}

#[test]
fn reading_may_end_after_writing() {
    each_kind!((a, b) => {
        a.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind_of(a.try_read(&mut [0; 8])), ErrorKind::WouldBlock);
        a.shutdown(Shutdown::Both).unwrap();
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0);
    });
    each_kind!((a, b) => {
        a.shutdown(Shutdown::Read).unwrap();
        a.write_all(b"more").await.unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 4);
        a.shutdown(Shutdown::Write).unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_forgotten_writer_ends_nothing() {
    each_kind!((a, b) => {
        let (reader, writer) = a.into_split();
        writer.forget();
        assert_eq!(kind_of(b.try_read(&mut [0; 8])), ErrorKind::WouldBlock);
        drop(reader);
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn halves_of_one_stream_make_a_stream_again() {
    each_kind!((a, b) => {
        let ((a_reader, a_writer), (b_reader, b_writer)) = (a.into_split(), b.into_split());
        // In a runtime and with a waiter before, as after any use.
        assert!(poll_with(&mut a_reader.readable(), &Counts::new()).is_pending());
        let error = a_reader.reunite(b_writer).unwrap_err();
        assert_eq!(error.to_string(), "the two halves belong to different streams");
        let (a_reader, b_writer) = (error.0, error.1);
        let error = a_writer.reunite(b_reader).unwrap_err();
        let (b_reader, a_writer) = (error.0, error.1);
        let (a, b) = (a_writer.reunite(a_reader).unwrap(), b_reader.reunite(b_writer).unwrap());
        // Neither direction has ended.
        a.write_all(b"ping").await.unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 4);
        b.write_all(b"pong").await.unwrap();
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 4);
        a.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn a_read_dropped_while_it_waits_takes_nothing() {
    each_kind!((a, b) => {
        let (reader, _writer) = a.into_split();
        let counts = Counts::new();
        let mut buf = [0; 8];
        for _ in 0..3 {
            assert!(poll_with(&mut reader.read(&mut buf), &counts).is_pending());
            assert!(poll_with(&mut reader.read_exact(&mut buf), &counts).is_pending());
            assert!(poll_with(&mut reader.peek(&mut buf), &counts).is_pending());
        }
        b.write_all(b"ping").await.unwrap();
        assert_eq!(reader.read(&mut buf).await.unwrap(), 4);
        assert_eq!(counts.wakes(), 0, "nobody waited any more");
    });
}

#[test]
fn halves_have_the_traits_of_streams() {
    each_kind!((a, b) => {
        let (mut reader, mut writer) = a.into_split();
        let (b_reader, b_writer) = b.into_split();
        AsyncWriteExt::write_all(&mut writer, b"by value").await.unwrap();
        AsyncWriteExt::write_all(&mut &b_writer, b"by reference").await.unwrap();
        AsyncWriteExt::flush(&mut writer).await.unwrap();
        AsyncWriteExt::close(&mut writer).await.unwrap();
        AsyncWriteExt::close(&mut &b_writer).await.unwrap();
        let (mut heard, mut b_heard) = (String::new(), String::new());
        reader.read_to_string(&mut heard).await.unwrap();
        (&b_reader).read_to_string(&mut b_heard).await.unwrap();
        assert_eq!((heard.as_str(), b_heard.as_str()), ("by reference", "by value"));
        AsyncWriteExt::close(&mut writer).await.expect("to close it again is nothing");
    });
}

#[test]
fn halves_can_be_named_and_sent() {
    fn assert_send<T: Send + Sync + Unpin + 'static>() {}
    assert_send::<(tcp::OwnedReadHalf, tcp::OwnedWriteHalf, tcp::ReuniteError)>();
    assert_send::<(unix::OwnedReadHalf, unix::OwnedWriteHalf, unix::ReuniteError)>();
    assert_send::<(tcp::ReadHalf<'static>, unix::WriteHalf<'static>)>();
}

#[test]
fn no_half_leaks_the_stream() {
    in_child("no_half_leaks_the_stream", || {
        mini::block_on(async {
            let before = open_files();
            for round in 0..8 {
                let (a, mut b) = std::os::unix::net::UnixStream::pair().unwrap();
                let (reader, writer) = UnixStream::from_std(a).unwrap().into_split();
                let mut buf = [0; 8];
                let counts = Counts::new();
                assert!(poll_with(&mut reader.read(&mut buf), &counts).is_pending());
                match round % 4 {
                    0 => drop((reader, writer)),
                    1 => drop((writer, reader)),
                    2 => {
                        writer.forget();
                        drop(reader);
                    }
                    _ => drop(reader.reunite(writer).unwrap()),
                }
                assert_eq!(b.read(&mut buf).unwrap(), 0);
                drop(b);
                assert_eq!(open_files(), before);
            }
        });
    });
}

#[test]
fn a_write_that_waits_ends_with_the_peer() {
    in_each_world(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (_reader, writer) = a.into_split();
        let counts = Counts::new();
        let block = [7; 1 << 16];
        while writer.try_write(&block).is_ok() {}
        let mut waiting = writer.write_all(&block);
        assert!(poll_with(&mut waiting, &counts).is_pending());
        drop(b);
        let error = waiting.await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        let _ = now(poll_with(&mut writer.writable(), &counts));
    });
}
