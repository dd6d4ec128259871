//! The network of a simulation: hosts, links, and what happens to connections when those fail.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};
use std::rc::Rc;
use std::time::Duration;

use mini::net::{TcpListener, TcpSocket, TcpStream, UdpSocket, UnixListener, UnixStream};
use mini::sim::{Current, Sim, current};
use mini::time::{Instant, sleep, timeout};
use mini::{spawn, task::spawn_local};

const SECOND: Duration = Duration::from_secs(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Answers each connection with what it says.
async fn echo() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        spawn(async move {
            let mut buf = [0; 1024];
            while let Ok(count @ 1..) = stream.read(&mut buf).await {
                if stream.write_all(&buf[..count]).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn ask(stream: &TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(text).await?;
    let mut buf = vec![0; text.len()];
    stream.read_exact(&mut buf).await?;
    assert_eq!(buf, text);
    Ok(())
}

async fn with_echo() -> Current {
    let sim = current();
    sim.host("echo", echo);
    sim.settle().await;
    sim
}

#[mini::test(sim, seeds = 100)]
async fn bytes_come_whole_and_in_order() {
    let sim = with_echo().await;
    sim.latency(ms(1)..ms(20)).loss(0.05);
    let clients: Vec<_> = (0..4u8)
        .map(|number| {
            sim.client(&format!("client {number}"), async move {
                let stream = TcpStream::connect("echo:7").await.unwrap();
                for round in 0..10usize {
                    let text: Vec<u8> = (0..round * 37 + 1).map(|at| (at as u8) ^ number).collect();
                    ask(&stream, &text).await.unwrap();
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

#[mini::test(sim, seeds = 20)]
async fn a_large_transfer_waits_for_the_reader() {
    const LENGTH: usize = 1 << 20;
    let sim = current();
    let sent = Rc::new(Cell::new(0));
    let count = sent.clone();
    sim.host("source", move || {
        let sent = count.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:1").await?;
            let (stream, _) = listener.accept().await?;
            while sent.get() < LENGTH {
                let bytes: Vec<u8> = (sent.get()..LENGTH).take(5000).map(|at| (at / 7) as u8).collect();
                sent.set(sent.get() + stream.write(&bytes).await?);
            }
            stream.shutdown(Shutdown::Write)
        }
    });
    sim.settle().await;
    let stream = TcpStream::connect("source:1").await.unwrap();
    sleep(60 * SECOND).await;
    assert!(sent.get() > 0 && sent.get() < LENGTH / 2, "{} bytes without a reader", sent.get());
    let (mut buf, mut received) = ([0; 4096], 0);
    loop {
        let count = stream.read(&mut buf).await.unwrap();
        if count == 0 {
            break;
        }
        assert!(buf[..count].iter().enumerate().all(|(at, &byte)| byte == ((received + at) / 7) as u8));
        received += count;
    }
    assert_eq!(received, LENGTH);
}

#[mini::test(sim, seeds = 20)]
async fn a_closed_port_refuses_and_a_lost_host_times_out() {
    let sim = with_echo().await;
    assert_eq!(TcpStream::connect("echo:8").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(TcpStream::connect("127.0.0.1:8").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(TcpStream::connect("nobody:8").await.unwrap_err().kind(), ErrorKind::NotFound);
    sim.power_off("echo");
    for host in ["echo:7", "192.0.2.1:7"] {
        let begin = Instant::now();
        assert_eq!(TcpStream::connect(host).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(begin.elapsed().as_secs(), 127);
    }
}

#[mini::test(sim, seeds = 20)]
async fn a_connection_outlives_a_partition() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"before").await.unwrap();
    sim.partition("test", "echo");
    stream.write_all(b"during").await.unwrap();
    let mut buf = [0; 6];
    assert!(timeout(30 * SECOND, stream.read_exact(&mut buf)).await.is_err());
    sim.repair("test", "echo");
    stream.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"during");
}

#[mini::test(sim, seeds = 20)]
async fn a_partition_without_end_breaks_the_connection() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    sim.partition("test", "echo");
    stream.write_all(b"hello").await.unwrap();
    let begin = Instant::now();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(begin.elapsed() > 900 * SECOND && begin.elapsed() < 1100 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[mini::test(sim, seeds = 20)]
async fn a_partition_one_way_lets_the_request_through() {
    let sim = current();
    let heard = Rc::new(Cell::new(0));
    let count = heard.clone();
    sim.host("server", move || {
        let heard = count.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:1").await?;
            let (stream, _) = listener.accept().await?;
            let mut buf = [0; 1];
            while stream.read(&mut buf).await? == 1 {
                heard.set(heard.get() + 1);
                stream.write_all(b"!").await?;
            }
            Ok::<(), io::Error>(())
        }
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    sim.partition_oneway("server", "test");
    stream.write_all(b"?").await.unwrap();
    assert!(timeout(SECOND, stream.read(&mut [0; 1])).await.is_err());
    assert_eq!(heard.get(), 1, "the request came, and once");
    sim.repair_all();
    stream.read_exact(&mut [0; 1]).await.unwrap();
}

/// A connection to a host that has been off and on again, which knows nothing of it.
async fn with_a_forgotten_connection() -> (Current, TcpStream) {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"hello").await.unwrap();
    sim.power_off("echo");
    sim.restart("echo");
    sim.settle().await;
    (sim, stream)
}

#[mini::test(sim, seeds = 200)]
async fn a_reset_that_is_lost_comes_again() {
    let (sim, stream) = with_a_forgotten_connection().await;
    sim.loss(0.3);
    stream.write_all(b"are you there?").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[mini::test(sim, seeds = 20)]
async fn a_reset_that_meets_a_cut_link_comes_again() {
    let (sim, stream) = with_a_forgotten_connection().await;
    sim.partition_oneway("echo", "test");
    stream.write_all(b"are you there?").await.unwrap();
    sleep(SECOND).await;
    sim.repair_all();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[mini::test(sim, seeds = 200)]
async fn a_peer_that_has_closed_refuses_until_it_is_heard() {
    let sim = current();
    sim.host("server", || async {
        let listener = TcpListener::bind("0.0.0.0:1").await?;
        loop {
            drop(listener.accept().await?);
        }
        #[expect(unreachable_code, reason = "it says which error it is")]
        Ok::<(), io::Error>(())
    });
    sim.settle().await;
    let stream = TcpStream::connect("server:1").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    sim.loss(0.3);
    while stream.write_all(b"is anybody there?").await.is_ok() {
        sleep(SECOND).await;
    }
}

/// Accepts on `server:1`, and counts.
fn accepts(sim: &Current) -> Rc<Cell<u32>> {
    let accepted = Rc::new(Cell::new(0));
    let count = accepted.clone();
    sim.host("server", move || {
        let accepted = count.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:1").await?;
            let mut streams = Vec::new();
            loop {
                streams.push(listener.accept().await?);
                accepted.set(accepted.get() + 1);
            }
            #[expect(unreachable_code, reason = "it says which error it is")]
            Ok::<(), io::Error>(())
        }
    });
    accepted
}

#[mini::test(sim, seeds = 20)]
async fn nobody_is_accepted_who_has_not_heard_so() {
    let sim = current();
    let accepted = accepts(&sim);
    sim.settle().await;
    sim.partition_oneway("server", "test");
    assert_eq!(TcpStream::connect("server:1").await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(accepted.get(), 0, "the requests came, and no answer went back");
    sim.repair_all();
    let _stream = TcpStream::connect("server:1").await.unwrap();
    sleep(SECOND).await;
    assert_eq!(accepted.get(), 1);
}

#[mini::test(sim, seeds = 20)]
async fn the_third_packet_of_a_handshake_is_asked_for_again_or_data_do() {
    let sim = current();
    let accepted = accepts(&sim);
    sim.settle().await;
    for (sends, outage) in [(false, 20), (true, 1), (true, 40), (false, 100)] {
        accepted.set(0);
        let mut stream = TcpStream::connect("server:1").await.unwrap();
        sim.partition("test", "server");
        sleep(outage * SECOND).await;
        assert_eq!(accepted.get(), 0);
        sim.repair_all();
        if sends {
            stream.write_all(b"?").await.unwrap();
            sleep(ms(500)).await;
        } else {
            sleep(40 * SECOND).await;
        }
        assert_eq!(accepted.get(), u32::from(outage < 100), "after {outage} s");
        if outage == 100 {
            stream.write_all(b"?").await.unwrap();
            let error = stream.read(&mut [0; 1]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the server has forgotten it");
        }
        stream = TcpStream::connect("server:1").await.unwrap();
        drop(stream);
        sleep(SECOND).await;
    }
}

/// The third packet is lost, and by the time of another answer the client is not there, or not connected.
#[mini::test(sim, seeds = 20)]
async fn a_client_that_has_gone_since_is_not_accepted() {
    let sim = current();
    let accepted = accepts(&sim);
    sim.settle().await;
    let client = sim.client("client", async {
        let _stream = TcpStream::connect("server:1").await?;
        current().partition_oneway("client", "server");
        std::future::pending::<io::Result<()>>().await
    });
    sleep(SECOND / 2).await;
    sim.power_off("client");
    assert!(client.await.is_err());
    sim.repair_all();
    sleep(100 * SECOND).await;
    assert_eq!(accepted.get(), 0, "of a host that is down");

    let stream = TcpStream::connect("server:1").await.unwrap();
    sim.partition_oneway("test", "server");
    stream.set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream); // the server does not hear of it
    sleep(SECOND / 2).await;
    sim.repair_all();
    sleep(100 * SECOND).await;
    assert_eq!(accepted.get(), 0, "of one that has closed");
}

#[mini::test(sim, seeds = 20)]
async fn a_server_that_has_forgotten_a_request_resets_its_client() {
    let sim = current();
    let accepted = accepts(&sim);
    sim.settle().await;
    sim.hold("test", "server");
    let connecting = spawn_local(async { TcpStream::connect("server:1").await });
    sim.release("test", "server");
    let stream = connecting.await.unwrap().unwrap();
    sim.hold("test", "server");
    sim.power_off("server");
    sim.restart("server");
    sim.settle().await;
    sim.release("test", "server");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(accepted.get(), 0);
}

#[mini::test(sim, seeds = 20)]
async fn requests_that_nobody_confirms_lose_their_places() {
    let sim = current();
    sim.host("server", || async {
        let socket = TcpSocket::new_v4()?;
        socket.bind("0.0.0.0:1".parse().unwrap())?;
        let listener = socket.listen(0)?;
        loop {
            listener.accept().await?;
        }
        #[expect(unreachable_code, reason = "it says which error it is")]
        Ok::<(), io::Error>(())
    });
    sim.settle().await;
    sim.partition_oneway("server", "test");
    assert!(timeout(SECOND, TcpStream::connect("server:1")).await.is_err());
    sim.repair_all();
    let begin = Instant::now();
    TcpStream::connect("server:1").await.unwrap();
    assert!(begin.elapsed() > 30 * SECOND, "{:?}: the only place was taken", begin.elapsed());
}

#[mini::test(sim, seeds = 20)]
async fn a_crash_resets_and_a_power_off_says_nothing() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"hello").await.unwrap();
    sim.crash("echo");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(TcpStream::connect("127.0.0.1:7").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);

    sim.restart("echo");
    sim.settle().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"hello").await.unwrap();
    sim.power_off("echo");
    assert!(timeout(60 * SECOND, stream.read(&mut [0; 1])).await.is_err(), "nobody has said a word");
    sim.restart("echo");
    sim.settle().await;
    stream.write_all(b"are you there?").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset, "it knows of nothing");
}

/// An answer that has left the host comes: what it promises may be lost.
#[mini::test(sim, seeds = 20)]
async fn what_is_on_its_way_when_a_host_goes_down_comes() {
    let sim = with_echo().await;
    sim.latency(ms(10)..ms(10)).loss(0.0);
    for resets in [true, false] {
        let stream = TcpStream::connect("echo:7").await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        sleep(ms(15)).await;
        if resets {
            sim.crash("echo")
        } else {
            sim.power_off("echo")
        }
        assert_eq!(stream.try_read(&mut [0; 5]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut buf = [0; 5];
        stream.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"hello");
        match timeout(60 * SECOND, stream.read(&mut buf)).await {
            Ok(read) => assert!(resets && read.unwrap_err().kind() == ErrorKind::ConnectionReset),
            Err(_) => assert!(!resets),
        }
        sim.restart("echo");
        sim.settle().await;
    }
}

async fn says_bye() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.read_exact(&mut [0]).await?;
        stream.write_all(b"bye").await?;
    }
}

/// Its end too, and in order, also over a link that is held for a while.
#[mini::test(sim, seeds = 20)]
async fn the_end_that_is_on_its_way_when_a_host_goes_down_comes() {
    let sim = current();
    sim.host("server", says_bye);
    sim.settle().await;
    sim.latency(ms(10)..ms(10)).loss(0.0);
    for (resets, holds) in [(false, false), (true, true), (false, true)] {
        let stream = TcpStream::connect("server:7").await.unwrap();
        stream.write_all(b"?").await.unwrap();
        sleep(ms(15)).await; // it has answered and closed
        if holds {
            sim.hold("server", "test");
        }
        if resets {
            sim.crash("server")
        } else {
            sim.power_off("server")
        }
        sleep(ms(100)).await;
        sim.release("server", "test");
        let mut all = Vec::new();
        let mut buf = [0; 8];
        let end = loop {
            match timeout(SECOND, stream.read(&mut buf)).await.unwrap() {
                Ok(count @ 1..) => all.extend_from_slice(&buf[..count]),
                end => break end,
            }
        };
        assert_eq!(all, b"bye");
        assert!(resets || end.is_ok());
        sim.restart("server");
        sim.settle().await;
    }
}

#[mini::test(sim, seeds = 20)]
async fn tasks_of_a_crashed_host_are_dropped_before_anything_else_runs() {
    struct Noisy(Rc<RefCell<Vec<&'static str>>>, &'static str);
    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    let sim = current();
    let log = Rc::new(RefCell::new(Vec::new()));
    let notes = log.clone();
    sim.host("host", move || {
        let (parent, child) = (Noisy(notes.clone(), "parent"), Noisy(notes.clone(), "child"));
        async move {
            let _parent = parent;
            spawn_local(async move {
                let _child = child;
                std::future::pending::<()>().await;
            });
            std::future::pending::<()>().await;
        }
    });
    sleep(SECOND).await;
    assert!(log.borrow().is_empty());
    sim.crash("host");
    sim.settle().await;
    let mut dropped = log.borrow().clone();
    dropped.sort_unstable();
    assert_eq!(dropped, ["child", "parent"]);
}

#[mini::test(sim, seeds = 20)]
async fn what_is_held_comes_when_it_is_released() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    sim.hold("test", "echo");
    stream.write_all(b"hello").await.unwrap();
    let begin = Instant::now();
    assert!(timeout(1000 * SECOND, stream.read(&mut [0; 5])).await.is_err());
    sim.release("test", "echo");
    stream.read_exact(&mut [0; 5]).await.unwrap();
    assert!(begin.elapsed() < 1001 * SECOND, "at once: {:?}", begin.elapsed());
}

#[mini::test(sim, seeds = 20)]
async fn a_full_backlog_makes_clients_ask_again() {
    let sim = current();
    sim.host("slow", || async {
        let socket = mini::net::TcpSocket::new_v4()?;
        socket.bind("0.0.0.0:1".parse().unwrap())?;
        let listener = socket.listen(0)?;
        sleep(10 * SECOND).await;
        for _ in 0..3 {
            listener.accept().await?;
        }
        Ok::<(), io::Error>(())
    });
    sim.settle().await;
    let begin = Instant::now();
    let clients = [(); 3].map(|()| spawn_local(async { TcpStream::connect("slow:1").await.map(drop) }));
    for client in clients {
        client.await.unwrap().unwrap();
    }
    assert!(begin.elapsed() >= 10 * SECOND, "the second had to wait for room");
}

#[mini::test(sim, seeds = 50)]
async fn datagrams_are_lost_doubled_and_reordered() {
    let sim = current();
    sim.latency(ms(1)..ms(50)).loss(0.2).duplication(0.2);
    let received = Rc::new(RefCell::new(Vec::new()));
    let log = received.clone();
    sim.host("sink", move || {
        let log = log.clone();
        async move {
            let socket = UdpSocket::bind("0.0.0.0:9").await?;
            loop {
                let mut buf = [0; 8];
                let (count, _) = socket.recv_from(&mut buf).await?;
                log.borrow_mut().push(buf[0]);
                assert_eq!(count, 3);
            }
            #[allow(unreachable_code)]
            Ok::<(), io::Error>(())
        }
    });
    sim.settle().await;
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    for number in 0..100 {
        socket.send_to(&[number, 0, 0], "sink:9").await.unwrap();
        sleep(ms(1)).await;
    }
    sleep(SECOND).await;
    let received = received.borrow();
    let distinct: std::collections::HashSet<_> = received.iter().collect();
    assert!(distinct.len() < 100 && distinct.len() > 40, "{} of 100", distinct.len());
    assert!(received.len() > distinct.len(), "some come twice");
    assert!(!received.is_sorted(), "and some later than others");
}

#[mini::test(sim, seeds = 5)]
async fn a_socket_of_datagrams_has_the_room_that_it_asks_for() {
    current().rough(false);
    let receiver = UdpSocket::bind("127.0.0.1:9").await.unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for (room, count) in [(None, 212), (Some(50_000), 100)] {
        if let Some(room) = room {
            receiver.set_recv_buffer_size(room).unwrap();
            assert_eq!(receiver.recv_buffer_size().unwrap(), 2 * room);
        }
        for _ in 0..300 {
            sender.send_to(&[0; 1000], "127.0.0.1:9").await.unwrap();
        }
        let received = std::iter::from_fn(|| receiver.try_recv(&mut [0; 1000]).ok()).count();
        assert_eq!(received, count);
    }
}

#[mini::test(sim, seeds = 20)]
async fn a_datagram_to_a_closed_port_is_refused_if_connected() {
    let sim = with_echo().await;
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    socket.connect("echo:1").await.unwrap();
    socket.send(b"hello").await.unwrap();
    assert_eq!(socket.recv(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(socket.peer_addr().unwrap().ip(), sim.lookup("echo"));
    assert_eq!(socket.local_addr().unwrap().ip(), sim.lookup("test"));
}

#[mini::test(sim, seeds = 20)]
async fn a_paused_host_answers_later() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"before").await.unwrap();
    sim.pause("echo");
    stream.write_all(b"hello").await.unwrap();
    assert!(timeout(60 * SECOND, stream.read(&mut [0; 5])).await.is_err());
    sim.resume("echo");
    let begin = Instant::now();
    stream.read_exact(&mut [0; 5]).await.unwrap();
    assert!(begin.elapsed() < SECOND, "its kernel has received it already");
}

#[mini::test(sim, seeds = 20)]
async fn each_host_has_its_own_loopback_and_unix_sockets() {
    let sim = current();
    let serve = |answer: &'static [u8]| {
        move || async move {
            let listener = TcpListener::bind("127.0.0.1:80").await?;
            let local = UnixListener::bind("/run/service")?;
            let client = spawn(async move {
                let stream = TcpStream::connect("localhost:80").await?;
                let mut buf = [0; 1];
                stream.read_exact(&mut buf).await?;
                assert_eq!(buf, answer);
                let stream = UnixStream::connect("/run/service").await?;
                assert_eq!(stream.peer_addr()?.as_pathname(), Some("/run/service".as_ref()));
                stream.read_exact(&mut buf).await?;
                assert_eq!(buf, answer);
                io::Result::Ok(())
            });
            listener.accept().await?.0.write_all(answer).await?;
            local.accept().await?.0.write_all(answer).await?;
            client.await.unwrap()
        }
    };
    sim.host("a", serve(b"a"));
    sim.host("b", serve(b"b"));
    sleep(SECOND).await;
    assert!(TcpStream::connect("a:80").await.is_err(), "its loopback is nobody else's");
}

#[test]
fn two_runs_of_a_seed_are_the_same() {
    let run = |seed| {
        Sim::new(seed)
            .run(async {
                let sim = with_echo().await;
                sim.latency(ms(1)..ms(9)).loss(0.1);
                let stream = TcpStream::connect("echo:7").await.unwrap();
                for _ in 0..20 {
                    ask(&stream, b"hello, hello, hello").await.unwrap();
                }
                sim.elapsed()
            })
            .unwrap()
    };
    let times: Vec<Duration> = (0..20).map(run).collect();
    assert_eq!(times, (0..20).map(run).collect::<Vec<_>>());
    assert!(times.iter().collect::<std::collections::HashSet<_>>().len() > 15, "seeds differ");
}

#[test]
fn a_server_without_clients_is_a_deadlock() {
    let failure = Sim::new(1).run(async {
        let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
        drop(listener.accept().await);
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("deadlock") && text.contains("Accept"), "{text}");
}

#[test]
fn what_is_not_simulated_says_what_was_called_and_where() {
    /// A call, how it is named, and the line it is in.
    macro_rules! refused {
        ($name:literal, $call:expr) => {{
            let line = line!();
            (Result::map($call, drop).unwrap_err(), $name, line)
        }};
    }
    Sim::new(1)
        .run(async {
            let _echo = with_echo().await;
            let stream = TcpStream::connect("echo:7").await.unwrap();
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            let (group, any) = (Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED);
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap(); // the system's, as are these:
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let refused = [
                refused!("AsyncFd::new", mini::io::AsyncFd::new(&stream)),
                refused!("UdpSocket::join_multicast_v4", socket.join_multicast_v4(group, any)),
                refused!("UdpSocket::join_multicast_v6", socket.join_multicast_v6(&Ipv6Addr::LOCALHOST, 0)),
                refused!("UdpSocket::send_to", socket.send_to(b"?", (group, 5353)).await),
                refused!("UdpSocket::send_to", socket.send_to(b"?", "255.255.255.255:67").await),
                refused!("UdpSocket::try_send_to", socket.try_send_to(b"?", (group, 5353).into())),
                refused!("UdpSocket::connect", socket.connect((group, 5353)).await),
                refused!("TcpStream::connect", TcpStream::connect((group, 5353)).await),
                refused!("TcpStream::into_std", stream.into_std()),
                refused!("TcpListener::from_std", TcpListener::from_std(listener.try_clone().unwrap())),
                refused!("TcpListener::from_std", TcpListener::try_from(listener)),
                refused!("TcpStream::from_std", TcpStream::from_std(client.try_clone().unwrap())),
                refused!("TcpSocket::from_std", TcpSocket::from_std(client.try_clone().unwrap())),
                refused!("TcpSocket::from_std_stream", TcpSocket::from_std_stream(client)),
                refused!("UdpSocket::from_std", UdpSocket::from_std(datagrams)),
            ];
            for (error, name, line) in refused {
                let place = format!("`{name}`, called at {}:{line}:", file!());
                let text = error.to_string();
                assert!(text.contains(&place) && text.contains("simulated"), "{name}: {text}");
                assert_eq!(error.kind(), ErrorKind::Unsupported);
            }
        })
        .unwrap();
}

#[test]
fn a_host_that_fails_fails_the_simulation() {
    let failure = Sim::new(1).run(async {
        current().host("bad", || async { Err::<(), _>(io::Error::other("no disk")) });
        sleep(SECOND).await;
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("host bad") && text.contains("no disk"), "{text}");
}

#[mini::test(sim, seeds = 20)]
async fn a_connection_that_was_reset_sends_no_more() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    ask(&stream, b"hello").await.unwrap();
    stream.write_all(b"on its way").await.unwrap();
    sim.crash("echo");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    sleep(1200 * SECOND).await;
    assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[mini::test(sim, seeds = 20)]
async fn latencies_may_be_of_any_length() {
    let sim = with_echo().await;
    sim.latency(Duration::MAX..Duration::MAX);
    assert!(timeout(SECOND, TcpStream::connect("echo:7")).await.is_err());
    UdpSocket::bind("0.0.0.0:0").await.unwrap().send_to(b"hello", "echo:9").await.unwrap();
    sim.latency(ms(5)..ms(5));
    let begin = Instant::now();
    TcpStream::connect("echo:7").await.unwrap();
    assert_eq!(begin.elapsed(), ms(10));
}

#[mini::test(sim, seeds = 20)]
async fn a_loss_of_all_times_out() {
    let sim = with_echo().await;
    let stream = TcpStream::connect("echo:7").await.unwrap();
    sim.loss(1.0);
    assert_eq!(TcpStream::connect("echo:7").await.unwrap_err().kind(), ErrorKind::TimedOut);
    stream.write_all(b"hello").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[mini::test(sim, seeds = 20)]
async fn no_address_in_particular_is_the_own_host() {
    let listener = TcpListener::bind("127.0.0.1:1").await.unwrap();
    let stream = TcpStream::connect("0.0.0.0:1").await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
    let (server, client) = (UdpSocket::bind("0.0.0.0:1").await.unwrap(), UdpSocket::bind("0.0.0.0:0").await.unwrap());
    client.connect(server.local_addr().unwrap()).await.unwrap();
    client.send(b"?").await.unwrap();
    let (_, from) = server.recv_from(&mut [0; 1]).await.unwrap();
    server.send_to(b"!", from).await.unwrap();
    assert_eq!(timeout(SECOND, client.recv(&mut [0; 1])).await.unwrap().unwrap(), 1);
}

#[mini::test(sim, seeds = 5)]
async fn a_socket_that_fails_leaves_neither_its_port_nor_its_descriptor() {
    let taken = TcpListener::bind("0.0.0.0:1").await.unwrap();
    assert_eq!(TcpListener::bind("0.0.0.0:1").await.unwrap_err().kind(), ErrorKind::AddrInUse);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("0.0.0.0:2".parse().unwrap()).unwrap();
    drop(socket.connect("127.0.0.1:1".parse().unwrap())); // before it has begun
    let unix = UnixListener::bind("/run/service").unwrap(); // with the descriptor that the first of them had
    assert_eq!(unix.local_addr().unwrap().as_pathname(), Some("/run/service".as_ref()));
    TcpListener::bind("0.0.0.0:2").await.unwrap();
    drop(taken);
}

#[mini::test(sim, seeds = 20)]
async fn that_nobody_has_a_port_is_not_heard_through_a_cut_link() {
    let sim = with_echo().await;
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    socket.connect("echo:1").await.unwrap();
    sim.partition_oneway("echo", "test");
    socket.send(b"hello").await.unwrap();
    assert!(timeout(SECOND, socket.recv(&mut [0; 1])).await.is_err());
}

#[mini::test(sim, seeds = 20)]
async fn those_that_share_a_port_each_have_their_senders() {
    let bind = || UdpSocket::bind_with("0.0.0.0:1".parse().unwrap(), |socket| socket.set_reuseport(true)).unwrap();
    let servers = [bind(), bind(), bind()];
    let mut used = 0u32;
    for _ in 0..20 {
        let client = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        for _ in 0..10 {
            client.send_to(b"hello", "127.0.0.1:1").await.unwrap();
        }
        let counts =
            servers.each_ref().map(|server| std::iter::from_fn(|| server.try_recv_from(&mut [0; 8]).ok()).count());
        assert!(counts.contains(&10), "{counts:?}");
        used |= 1 << counts.iter().position(|&count| count == 10).unwrap();
    }
    assert_eq!(used, 0b111);
}

/// Connects eight times.
async fn connect_all() -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..8 {
        all.push(TcpStream::connect("echo:7").await.unwrap());
    }
    all
}

#[test]
fn sockets_may_be_dropped_by_another_thread() {
    Sim::new(1)
        .run(async {
            let _echo = with_echo().await;
            let streams = connect_all().await;
            std::thread::spawn(move || drop(streams)).join().unwrap();
            let streams = connect_all().await; // with the same descriptors
            ask(&streams[0], b"hello").await.unwrap();
            let listener = UnixListener::bind("/run/service").unwrap(); // which the system's poller has, too
            let client = spawn_local(async { UnixStream::connect("/run/service").await?.read(&mut [0; 1]).await });
            let (served, _) = listener.accept().await.unwrap();
            sleep(ms(1)).await;
            served.write_all(b"!").await.unwrap();
            assert_eq!(client.await.unwrap().unwrap(), 1);
        })
        .unwrap();
}

#[test]
fn a_fault_that_is_skipped_does_not_change_how_long_other_packets_take() {
    let arrivals = |sim: Sim| {
        let run = sim.run(async {
            let (sim, seen) = (current(), Rc::new(RefCell::new(Vec::new())));
            sim.duplication(0.3).loss(0.1);
            let kept = seen.clone();
            sim.host("sink", move || {
                let seen = kept.clone();
                async move {
                    let socket = UdpSocket::bind("0.0.0.0:9").await?;
                    let mut number = [0];
                    while socket.recv(&mut number).await? == 1 {
                        seen.borrow_mut().push((number[0], current().elapsed()));
                    }
                    io::Result::Ok(())
                }
            });
            sim.settle().await;
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            for number in 0..40 {
                socket.send_to(&[number], "sink:9").await.unwrap();
                sleep(ms(10)).await;
            }
            seen.take()
        });
        run.unwrap()
    };
    for seed in 0..10 {
        let (all, few) = (arrivals(Sim::new(seed)), arrivals(Sim::new(seed).skip([1..=u64::MAX])));
        assert_eq!(few.len(), 40);
        let others = few.iter().filter(|arrival| !all.contains(arrival)).count(); // four of them are lost
        assert!(all.len() > 40 && others < 12, "{others} of 40 come at other times");
    }
}
