//! Scenarios with sockets and pipes.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mini::net::unix::pipe as unix_pipe;
use mini::net::{TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use mini::task::JoinHandle;
use mini::time::{sleep, timeout};

use crate::verdict::Verdict;

const CLIENTS: usize = 4;
const MESSAGES: usize = 15;

/// The bytes of message `number`; every tenth is long.
fn message(number: usize) -> Vec<u8> {
    let length = if number % 10 == 9 { 100_000 } else { 1 + number * 37 % 900 };
    (0..length).map(|at| ((number * 7 + at) % 251) as u8).collect()
}

fn same(sent: &[u8], received: &[u8]) -> io::Result<()> {
    if sent == received { Ok(()) } else { Err(io::Error::other("other bytes than were sent")) }
}

/// The two kinds of streams, as far as a server and its clients need them.
macro_rules! echo_server {
    ($name:ident, $exchange:ident, $listener:ty, $stream:ty) => {
        async fn $name(verdict: Arc<Verdict>, listener: $listener) {
            loop {
                match verdict.check("accept", listener.accept().await) {
                    Some((stream, _)) => drop(mini::spawn(serve(verdict.clone(), stream))),
                    None => sleep(Duration::from_millis(5)).await,
                }
            }
            async fn serve(verdict: Arc<Verdict>, stream: $stream) {
                let mut buf = [0; 4096];
                while let Some(read @ 1..) = verdict.check("read", stream.read(&mut buf).await) {
                    let (head, tail) = buf[..read].split_at(read / 2);
                    let bufs = [IoSlice::new(head), IoSlice::new(tail)];
                    let Some(written) = verdict.check("write", stream.write_vectored(&bufs).await) else { return };
                    if verdict.check("write", stream.write_all(&buf[written..read]).await).is_none() {
                        return;
                    }
                }
            }
        }

        /// Sends in one task and reads in another, since a long message does not fit between the two.
        async fn $exchange(stream: $stream, number: usize) -> io::Result<$stream> {
            let (stream, sent) = (Arc::new(stream), message(number));
            let (writer, copy) = (stream.clone(), sent.clone());
            // Neither direction waits for the other one when that has failed.
            let write = mini::spawn(async move {
                writer.write_all(&copy).await.inspect_err(|_| drop(writer.shutdown(Shutdown::Both)))
            });
            let mut received = vec![0; sent.len()];
            let read = stream.read_exact(&mut received).await;
            let read = read.inspect_err(|_| drop(stream.shutdown(Shutdown::Both)));
            write.await?.and(read)?;
            same(&sent, &received)?;
            Arc::try_unwrap(stream).map_err(|_| io::Error::other("the writer still has the stream"))
        }
    };
}

echo_server!(serve_tcp, exchange_tcp, TcpListener, TcpStream);
echo_server!(serve_unix, exchange_unix, UnixListener, UnixStream);

async fn all(tasks: Vec<JoinHandle<()>>, verdict: &Verdict) {
    for task in tasks {
        if let Err(error) = task.await {
            verdict.wrong(error);
        }
    }
}

/// Clients that connect anew for every third message, and whenever one has failed.
pub(crate) async fn tcp(verdict: &Arc<Verdict>) {
    let bind = || async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        Ok((listener.local_addr()?, listener))
    };
    let Some((address, listener)) = verdict.insist("bind", bind).await else { return };
    let server = mini::spawn(serve_tcp(verdict.clone(), listener));
    let clients = (0..CLIENTS).map(|_| mini::spawn(tcp_client(verdict.clone(), address))).collect();
    all(clients, verdict).await;
    let _ = server.cancel().await;
}

async fn tcp_client(verdict: Arc<Verdict>, address: SocketAddr) {
    let mut kept = None;
    for number in 0..MESSAGES {
        let mut kept_once = kept.take();
        let exchange = || {
            let kept = kept_once.take();
            async move {
                let stream = match kept {
                    Some(stream) => stream,
                    None => TcpStream::connect(address).await?,
                };
                exchange_tcp(stream, number).await
            }
        };
        let Some(stream) = verdict.insist("exchange", exchange).await else { return };
        verdict.done();
        kept = (number % 3 != 2).then_some(stream);
    }
}

pub(crate) async fn unix(verdict: &Arc<Verdict>) {
    let path = std::env::temp_dir().join(format!("mini-faults-{}", std::process::id()));
    let bind = || async {
        let _ = std::fs::remove_file(&path);
        UnixListener::bind(&path)
    };
    let Some(listener) = verdict.insist("bind", bind).await else { return };
    let server = mini::spawn(serve_unix(verdict.clone(), listener));
    let clients = (0..CLIENTS)
        .map(|_| {
            let (verdict, path) = (verdict.clone(), path.clone());
            mini::spawn(async move {
                for number in 0..MESSAGES {
                    let exchange = || async {
                        let stream = UnixStream::connect(&path).await?;
                        exchange_unix(stream, number).await.map(drop)
                    };
                    if verdict.insist("exchange", exchange).await.is_none() {
                        return;
                    }
                    verdict.done();
                }
            })
        })
        .collect();
    all(clients, verdict).await;
    let _ = server.cancel().await;
    let _ = std::fs::remove_file(&path);
    let datagram = || async {
        let (a, b) = UnixDatagram::pair()?;
        let mut buf = [0; 16];
        a.send(b"a datagram").await?;
        let read = b.recv(&mut buf).await?;
        same(b"a datagram", &buf[..read])
    };
    for _ in 0..MESSAGES {
        if verdict.insist("datagram", datagram).await.is_some() {
            verdict.done();
        }
    }
}

