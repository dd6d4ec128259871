//! Workloads of the reactor: messages over loopback, both ends in the runtime.
//!
//! Connections are made with the standard library, and carry a few messages, before the clock starts: the rows are
//! about messages in the long run, and neither about connects nor about what a runtime does at a socket's first use.

use std::io;
use std::net;

use super::timed::Workload;
use crate::clock::{Stopwatch, Took};
use crate::load::Load;
use crate::measured::Group;
use crate::rt::{Rt, Stream};

/// Bytes of a message.
pub(crate) const MESSAGE: usize = 64;

/// Bytes that a read offers. More than a message, as in most programs: a read that does not fill its buffer tells a
/// runtime that the socket is empty, one that fills it does not.
const BUFFER: usize = 1024;

/// Messages on each connection before the clock starts.
const WARM_UP: u64 = 3;

/// `CONNECTIONS` clients, each with its echo server; a message there and back is an operation.
pub(super) struct Echo<const CONNECTIONS: usize>;

impl<const CONNECTIONS: usize> Workload for Echo<CONNECTIONS> {
    const NAME: &'static str = match CONNECTIONS {
        1 => "TCP echo 64 B, both ends inside, 1 conn",
        64 => "TCP echo 64 B, both ends inside, 64 conns",
        _ => panic!("a row needs a name"),
    };
    const GROUP: Group = Group::Sockets;

    fn operations(_: Load) -> u64 {
        CONNECTIONS as u64
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            let (client, server) = connect().expect("loopback connects");
            clients.push(R::Stream::from_std(client).expect("the runtime takes the client"));
            let server = R::Stream::from_std(server).expect("the runtime takes the server");
            servers.push(R::spawn(serve(server)));
        }
        let clients = ask_all::<R>(clients, WARM_UP).await;
        let watch = Stopwatch::start();
        let clients = ask_all::<R>(clients, rounds).await;
        let took = watch.stop();
        drop(clients);
        for server in servers {
            server.await.expect("the server sees the end");
        }
        took
    }
}

/// Two connected sockets in non-blocking mode, without Nagle's delay.
pub(crate) fn connect() -> io::Result<(net::TcpStream, net::TcpStream)> {
    let listener = net::TcpListener::bind("127.0.0.1:0")?;
    let client = net::TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
    }
    Ok((client, server))
}

/// Sends back what comes in until the client closes.
pub(super) async fn serve(mut stream: impl Stream) -> io::Result<()> {
    let mut buf = vec![0; BUFFER];
    loop {
        let result;
        (result, buf) = stream.read(buf).await;
        let length = result?;
        if length == 0 {
            return Ok(());
        }
        let result;
        (result, buf) = stream.write_all(buf, length).await;
        result?;
    }
}

/// Lets every client [`ask`] in a task of its own; waits for them all.
async fn ask_all<R: Rt>(clients: Vec<R::Stream>, rounds: u64) -> Vec<R::Stream> {
    let tasks: Vec<_> = clients.into_iter().map(|client| R::spawn(ask(client, rounds))).collect();
    let mut clients = Vec::with_capacity(tasks.len());
    for task in tasks {
        clients.push(task.await.expect("the client gets its answers"));
    }
    clients
}

/// Sends a message and waits for all of its echo, `rounds` times. Gives the stream back.
async fn ask<S: Stream>(mut stream: S, rounds: u64) -> io::Result<S> {
    let mut message = vec![0; MESSAGE];
    let mut buf = vec![0; BUFFER];
    for round in 0..rounds {
        message.fill(round as u8);
        let result;
        (result, message) = stream.write_all(message, MESSAGE).await;
        result?;
        let mut echoed = 0;
        while echoed < MESSAGE {
            let result;
            (result, buf) = stream.read(buf).await;
            let length = result?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            assert_eq!(buf[..length], message[echoed..echoed + length]);
            echoed += length;
        }
    }
    Ok(stream)
}
