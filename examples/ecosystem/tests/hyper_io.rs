//! `hyper::rt`'s traits: reading and writing by hand, as hyper does it, timers and executors.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::{Executor as _, Read, ReadBuf, Sleep, Timer as _, Write};
use mini::hyper::{Executor, LocalExecutor, Timer};
use mini::net::{TcpStream, UnixStream};
use mini::runtime::Runtime;
use mini_tests::net_support::{in_each_runtime, kind_of, narrow_tcp_pair, tcp_pair};
use mini_tests::{LIMIT, within};

async fn read(stream: &mut (impl Read + Unpin), buf: &mut ReadBuf<'_>) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, buf.unfilled())).await
}

async fn write(stream: &mut (impl Write + Unpin), bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await
}

async fn shutdown(stream: &mut (impl Write + Unpin)) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await
}

fn poll_once(stream: &mut (impl Read + Unpin), buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    Pin::new(stream).poll_read(&mut Context::from_waker(Waker::noop()), buf.unfilled())
}

/// Reads messages and the end from `from`, which `to` writes.
async fn messages(mut from: impl Read + Unpin, mut to: impl Write + Unpin) {
    let mut room = [MaybeUninit::uninit(); 10];
    let mut buf = ReadBuf::uninit(&mut room);
    assert_eq!(write(&mut to, b"ping").await.unwrap(), 4);
    read(&mut from, &mut buf).await.unwrap();
    assert_eq!(buf.filled(), b"ping");
    assert!(poll_once(&mut from, &mut buf).is_pending());

    // More than the buffer takes: the rest stays for the next buffer.
    assert_eq!(write(&mut to, b"pongpong").await.unwrap(), 8);
    read(&mut from, &mut buf).await.unwrap();
    assert_eq!(buf.filled(), b"pingpongpo");
    read(&mut from, &mut buf).await.unwrap(); // a full buffer does not wait
    let mut room = [MaybeUninit::uninit(); 10];
    let mut buf = ReadBuf::uninit(&mut room);
    read(&mut from, &mut buf).await.unwrap();
    assert_eq!(buf.filled(), b"ng");

    shutdown(&mut to).await.unwrap();
    shutdown(&mut to).await.unwrap();
    read(&mut from, &mut buf).await.unwrap();
    assert_eq!(buf.filled(), b"ng", "the end of the stream fills nothing");
}

#[test]
fn what_is_read_follows_what_was_there() {
    in_each_runtime(|| async {
        let (a, b) = tcp_pair().await;
        messages(a, b).await;
        let (a, b) = UnixStream::pair().unwrap();
        messages(a, b).await;
    });
}

#[test]
fn halves_read_and_write_too() {
    in_each_runtime(|| async {
        let (a, b) = tcp_pair().await;
        let ((reader, _writer), (_reader, writer)) = (a.into_split(), b.into_split());
        messages(reader, writer).await;
        let (mut a, mut b) = UnixStream::pair().unwrap();
        messages(a.split().0, b.split().1).await;
    });
}

#[test]
fn a_read_wakes_when_data_come() {
    in_each_runtime(|| async {
        let (mut a, b) = tcp_pair().await;
        let reader = mini::spawn(async move {
            let mut room = [MaybeUninit::uninit(); 64];
            let mut buf = ReadBuf::uninit(&mut room);
            read(&mut a, &mut buf).await.unwrap();
            buf.filled().to_vec()
        });
        mini::task::yield_now().await;
        b.write_all(b"late").await.unwrap();
        assert_eq!(reader.await.unwrap(), b"late");
    });
}

#[test]
fn a_dropped_read_takes_nothing() {
    in_each_runtime(|| async {
        let (mut a, b) = UnixStream::pair().unwrap();
        let mut room = [MaybeUninit::uninit(); 8];
        assert!(poll_once(&mut a, &mut ReadBuf::uninit(&mut room)).is_pending());
        b.write_all(b"kept").await.unwrap();
        let mut buf = ReadBuf::uninit(&mut room);
        read(&mut a, &mut buf).await.unwrap();
        assert_eq!(buf.filled(), b"kept");
    });
}

#[test]
fn slices_are_written_in_order() {
    in_each_runtime(|| async {
        let (mut a, b) = tcp_pair().await;
        assert!(a.is_write_vectored());
        for size in [3, 4000] {
            let (first, second) = (vec![1; size], vec![2; size]);
            let bufs = [IoSlice::new(&first), IoSlice::new(&[]), IoSlice::new(&second)];
            let written = poll_fn(|cx| Pin::new(&mut a).poll_write_vectored(cx, &bufs)).await.unwrap();
            assert_eq!(written, 2 * size);
            let mut received = vec![0; 2 * size];
            b.read_exact(&mut received).await.unwrap();
            assert_eq!(received, [first, second].concat());
        }
        poll_fn(|cx| Pin::new(&mut a).poll_flush(cx)).await.unwrap();
    });
}

