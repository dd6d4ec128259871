//! `copy` and `copy_bidirectional`: between sockets, where the kernel has a short cut, and between anything else.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::AsyncReadExt;
use futures_lite::future::{or, zip};
use futures_lite::io::{BufReader, BufWriter, Cursor};
use mini::io::{AsyncRead, AsyncWrite, copy, copy_bidirectional};
use mini::net::{TcpStream, UnixStream};
use mini::signal::unix::{SignalKind, signal};
use mini_tests::net_support::{Words, in_each_runtime, in_each_world, kind_of, narrow_tcp_pair, open_files, tcp_pair};
use mini_tests::{Counts, block_on_elsewhere, caught, in_child, on_single_workers, poll_with, until};
use rustix::net::SendFlags;

/// Much more than fits into the buffers on the way, in blocks of several sizes.
const BLOCKS: [usize; 6] = [8, 4 << 10, 8 << 10, 1 << 20, 64, 256 << 10];

/// Writes, ends writing, and tells the sum.
async fn talk<S>(stream: &S, seed: u64) -> u64
where
    for<'a> &'a S: AsyncWrite,
{
    let (mut words, mut writer) = (Words::new(seed), stream);
    for block in BLOCKS {
        futures_lite::AsyncWriteExt::write_all(&mut writer, &words.take(block)).await.unwrap();
    }
    futures_lite::AsyncWriteExt::close(&mut writer).await.unwrap();
    words.sum()
}

/// Reads to the end, and tells the sum.
async fn listen<S>(stream: &S) -> u64
where
    for<'a> &'a S: AsyncRead,
{
    let (mut words, mut block, mut reader) = (Words::new(0), Vec::new(), stream);
    reader.read_to_end(&mut block).await.unwrap();
    words.add(&block);
    words.sum()
}

/// Both ends talk and listen, `a` through what copies between `near` and `far`.
async fn both_ways<A, B, X, Y>(a: A, mut near: X, mut far: Y, b: B)
where
    for<'a> &'a A: AsyncRead + AsyncWrite,
    for<'a> &'a B: AsyncRead + AsyncWrite,
    A: Send + Sync + 'static,
    B: Send + Sync + 'static,
    X: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Y: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let total = BLOCKS.iter().sum::<usize>() as u64;
    let proxy = mini::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
    let there = zip(talk(&a, 1), listen(&b));
    let back = zip(talk(&b, 2), listen(&a));
    let ((sent, received), (answered, answer)) = zip(there, back).await;
    assert_eq!((sent, answered), (received, answer));
    assert_eq!(proxy.await.unwrap().unwrap(), (total, total));
}

#[test]
fn sockets_carry_much_both_ways() {
    in_each_world(|| async {
        let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
        both_ways(a, near, far, b).await;
        let ((a, near), (far, b)) = (tcp_pair().await, UnixStream::pair().unwrap());
        both_ways(a, near, far, b).await;
        let ((a, near), (far, b)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        both_ways(a, near, far, b).await;
    });
}

#[test]
fn sockets_with_little_room_carry_much_both_ways() {
    in_each_world(|| async {
        let ((a, near), (far, b)) = (narrow_tcp_pair().await, narrow_tcp_pair().await);
        both_ways(a, near, far, b).await;
    });
}

#[test]
fn other_ends_carry_much_both_ways() {
    in_each_world(|| async {
        let ((a, near), (far, b)) = (tcp_pair().await, UnixStream::pair().unwrap());
        both_ways(a, Box::new(near), Box::new(far), b).await;
    });
}

#[test]
fn references_to_sockets_carry_much() {
    in_each_world(|| async {
        let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
        let copied = async {
            let copied = copy(&mut &near, &mut &far).await.unwrap();
            far.shutdown(Shutdown::Write).unwrap();
            copied
        };
        let (copied, (sent, received)) = zip(copied, zip(talk(&a, 1), listen(&b))).await;
        assert_eq!(copied, BLOCKS.iter().sum::<usize>() as u64);
        assert_eq!(sent, received);
    });
}

#[test]
fn halves_of_sockets_carry_much() {
    in_each_world(|| async {
        let ((a, mut near), (far, b)) = (tcp_pair().await, UnixStream::pair().unwrap());
        let copied = async {
            let ((mut reader, _), (_, mut writer)) = (near.split(), far.into_split());
            copy(&mut reader, &mut writer).await.unwrap()
        };
        let (copied, (sent, received)) = zip(copied, zip(talk(&a, 1), listen(&b))).await;
        assert_eq!(copied, BLOCKS.iter().sum::<usize>() as u64);
        assert_eq!(sent, received);
    });
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        let proxy = mini::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        let mut buf = [0; 8];
        a.write_all(b"ping").await.unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        b.read_exact(&mut buf[..4]).await.unwrap();
        assert_eq!(b.read(&mut buf).await.unwrap(), 0, "the end has been passed on");
        for answer in 0..100u8 {
            b.write_all(&[answer]).await.unwrap();
            a.read_exact(&mut buf[..1]).await.unwrap();
            assert_eq!(buf[0], answer);
        }
        assert!(!proxy.is_finished());
        b.shutdown(Shutdown::Write).unwrap();
        assert_eq!(a.read(&mut buf).await.unwrap(), 0);
        assert_eq!(proxy.await.unwrap().unwrap(), (4, 100));
    });
}

