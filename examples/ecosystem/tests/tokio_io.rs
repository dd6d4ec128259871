//! tokio's I/O traits without its runtime: streams, halves, pipes, children, files and the standard streams.

use std::io::ErrorKind;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mini::net::UnixStream;
use mini::net::unix::pipe;
use mini::process::Command;
use mini::task::yield_now;
use mini_tests::net_support::{ScratchPath, Words, in_each_runtime, kind_of, narrow_tcp_pair, tcp_pair};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};

/// Writes a sequence to `to` and reads it from `from`, into memory that is not initialised.
async fn through(from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin + Send + 'static) {
    const BLOCKS: usize = 4;
    const BLOCK: usize = 64 << 10;
    let (mut from, mut to) = (from, to);
    let writer = mini::spawn(async move {
        let mut words = Words::new(1);
        for _ in 0..BLOCKS {
            to.write_all(&words.take(BLOCK)).await.unwrap();
        }
        to.flush().await.unwrap();
        to.shutdown().await.unwrap();
        drop(to);
        words.sum()
    });
    let mut received = Vec::with_capacity(BLOCKS * BLOCK + 1);
    while from.read_buf(&mut received).await.unwrap() > 0 {}
    let mut words = Words::new(0);
    assert_eq!(received.len(), BLOCKS * BLOCK);
    words.add(&received);
    assert_eq!(words.sum(), writer.await.unwrap());
}

#[test]
fn streams_and_halves_carry_bytes() {
    in_each_runtime(|| async {
        let (a, b) = narrow_tcp_pair().await;
        through(b, a).await;
        let (a, b) = UnixStream::pair().unwrap();
        through(b, a).await;
        let ((reader, _w), (_r, writer)) = {
            let (a, b) = tcp_pair().await;
            (a.into_split(), b.into_split())
        };
        through(reader, writer).await;
    });
}

#[test]
fn pipes_and_children_carry_bytes() {
    in_each_runtime(|| async {
        let (send, receive) = pipe::pipe().unwrap();
        through(receive, send).await;

        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        through(child.stdout.take().unwrap(), child.stdin.take().unwrap()).await;
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_child_that_closed_its_stdin_is_a_broken_pipe() {
    in_each_runtime(|| async {
        let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        child.wait().await.unwrap();
        // A process that another test has just forked may have the other end too, until it runs its program.
        let error = loop {
            match AsyncWriteExt::write_all(&mut stdin, b"x").await {
                Ok(()) => yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        AsyncWriteExt::shutdown(&mut stdin).await.unwrap();
        assert_eq!(kind_of(AsyncWriteExt::write_all(&mut stdin, b"x").await), ErrorKind::BrokenPipe);
    });
}

#[test]
fn files_are_written_and_read() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("tokio-io");
        let mut file = mini::fs::File::create(path.as_ref()).await.unwrap();
        AsyncWriteExt::write_all(&mut file, b"one\ntwo\n").await.unwrap();
        AsyncWriteExt::shutdown(&mut file).await.unwrap();
        let mut lines = BufReader::new(mini::fs::File::open(path.as_ref()).await.unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "two");
        assert_eq!(lines.next_line().await.unwrap(), None);
    });
}

#[test]
fn standard_streams_write_and_flush() {
    in_each_runtime(|| async {
        let mut out = mini::io::stdout();
        AsyncWriteExt::write_all(&mut out, b"written through tokio's trait\n").await.unwrap();
        AsyncWriteExt::shutdown(&mut out).await.unwrap();
        AsyncWriteExt::write_all(&mut out, b"and still open\n").await.unwrap();
        AsyncWriteExt::flush(&mut out).await.unwrap();
        fn assert_reads<T: AsyncRead>(_: T) {}
        assert_reads(mini::io::stdin());
    });
}

#[test]
fn what_is_read_follows_what_was_there() {
    in_each_runtime(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (sender, receiver) = pipe::pipe().unwrap();
        b.write_all(b"ping").await.unwrap();
        sender.write_all(b"ping").await.unwrap();
        sender.writable().await.unwrap();
        follows(a).await;
        follows(receiver).await;
    });
}

/// A read into a large buffer costs what is read, and not what there is room for.
#[test]
fn a_read_initialises_no_more_than_it_fills() {
    in_each_runtime(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        a.write_all(b"ping").await.unwrap();
        initialises_only(b"ping", b).await;

        let (sender, receiver) = pipe::pipe().unwrap();
        sender.write_all(b"ping").await.unwrap();
        initialises_only(b"ping", receiver).await;

        let mut child = Command::new("sh").args(["-c", "printf ping"]).stdout(Stdio::piped()).spawn().unwrap();
        initialises_only(b"ping", child.stdout.take().unwrap()).await;
        child.wait().await.unwrap();

        let path = ScratchPath::new("tokio-io-room");
        std::fs::write(&path, b"ping").unwrap();
        initialises_only(b"ping", mini::fs::File::open(&path).await.unwrap()).await;
        if cfg!(target_os = "linux") {
            // Read in a thread, as its file system has no other way.
            initialises_only(b"Linux\n", mini::fs::File::open("/proc/sys/kernel/ostype").await.unwrap()).await;
        }
    });
}

