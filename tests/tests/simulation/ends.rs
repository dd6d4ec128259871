//! How connections of a simulation end, and what their ends hear of each other: as on Linux.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::rc::Rc;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream};
use mini::sim::{Sim, current};
use mini::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Accepts one connection, and does with it what `serve` does.
fn serve_one<F: Future<Output = ()> + 'static>(serve: impl Fn(TcpStream) -> F + Copy + 'static) {
    current().host("server", move || async move {
        let listener = TcpListener::bind("0.0.0.0:1").await?;
        let (stream, _) = listener.accept().await?;
        serve(stream).await;
        std::future::pending::<io::Result<()>>().await
    });
}

/// Writes until there is no more room, and says how much there was.
async fn fill(stream: &TcpStream) -> usize {
    let mut sent = 0;
    while let Ok(count) = timeout(SECOND, stream.write(&[0; 8192])).await {
        sent += count.unwrap();
    }
    sent
}

async fn first_error(stream: &TcpStream) -> ErrorKind {
    loop {
        if let Err(error) = stream.write(&[0; 8192]).await {
            return error.kind();
        }
    }
}

/// Reads what there is.
async fn read_all(stream: &TcpStream) {
    let mut buf = vec![0; 1 << 20];
    assert!(stream.read(&mut buf).await.unwrap() > 0);
}

#[mini::test(sim, seeds = 20)]
async fn nobody_accepts_a_connect_that_was_given_up() {
    let sim = current();
    sim.latency(ms(10)..ms(10));
    let accepted = Rc::new(Cell::new(0));
    let count = accepted.clone();
    sim.host("server", move || {
        let accepted = count.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:1").await?;
            loop {
                let (stream, _) = listener.accept().await?;
                accepted.set(accepted.get() + 1);
                let kind = stream.read(&mut [0; 1]).await.unwrap_err().kind();
                assert_eq!(kind, ErrorKind::ConnectionReset);
            }
            #[allow(unreachable_code)]
            Ok::<(), io::Error>(())
        }
    });
    sim.settle().await;
    assert!(timeout(ms(15), TcpStream::connect("server:1")).await.is_err());
    sleep(SECOND).await;
    assert_eq!(accepted.get(), 0, "after a timeout");
    for (after, count) in [(15, 0), (25, 1)] {
        let name = format!("client {after}");
        let client = sim.client(&name, async {
            let _stream = TcpStream::connect("server:1").await?;
            sleep(SECOND).await;
            io::Result::Ok(())
        });
        sleep(ms(after)).await;
        sim.crash(&name);
        assert!(client.await.is_err());
        sleep(SECOND).await;
        assert_eq!(accepted.get(), count, "after a crash at {after} ms");
    }
}