#[test]
fn a_copy_does_not_close_the_writer() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, UnixStream::pair().unwrap());
        a.write_all(b"first").await.unwrap();
        drop(a);
        assert_eq!(copy(&mut near, &mut far).await.unwrap(), 5);
        far.write_all(b"second").await.unwrap();
        let mut buf = [0; 11];
        b.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"firstsecond");
    });
}

/// Sends until nothing more fits for now, so that the copy is in the middle of much.
async fn press(
    from: &TcpStream,
    through: impl Future<Output = io::Result<(u64, u64)>> + Unpin,
) -> io::Result<(u64, u64)> {
    let block = vec![7; 64 << 10];
    let send = async {
        while from.write_all(&block).await.is_ok() {}
        std::future::pending().await
    };
    or(through, send).await
}

#[test]
fn a_reset_ends_both_directions_and_says_where_it_was() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        b.set_linger(Some(Duration::ZERO)).unwrap();
        let mut proxy = Box::pin(copy_bidirectional(&mut near, &mut far));
        let mut taken = vec![0; 1 << 20];
        let some = async {
            b.read_exact(&mut taken).await.unwrap();
            Ok((0, 0))
        };
        press(&a, or(&mut proxy, Box::pin(some))).await.unwrap();
        drop(b);
        let error = press(&a, &mut proxy).await.unwrap_err();
        assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()), "{error:?}");
        assert!(error.raw_os_error().is_some(), "{error}");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_begins_to_listen_to_sigpipe_hears_of_none() {
    let _ = in_child("a_program_that_begins_to_listen_to_sigpipe_hears_of_none", || {
        mini::block_on(async {
            let ((a, mut near), (mut far, b)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
            let mut proxy = Box::pin(copy(&mut near, &mut far));
            // Until the copy stands still: `b` reads nothing, so the last bytes wait in a pipe.
            let counts = Counts::new();
            let mut refused = 0;
            while refused < 2 {
                refused = if a.try_write(&[0; 64 << 10]).is_ok() { 0 } else { refused + 1 };
                assert!(poll_with(&mut proxy, &counts).is_pending());
                mini::task::idle().await;
            }
            let mut signals = signal(SignalKind::pipe()).unwrap();
            drop(b);
            assert_eq!(proxy.await.unwrap_err().kind(), ErrorKind::BrokenPipe);
            let mut heard = pin!(signals.recv());
            assert!(poll_with(&mut heard, &counts).is_pending());
            mini::task::idle().await;
            assert!(poll_with(&mut heard, &counts).is_pending(), "there was no signal");
        });
    });
}

#[test]
fn a_reset_while_it_is_read_is_no_end() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        a.set_linger(Some(Duration::ZERO)).unwrap();
        let proxy = mini::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        let (mut words, mut block) = (Words::new(1), vec![0; 1 << 20]);
        zip(async { a.write_all(&words.take(1 << 20)).await.unwrap() }, async {
            b.read_exact(&mut block).await.unwrap()
        })
        .await;
        drop(a);
        let error = proxy.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

// Not in simulations: urgent data is not simulated.
#[test]
fn urgent_data_stops_nothing() {
    in_each_runtime(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        let mut proxy = Box::pin(copy(&mut near, &mut far));
        let block = vec![7; 256 << 10];
        let send = async {
            for _ in 0..4 {
                a.write_all(&block).await.unwrap();
                let urgent = || Ok(rustix::net::send(&a, b"!", SendFlags::OOB)?);
                assert_eq!(a.async_io(mini::io::Interest::WRITABLE, urgent).await.unwrap(), 1);
            }
            a.shutdown(Shutdown::Write).unwrap();
        };
        let mut received = vec![0; 4 * block.len()];
        let (copied, _) = zip(&mut proxy, zip(send, async { b.read_exact(&mut received).await.unwrap() })).await;
        // An urgent byte is not part of the stream, unless a later one takes its place before it was passed.
        assert!(copied.unwrap() >= received.len() as u64);
    });
}

