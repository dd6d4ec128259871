//! Actors with sockets, and the servers that they talk to.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use mini::time::{sleep, timeout};

use crate::ledger::Kind;
use crate::world::{Dice, World, both};

/// Sends back all bytes, without end.
pub(crate) async fn tcp_server(world: Arc<World>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(mini::spawn(async move {
                // A client that gives up half-way is no failure.
                let _ = echo(&stream).await;
            })),
            Err(error) => {
                world.check::<()>("accept", Err(error));
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn echo(stream: &TcpStream) -> io::Result<()> {
    let mut buf = [0; 16 << 10];
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            read => stream.write_all(&buf[..read]).await?,
        }
    }
}

pub(crate) async fn udp_server(world: Arc<World>, socket: UdpSocket) {
    let mut buf = [0; 2048];
    loop {
        let answer = async {
            let (length, from) = socket.recv_from(&mut buf).await?;
            socket.send_to(&buf[..length], from).await
        };
        if world.check("udp server", answer.await).is_none() {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Sends `message`, and compares what comes back.
async fn exchange(stream: &TcpStream, message: &[u8]) -> io::Result<()> {
    let mut answer = vec![0; message.len()];
    let (sent, read) = both(stream.write_all(message), stream.read_exact(&mut answer)).await;
    sent?;
    read?;
    if answer == message { Ok(()) } else { Err(io::Error::other("the answer differs from the message")) }
}

/// Connects, exchanges some messages, and at times gives up half-way.
pub(crate) async fn tcp_client(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        if dice.one_in(10) {
            let _ = timeout(dice.time(Duration::from_micros(100)), TcpStream::connect(world.tcp)).await;
        }
        let Some(stream) = world.check("connect", TcpStream::connect(world.tcp).await) else { return };
        for _ in 0..1 + dice.below(20) {
            let (message, ticket) = (dice.message(), world.begin(Kind::Tcp));
            if dice.one_in(10) {
                let ticket = ticket.expendable();
                match timeout(dice.time(Duration::from_micros(500)), exchange(&stream, &message)).await {
                    Err(_) => break, // the connection is in the middle of a message
                    Ok(done) => match world.check("tcp", done) {
                        Some(()) => ticket.receive(),
                        None => return,
                    },
                }
            } else if world.check("tcp", exchange(&stream, &message).await).is_some() {
                ticket.receive();
            } else {
                return;
            }
        }
        dice.pause().await;
    }
}

/// Connects, does nothing for long, and finds that the connection still works.
pub(crate) async fn idle_client(world: Arc<World>, mut dice: Dice) {
    let Some(stream) = world.check("connect", TcpStream::connect(world.tcp).await) else { return };
    loop {
        let ticket = world.begin(Kind::Idle);
        if world.check("idle", exchange(&stream, &dice.message()).await).is_none() {
            return;
        }
        ticket.receive();
        if world.is_over() {
            return;
        }
        for _ in 0..40 {
            if !world.is_over() {
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// One end writes all and ends, the other one reads to the end, on a pair that is new each time.
pub(crate) async fn unix_pair(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let Some((a, b)) = world.check("socketpair", UnixStream::pair()) else { return };
        let (message, ticket) = (dice.message(), world.begin(Kind::Unix));
        let sent = message.clone();
        let writer = mini::spawn(async move {
            a.write_all(&sent).await?;
            a.shutdown(Shutdown::Write)
        });
        let received = read_to_end(&b).await;
        let written = writer.await.map_err(io::Error::other).and_then(|written| written);
        match world.check("unix", written.and(received)) {
            Some(received) if received == message => ticket.receive(),
            Some(_) => world.ledger.fail("unix: the bytes differ"),
            None => return,
        }
        dice.pause().await;
    }
}

async fn read_to_end(stream: &UnixStream) -> io::Result<Vec<u8>> {
    let (mut all, mut buf) = (Vec::new(), [0; 5000]);
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buf[..read]),
        }
    }
}

/// Sends a datagram, waits for the answer, and sends again if there is none for long, as one must.
pub(crate) async fn udp_client(world: Arc<World>, mut dice: Dice) {
    let Some(socket) = world.check("bind", UdpSocket::bind("127.0.0.1:0").await) else { return };
    let mut number = 0_u64;
    while !world.is_over() {
        number += 1;
        let (ticket, mut buf) = (world.begin(Kind::Udp), [0; 64]);
        loop {
            if world.check("send_to", socket.send_to(&number.to_ne_bytes(), world.udp).await).is_none() {
                return;
            }
            let Ok(done) = timeout(Duration::from_secs(5), answer_to(&socket, number, &mut buf)).await else {
                continue;
            };
            match world.check("udp", done) {
                Some(()) => break ticket.receive(),
                None => return,
            }
        }
        if dice.one_in(5) {
            // A wait that is dropped takes nothing.
            let _ = timeout(dice.time(Duration::from_micros(50)), socket.recv(&mut buf)).await;
        }
        dice.pause().await;
    }
}

async fn answer_to(socket: &UdpSocket, number: u64, buf: &mut [u8]) -> io::Result<()> {
    loop {
        let (length, _) = socket.recv_from(buf).await?;
        if buf[..length] == number.to_ne_bytes() {
            return Ok(());
        }
    }
}
