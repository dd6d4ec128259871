//! Connecting: the real reason of a failure, several addresses, and a listener whose queue is full.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

use mini_context::{IoKind, Reason, take_notes};

use super::rig::{Rig, Task, TempPath, is_shut_down};
use crate::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

/// An address that nobody listens on.
async fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[test]
fn a_refused_connection_says_so() {
    Rig::new().block_on(async {
        let error = TcpStream::connect(closed().await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn all_addresses_are_tried_and_the_last_error_is_told() {
    Rig::new().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = TcpStream::connect(&[closed().await, open][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        let error = TcpStream::connect(&[closed().await, closed().await][..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = TcpStream::connect(&[][..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_connection_that_takes_its_time_is_waited_for() {
    let rig = Rig::new();
    // A listener that accepts nothing, with a full queue: the next connection stays half made.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let task = Task::new();
    let mut queued = Vec::new();
    let mut stuck = loop {
        let mut connect = Box::pin(TcpStream::connect(addr));
        match task.poll(connect.as_mut()) {
            Poll::Ready(stream) => queued.push(stream.unwrap()),
            Poll::Pending => break connect,
        }
        assert!(queued.len() < 64, "the queue is never full");
    };
    let note = take_notes().wait.unwrap();
    assert!(matches!(note.reason(), Reason::Io(IoKind::Connect, _)));
    assert_eq!(note.location().file(), file!());
    assert_eq!(rig.reactor.registrations(), 1);
    rig.reactor.shutdown();
    assert_eq!(task.wakes(), 1);
    assert!(is_shut_down(&task.poll(stuck.as_mut())));
    assert_eq!(rig.reactor.registrations(), 0);
}

#[test]
fn a_prepared_socket_keeps_its_options() {
    Rig::new().block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.set_reuseport(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = socket.local_addr().unwrap();
        let other = TcpSocket::new_v4().unwrap();
        other.set_reuseport(true).unwrap();
        other.bind(addr).unwrap();
        let listener = socket.listen(16).unwrap();

        let socket = TcpSocket::new_v4().unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_keepalive(true).unwrap();
        socket.set_recv_buffer_size(1 << 16).unwrap();
        assert!(socket.recv_buffer_size().unwrap() >= 1 << 16);
        assert!(socket.keepalive().unwrap() && !socket.reuseport().unwrap());
        let stream = socket.connect(addr).await.unwrap();
        assert!(stream.nodelay().unwrap());
        listener.accept().await.unwrap();
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue refuses there")]
fn connecting_to_a_full_unix_queue_waits_for_room() {
    let path = TempPath::new("full-queue");
    let mut rig = Rig::new();
    let socket = super::super::sys::socket::open(socket2::Domain::UNIX, socket2::Type::STREAM).unwrap();
    socket.bind(&socket2::SockAddr::unix(&path.0).unwrap()).unwrap();
    socket.listen(0).unwrap();
    let listener = UnixListener::from_std(std::os::fd::OwnedFd::from(socket).into()).unwrap();
    let task = Task::new();
    let mut queued = Vec::new();
    let mut waits = loop {
        let mut connect = Box::pin(UnixStream::connect(&path.0));
        match task.poll(connect.as_mut()) {
            Poll::Ready(stream) => queued.push(stream.unwrap()),
            Poll::Pending => break connect,
        }
        assert!(queued.len() < 64, "the queue is never full");
    };
    assert!(matches!(take_notes().wait.unwrap().reason(), Reason::Io(IoKind::Connect, _)));
    rig.block_on(async {
        for _ in &queued {
            listener.accept().await.unwrap();
        }
        let stream = waits.as_mut().await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();
    });
}

#[test]
fn unix_errors_are_those_of_the_system() {
    Rig::new().block_on(async {
        let error = UnixStream::connect("/there/is/nothing").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = UnixStream::connect("/tmp/cut\0short").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = UnixListener::bind("x".repeat(200)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_connect_that_is_dropped_closes_its_socket() {
    let rig = Rig::new();
    let mut connect = Box::pin(TcpSocket::new_v4().unwrap().connect("192.0.2.1:9".parse().unwrap()));
    // The address is reserved for documentation (RFC 5737): no answer, or none of this kind at once.
    if Task::new().poll(pin!(connect.as_mut())).is_pending() {
        assert_eq!(rig.reactor.registrations(), 1);
    }
    drop(connect);
    assert_eq!(rig.reactor.registrations(), 0);
}