/// Each datagram is answered, or sent again.
pub(crate) async fn udp(verdict: &Arc<Verdict>) {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let Some(server) = verdict.insist("bind", bind).await else { return };
    let Some(client) = verdict.insist("bind", bind).await else { return };
    let Some(address) = verdict.check("local_addr", server.local_addr()) else { return };
    let judge = verdict.clone();
    let echo = mini::spawn(async move {
        let mut buf = [0; 2048];
        loop {
            let Some((read, from)) = judge.check("recv_from", server.recv_from(&mut buf).await) else { continue };
            judge.check("send_to", server.send_to(&buf[..read], from).await);
        }
    });
    for number in 0..MESSAGES * 3 {
        let sent = message(number % 9);
        let exchange = || async {
            client.send_to(&sent, address).await?;
            let mut buf = [0; 2048];
            loop {
                let Ok(received) = timeout(Duration::from_millis(200), client.recv_from(&mut buf)).await else {
                    return Ok(false); // it is lost, as datagrams may be
                };
                if buf[..received?.0] == sent[..] {
                    return Ok(true);
                }
            }
        };
        while let Some(false) = verdict.insist("exchange", exchange).await {}
        verdict.done();
    }
    let _ = echo.cancel().await;
}

/// A send buffer as small as they come, and a peer on a plain thread that reads and writes a few bytes at a time. The
/// receive buffer stays as it is: a window smaller than a segment leaves the peer's kernel to its persist timer (RFC
/// 9293, section 3.8.6.1), which sends a few hundred bytes every 200 ms.
pub(crate) async fn trickle(verdict: &Arc<Verdict>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let peer = std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut buf = [0; 700];
        for step in 0.. {
            let read = match stream.read(&mut buf[..1 + step % 700]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => break,
                read => read?,
            };
            for part in buf[..read].chunks(97) {
                stream.write_all(part)?;
            }
        }
        Ok(())
    });
    let exchange = async {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(1)?;
        let mut stream = socket.connect(address).await?;
        for number in [9, 19, 3, 29] {
            stream = exchange_tcp(stream, number).await?;
            verdict.done();
        }
        io::Result::Ok(())
    };
    verdict.check("trickle", exchange.await);
    verdict.check("the peer", mini::spawn_blocking(|| peer.join()).await.expect("a job").expect("no panic"));
}

/// From one end of a pipe to the other.
pub(crate) async fn pipe(verdict: &Arc<Verdict>) {
    for number in 0..MESSAGES {
        let transfer = || async {
            let (writer, reader) = unix_pipe::pipe()?;
            let (sent, mut received) = (message(number), Vec::new());
            let copy = sent.clone();
            let write = mini::spawn(async move { writer.write_all(&copy).await });
            let mut buf = [0; 3000];
            while let read @ 1.. = reader.read(&mut buf).await? {
                received.extend_from_slice(&buf[..read]);
            }
            write.await??;
            same(&sent, &received)
        };
        if verdict.insist("pipe", transfer).await.is_some() {
            verdict.done();
        }
    }
}

/// Megabytes through a proxy.
pub(crate) async fn copy(verdict: &Arc<Verdict>) {
    const LENGTH: usize = 3_000_000;
    for _ in 0..3 {
        let transfer = || async {
            let (from, mut entry) = UnixStream::pair()?;
            let (mut exit, to) = UnixStream::pair()?;
            let bytes: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
            let sent = bytes.clone();
            let write = mini::spawn(async move {
                from.write_all(&sent).await?;
                from.shutdown(Shutdown::Write)
            });
            let proxy = mini::spawn(async move { mini::io::copy(&mut entry, &mut exit).await });
            let (mut received, mut buf) = (Vec::with_capacity(LENGTH), vec![0; 1 << 16]);
            while let read @ 1.. = to.read(&mut buf).await? {
                received.extend_from_slice(&buf[..read]);
            }
            // What the proxy says comes first: the others' errors follow from that.
            let copied = proxy.await??;
            write.await??;
            same(&bytes, &received)?;
            if copied == LENGTH as u64 { Ok(()) } else { Err(io::Error::other(format!("{copied} bytes copied"))) }
        };
        if verdict.insist("copy", transfer).await.is_some() {
            verdict.done();
        }
    }
}