#[test]
fn a_write_waits_for_room() {
    in_each_runtime(|| async {
        let (mut a, b) = narrow_tcp_pair().await;
        let writer = mini::spawn(async move {
            let mut left = 1 << 20;
            while left > 0 {
                left -= write(&mut a, &[7; 1 << 16][..left.min(1 << 16)]).await.unwrap();
            }
            shutdown(&mut a).await.unwrap();
        });
        let (mut buf, mut total) = (vec![0; 1 << 14], 0);
        while let read @ 1.. = b.read(&mut buf).await.unwrap() {
            total += read;
        }
        assert_eq!(total, 1 << 20);
        writer.await.unwrap();
    });
}

#[test]
fn errors_reach_the_caller() {
    in_each_runtime(|| async {
        let (mut a, b) = tcp_pair().await;
        b.set_linger(Some(Duration::ZERO)).unwrap();
        drop(b);
        let mut room = [MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut room);
        assert_eq!(kind_of(read(&mut a, &mut buf).await), ErrorKind::ConnectionReset);
        assert!(buf.filled().is_empty());
        assert_eq!(kind_of(write(&mut a, b"x").await), ErrorKind::BrokenPipe);
        shutdown(&mut a).await.unwrap(); // there is nobody to tell, which is as good
    });
}

#[test]
fn waiting_outside_of_a_runtime_panics_with_the_name() {
    let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut a = UnixStream::from_std(a).unwrap();
    let mut room = [MaybeUninit::uninit(); 8];
    let panic = catch_unwind(AssertUnwindSafe(|| poll_once(&mut a, &mut ReadBuf::uninit(&mut room)))).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("UnixStream::poll_read") && text.contains("no mini runtime"), "{text}");
}

#[test]
fn a_deadline_moves_in_both_directions() {
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let timer = Timer::new();
            let start = timer.now();
            let at = |seconds| start + Duration::from_secs(seconds);
            for deadline in [5, 500] {
                let start = timer.now();
                let mut sleep = timer.sleep(Duration::from_secs(50));
                assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                timer.reset(&mut sleep, start + Duration::from_secs(deadline));
                sleep.await;
                let took = timer.now() - start;
                assert!(took >= Duration::from_secs(deadline) && took < Duration::from_secs(deadline + 1), "{took:?}");
            }
            timer.sleep_until(at(1)).await; // long past

            // A sleep that is over can sleep again.
            let mut sleep = timer.sleep(Duration::ZERO);
            sleep.as_mut().await;
            let deadline = timer.now() + Duration::from_secs(3);
            timer.reset(&mut sleep, deadline);
            sleep.await;
            assert!(timer.now() >= deadline);
        });
    });
}

#[test]
fn a_sleep_of_another_timer_is_replaced() {
    struct Foreign;
    impl Sleep for Foreign {}
    impl Future for Foreign {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
    within(LIMIT, || {
        mini::block_on(async {
            mini::time::pause();
            let timer = Timer::new();
            let mut sleep: Pin<Box<dyn Sleep>> = Box::pin(Foreign);
            timer.reset(&mut sleep, timer.now() + Duration::from_secs(1));
            sleep.await;
        });
    });
}

#[test]
fn an_executor_spawns_where_it_is_used() {
    in_each_runtime(|| async {
        let (sender, receiver) = mini_tests::oneshot();
        Executor::new().execute(async move { sender.send(mini::task::try_id().is_some()) });
        assert_eq!(receiver.await, Some(true));
    });
}

#[test]
fn an_executor_without_a_runtime_panics_on_a_foreign_thread() {
    let refused = catch_unwind(|| Executor::new().execute(async {}));
    assert!(refused.is_err());
    let refused = catch_unwind(|| LocalExecutor::new().execute(async {}));
    assert!(refused.is_err());
}

#[test]
fn an_executor_of_a_runtime_spawns_from_anywhere_and_drops_after_its_end() {
    within(LIMIT, || {
        let runtime = Runtime::new().unwrap();
        let executor = Executor::on(runtime.handle().clone());
        let (sender, receiver) = mpsc::channel();
        let there = sender.clone();
        executor.execute(async move { there.send(7).unwrap() });
        assert_eq!(receiver.recv().unwrap(), 7);

        drop(runtime);
        executor.execute(async move {
            let _kept = sender;
            pending::<()>().await;
        });
        assert!(receiver.recv().is_err(), "the future was dropped");
    });
}

#[test]
fn a_local_executor_needs_no_send() {
    within(LIMIT, || {
        mini::block_on(async {
            let count = Rc::new(Cell::new(0));
            let inside = count.clone();
            LocalExecutor::new().execute(async move { inside.set(1) });
            mini::task::yield_now().await;
            assert_eq!(count.get(), 1);
        });
    });
}

#[test]
fn hyper_takes_streams_as_they_are() {
    fn assert_io<T: Read + Write + Unpin + Send + 'static>() {}
    assert_io::<TcpStream>();
    assert_io::<UnixStream>();
}