async fn initialises_only(bytes: &[u8], mut from: impl AsyncRead + Unpin) {
    let mut room = [std::mem::MaybeUninit::uninit(); 1 << 16];
    let mut buf = ReadBuf::uninit(&mut room);
    std::future::poll_fn(|cx| Pin::new(&mut from).poll_read(cx, &mut buf)).await.unwrap();
    assert_eq!(buf.filled(), bytes);
    assert_eq!(buf.initialized().len(), bytes.len());
}

async fn follows(mut from: impl AsyncRead + Unpin) {
    let mut room = [std::mem::MaybeUninit::uninit(); 6];
    let mut buf = ReadBuf::uninit(&mut room);
    buf.put_slice(b"<");
    std::future::poll_fn(|cx| Pin::new(&mut from).poll_read(cx, &mut buf)).await.unwrap();
    assert_eq!(buf.filled(), b"<ping");
    let polled = Pin::new(&mut from).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
    assert!(matches!(polled, Poll::Pending), "{polled:?}");
    assert_eq!(buf.filled(), b"<ping");
}

#[test]
fn a_reset_reaches_the_caller() {
    in_each_runtime(|| async {
        let (mut a, b) = tcp_pair().await;
        b.set_linger(Some(Duration::ZERO)).unwrap();
        drop(b);
        assert_eq!(kind_of(AsyncReadExt::read(&mut a, &mut [0; 8]).await), ErrorKind::ConnectionReset);
    });
}

#[test]
fn tokios_own_copy_runs_between_streams() {
    in_each_runtime(|| async {
        let ((client, mut near), (mut far, server)) = (tcp_pair().await, UnixStream::pair().unwrap());
        let proxy = mini::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        client.write_all(b"question").await.unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut question = Vec::new();
        let (mut reader, mut writer) = server.into_split();
        AsyncReadExt::read_to_end(&mut reader, &mut question).await.unwrap();
        assert_eq!(question, b"question");
        AsyncWriteExt::write_all(&mut writer, b"answer").await.unwrap();
        drop(writer);
        assert_eq!(proxy.await.unwrap().unwrap(), (8, 6));
        let mut answer = [0; 6];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
    });
}

#[test]
fn a_read_of_nothing_waits_for_nothing() {
    mini::block_on(async {
        let (mut a, _b) = mini::net::UnixStream::pair().unwrap();
        assert!(mini::time::timeout(Duration::from_millis(1), a.read(&mut [0])).await.is_err()); // by mini: it waits
        assert_eq!(AsyncReadExt::read(&mut a, &mut []).await.unwrap(), 0);
    });
}