#[test]
fn a_message_goes_out_at_once_also_through_a_buffered_writer() {
    in_each_world(|| async {
        let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
        let (mut near, mut far) = (BufReader::new(near), BufWriter::new(far));
        let proxy = mini::spawn(async move { copy(&mut near, &mut far).await });
        let mut byte = [0];
        for message in 0..100u8 {
            a.write_all(&[message]).await.unwrap();
            b.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [message]);
        }
        drop(a);
        assert_eq!(proxy.await.unwrap().unwrap(), 100);
    });
}

#[test]
fn what_a_buffered_reader_has_read_already_is_copied_first() {
    in_each_world(|| async {
        let ((a, near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        let mut near = BufReader::new(near);
        a.write_all(b"GET /").await.unwrap();
        let mut first = [0];
        near.read_exact(&mut first).await.unwrap();
        drop(a);
        assert_eq!(copy(&mut near, &mut far).await.unwrap(), 4);
        let mut rest = [0; 4];
        b.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"ET /");
    });
}

/// Never ends, never waits.
struct Endless;

/// A sink that takes as much as a closure says.
struct Takes<F>(F);

impl AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        buf.fill(7);
        Poll::Ready(Ok(buf.len()))
    }
}

impl<F: FnMut(&[u8]) -> io::Result<usize> + Unpin> AsyncWrite for Takes<F> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready((self.0)(buf))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(ErrorKind::StorageFull.into()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn an_endless_copy_lets_others_run() {
    on_single_workers(|builder| {
        builder.build().unwrap().block_on(async {
            let copying = mini::spawn(async { copy(&mut Endless, &mut Takes(|buf: &[u8]| Ok(buf.len()))).await });
            let other = mini::spawn(async { mini::time::sleep(Duration::from_millis(1)).await });
            other.await.unwrap();
            assert!(!copying.is_finished());
            assert!(copying.cancel().await.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_writer_that_fails_ends_the_copy() {
    mini::block_on(async {
        let error = copy(&mut Endless, &mut Takes(|_: &[u8]| Ok(0))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        let mut reader = Cursor::new(b"some");
        let error = copy(&mut reader, &mut Takes(|buf: &[u8]| Ok(buf.len()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let mut nothing = Cursor::new(b"");
        assert_eq!(copy(&mut nothing, &mut Takes(|_: &[u8]| Ok(0))).await.unwrap(), 0);
    });
}

/// Through the buffer and, with more bytes, through the pipe.
#[test]
fn a_copy_tells_on_its_way_how_many_bytes_have_gone() {
    in_each_world(|| async {
        for size in [10, 300_000] {
            let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
            let (sent, mut received) = (vec![7; size], vec![0; size]);
            let mut proxy = copy_bidirectional(&mut near, &mut far);
            assert_eq!(proxy.copied(), (0, 0));
            let there = async {
                zip(a.write_all(&sent), b.read_exact(&mut received)).await.1.unwrap();
                true
            };
            assert!(or(async { (&mut proxy).await.is_err() }, there).await);
            assert_eq!(proxy.copied(), (size as u64, 0));
            let mut answer = [0; 3];
            let back = async {
                b.write_all(b"yes").await.unwrap();
                a.read_exact(&mut answer).await.unwrap();
                true
            };
            assert!(or(async { (&mut proxy).await.is_err() }, back).await);
            assert_eq!(proxy.copied(), (size as u64, 3));
        }
    });
}

#[test]
fn a_dropped_copy_leaves_the_ends_as_they_are() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
        let counts = Counts::new();
        let mut copying = copy_bidirectional(&mut near, &mut far);
        assert!(poll_with(&mut copying, &counts).is_pending());
        drop(copying);
        a.write_all(b"ping").await.unwrap();
        b.write_all(b"pong").await.unwrap();
        let mut buf = [0; 4];
        near.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"ping");
        far.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"pong");
        near.write_all(b"more").await.unwrap();
        a.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"more");
    });
}

#[test]
fn a_task_that_copies_shows_its_line() {
    in_each_world(|| async {
        let ((a, mut near), (mut far, _b)) = (tcp_pair().await, tcp_pair().await);
        let line = line!() + 1;
        let proxy = mini::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        until(|| format!("{proxy:?}").contains("last_wait")).await;
        let text = format!("{proxy:?}");
        assert!(text.contains(&format!("copy.rs:{line}:")), "{text}");
        drop(a);
        proxy.abort();
    });
}

#[test]
fn a_copy_that_has_to_wait_elsewhere_blames_the_caller() {
    let (mut a, _b) = UnixStream::pair().unwrap();
    let (mut c, _d) = UnixStream::pair().unwrap();
    let line = line!() + 1;
    let panic = caught(|| block_on_elsewhere(copy_bidirectional(&mut a, &mut c)));
    let place = format!("`io::copy_bidirectional`, called at {}:{line}:", file!());
    assert!(panic.message.contains(&place), "{}", panic.message);
}

#[test]
fn a_copy_closes_its_pipes() {
    let _ = in_child("a_copy_closes_its_pipes", || {
        mini::block_on(async {
            let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
            let (counts, block, mut buf) = (Counts::new(), vec![7; 64 << 10], vec![0; 64 << 10]);
            let before = open_files();
            let has_pipes = cfg!(all(any(target_os = "linux", target_os = "android"), not(mini_kqueue_shim)));
            let mut copying = copy_bidirectional(&mut near, &mut far);
            while open_files() == before && has_pipes {
                let _ = a.try_write(&block);
                assert!(poll_with(&mut copying, &counts).is_pending());
                mini::task::yield_now().await;
            }
            // In the middle of much: bytes are in the pipe, and the sink is full.
            let mut stuck = 0;
            while stuck < 1000 {
                stuck = if a.try_write(&block).is_ok() { 0 } else { stuck + 1 };
                assert!(poll_with(&mut copying, &counts).is_pending());
                mini::task::yield_now().await;
            }
            drop(copying);
            assert_eq!(open_files(), before);

            // A pipe is given up when nothing comes, and when messages are small again.
            b.set_linger(Some(Duration::ZERO)).unwrap();
            drop((a, near, far, b));
            let ((a, mut near), (mut far, b)) = (tcp_pair().await, tcp_pair().await);
            let mut copying = pin!(copy_bidirectional(&mut near, &mut far));
            let exchange = async {
                zip(async { a.write_all(&block).await.unwrap() }, async { b.read_exact(&mut buf).await.unwrap() })
                    .await;
                until(|| open_files() == before).await;
                for _ in 0..10 {
                    a.write_all(b"small").await.unwrap();
                    while b.read(&mut buf).await.unwrap() != 5 {}
                }
            };
            or(async { drop(copying.as_mut().await) }, exchange).await;
            assert_eq!(open_files(), before);
        });
    });
}

#[test]
fn without_a_descriptor_for_a_pipe_bytes_are_copied() {
    let _ = in_child("without_a_descriptor_for_a_pipe_bytes_are_copied", || {
        mini::block_on(async {
            let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
            // All sockets wait once, so that nothing has to be opened for them later.
            poll_fn(|cx| {
                for stream in [&a, &near, &far, &b] {
                    let _ = stream.poll_read_ready(cx);
                }
                Poll::Ready(())
            })
            .await;
            let mut hoard = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                hoard.push(file);
            }
            both_ways(a, near, far, b).await;
        });
    });
}

#[test]
fn kinds_of_errors_are_kept_by_a_copy() {
    mini::block_on(async {
        let (mut a, b) = UnixStream::pair().unwrap();
        drop(b);
        let copied = copy(&mut Cursor::new(b"ping"), &mut a).await;
        assert_eq!(kind_of(copied), ErrorKind::BrokenPipe);
    });
}