#[mini::test(sim, seeds = 20)]
async fn the_first_reset_is_the_last() {
    let sim = current();
    sim.rough(false).latency(ms(10)..ms(10));
    serve_one(|stream| async move {
        stream.readable().await.unwrap();
        drop(stream); // with what it has not read
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    stream.write_all(b"a").await.unwrap();
    sleep(ms(5)).await;
    stream.write_all(b"b").await.unwrap(); // which comes to nobody
    sleep(SECOND).await;
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[mini::test(sim, seeds = 20)]
async fn an_answer_comes_though_the_request_was_not_read() {
    let sim = current();
    serve_one(|stream| async move {
        stream.read_exact(&mut [0; 1]).await.unwrap();
        stream.write_all(b"answer").await.unwrap();
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    sim.rough(false);
    stream.write_all(b"request").await.unwrap();
    let mut buf = [0; 6];
    stream.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"answer");
    assert_eq!(stream.read(&mut buf).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[mini::test(sim, seeds = 20)]
async fn bytes_to_a_shut_end_may_be_read_unless_both_halves_are_shut() {
    let sim = current();
    sim.rough(false);
    serve_one(|stream| async move {
        for _ in 0..2 {
            sleep(SECOND).await;
            stream.write_all(b"late").await.unwrap();
        }
        sleep(SECOND).await;
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
    sim.settle().await;
    let (stream, mut buf) = (TcpStream::connect("server:1").await.unwrap(), [0; 4]);
    stream.shutdown(Shutdown::Read).unwrap();
    assert_eq!(stream.read(&mut buf).await.unwrap(), 0);
    sleep(SECOND + SECOND / 2).await;
    assert_eq!(stream.read(&mut buf).await.unwrap(), 4);
    assert_eq!(stream.read(&mut buf).await.unwrap(), 0);
    stream.shutdown(Shutdown::Write).unwrap();
    sleep(SECOND).await;
    assert_eq!(stream.read(&mut buf).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    sleep(SECOND).await;
}

#[mini::test(sim, seeds = 20)]
async fn one_end_that_has_timed_out_resets_the_other() {
    let sim = current();
    serve_one(|stream| async move {
        sleep(SECOND).await;
        stream.write_all(b"hello").await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        std::future::pending::<()>().await;
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    sleep(SECOND / 2).await;
    sim.partition("test", "server");
    sleep(1200 * SECOND).await;
    sim.repair("test", "server");
    stream.write_all(b"anybody?").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[mini::test(sim, seeds = 20)]
async fn who_waits_for_room_finds_out_that_nobody_is_there() {
    let sim = current();
    serve_one(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    assert_eq!(fill(&stream).await, 16_384 + 131_072, "whatever the system's defaults are");
    sim.power_off("server");
    assert_eq!(timeout(1200 * SECOND, first_error(&stream)).await.unwrap(), ErrorKind::TimedOut);
    sim.restart("server");
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    fill(&stream).await;
    sim.partition("test", "server");
    assert_eq!(timeout(1200 * SECOND, first_error(&stream)).await.unwrap(), ErrorKind::TimedOut);
}

/// A writer fills the buffers of a connection whose reader does `first`, reads all a minute later, and closes.
async fn hears_of_a_late_reader(first: fn(&TcpStream)) {
    let sim = current();
    serve_one(move |stream| async move {
        first(&stream);
        sleep(60 * SECOND).await;
        read_all(&stream).await;
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    fill(&stream).await;
    timeout(SECOND * 120, first_error(&stream)).await.unwrap();
}

#[mini::test(sim, seeds = 40)]
async fn who_waits_for_room_hears_of_a_reader_that_closes() {
    hears_of_a_late_reader(|_| {}).await;
}

#[mini::test(sim, seeds = 40)]
async fn who_waits_for_room_hears_of_a_reader_that_had_shut_its_other_half() {
    hears_of_a_late_reader(|stream| stream.shutdown(Shutdown::Write).unwrap()).await;
}

#[mini::test(sim, seeds = 20)]
async fn room_is_heard_of_after_a_partition() {
    let sim = current();
    serve_one(|stream| async move {
        sleep(60 * SECOND).await;
        read_all(&stream).await;
        std::future::pending::<()>().await;
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    fill(&stream).await;
    sim.partition("test", "server");
    sleep(100 * SECOND).await;
    sim.repair("test", "server");
    timeout(200 * SECOND, stream.write_all(&[0; 8192])).await.unwrap().unwrap();
}

#[test]
fn a_reader_whose_writer_is_gone_without_a_word_is_a_deadlock() {
    let failure = Sim::new(1).run(async {
        let sim = current();
        sim.rough(false).latency(ms(10)..ms(10));
        serve_one(|stream| async move { while stream.write_all(&[0; 8192]).await.is_ok() {} });
        sim.settle().await;
        let stream = TcpStream::connect("server:1").await.unwrap();
        sleep(60 * SECOND).await;
        stream.read_exact(&mut [0; 1000]).await.unwrap(); // of which the writer will not hear
        sim.power_off("server");
        loop {
            read_all(&stream).await;
        }
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("deadlock") && text.contains("Read"), "{text}");
}
