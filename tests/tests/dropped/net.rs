//! Sockets: no byte, message or connection is lost, and none is made.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::AsFd;

use mini::io::Interest;
use mini::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacket, UnixSeqpacketListener,
    UnixStream, lookup_host, next_connection,
};
use mini_tests::net_support::{ANY_PORT, ScratchPath, connected_to, full_listener, tcp_pair, udp, udp_pair};

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    names(list).await;
    connections(list).await;
    reads(list).await;
    writes(list).await;
    datagrams(list).await;
    descriptors(list).await;
}

/// What begins with a lookup.
async fn names(list: &mut List) {
    begins!(list, lookup_host("localhost:80"));
    begins!(list, TcpListener::bind("localhost:0"));
    begins!(list, TcpListener::bind_reuse_port("localhost:0"));
    begins!(list, UdpSocket::bind("localhost:0"));
    begins!(list, TcpStream::connect("localhost:1"));
    let socket = udp().await;
    let is_connected = begins!(list, socket.connect("localhost:1"));
    assert_eq!(socket.peer_addr().is_ok(), is_connected);
    begins!(list, socket.send_to(b"lost", "localhost:1"));
}

async fn connections(list: &mut List) {
    let (listener, in_queue) = full_listener().await;
    let addr = listener.local_addr().unwrap();
    waits!(list, TcpStream::connect(addr));
    waits!(list, TcpSocket::new_v4().unwrap().connect(addr));
    for client in in_queue {
        let (_server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
    }

    let listener = TcpListener::bind(ANY_PORT).await.unwrap();
    waits!(list, listener.accept());
    waits!(list, next_connection(&listener));
    connected_to(&listener).await;

    let path = ScratchPath::new("dropped");
    let listener = UnixListener::bind(&path).unwrap();
    waits!(list, listener.accept());
    let _client = UnixStream::connect(&path).await.unwrap();
    listener.accept().await.unwrap();

    rustix::net::listen(&listener, 0).unwrap();
    let _in_queue = UnixStream::connect(&path).await.unwrap();
    let addr = listener.local_addr().unwrap();
    waits!(list, UnixStream::connect(&path));
    waits!(list, UnixStream::connect_addr(&addr));
    listener.accept().await.unwrap();
    assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody else has come");
    drop(listener);

    let path = ScratchPath::new("dropped");
    let listener = UnixSeqpacketListener::bind(&path).unwrap();
    waits!(list, listener.accept());
    rustix::net::listen(&listener, 0).unwrap();
    let _in_queue = UnixSeqpacket::connect(&path).await.unwrap();
    waits!(list, UnixSeqpacket::connect(&path));
    listener.accept().await.unwrap();
}

async fn reads(list: &mut List) {
    let (client, server) = tcp_pair().await;
    let (mut buf, mut more) = ([0; 4], [0; 4]);
    waits!(list, server.read(&mut buf));
    waits!(list, server.read_vectored(&mut [IoSliceMut::new(&mut buf), IoSliceMut::new(&mut more)]));
    waits!(list, server.read_exact(&mut buf));
    waits!(list, server.read_to_end(&mut Vec::new()));
    waits!(list, server.peek(&mut buf));
    waits!(list, server.readable());
    waits!(list, server.ready(Interest::READABLE));
    waits!(list, server.async_io(Interest::READABLE, || server.try_read(&mut buf)));
    let (reader, _writer) = server.into_split();
    waits!(list, reader.read(&mut buf));
    client.write_all(b"ping").await.unwrap();
    reader.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"ping");
}

async fn writes(list: &mut List) {
    let (a, b) = UnixStream::pair().unwrap();
    let mut sent = 0;
    while let Ok(written) = a.try_write(&[1; 4 << 10]) {
        sent += written;
    }
    waits!(list, a.write(&[2; 8]));
    waits!(list, a.write_vectored(&[IoSlice::new(&[2; 8])]));
    waits!(list, a.write_all(&[2; 8]));
    waits!(list, a.writable());
    let (_reader, writer) = a.into_split();
    waits!(list, writer.write(&[2; 8]));
    let mut buf = vec![0; sent];
    b.read_exact(&mut buf).await.unwrap();
    writer.write_all(&[3; 8]).await.unwrap();
    b.read_exact(&mut buf[..8]).await.unwrap();
    assert_eq!(&buf[..8], &[3; 8], "nothing went out in between");
}

async fn datagrams(list: &mut List) {
    let (a, b) = udp_pair().await;
    let mut buf = [0; 4];
    waits!(list, b.recv(&mut buf));
    waits!(list, b.recv_from(&mut buf));
    waits!(list, b.peek_from(&mut buf));
    a.send(b"ping").await.unwrap();
    assert_eq!(b.recv(&mut buf).await.unwrap(), 4);

    let path = ScratchPath::new("dropped");
    let (from, to) = (UnixDatagram::unbound().unwrap(), UnixDatagram::bind(&path).unwrap());
    let addr = to.local_addr().unwrap();
    waits!(list, to.recv_from(&mut buf));
    from.connect(&path).unwrap();
    let mut sent = 0;
    while from.try_send(b"one").is_ok() {
        sent += 1;
    }
    waits!(list, from.send(b"two"));
    waits!(list, from.send_to(b"two", &path));
    waits!(list, from.send_to_addr(b"two", &addr));
    for _ in 0..sent {
        to.recv(&mut buf).await.unwrap();
        assert_eq!(&buf[..3], b"one");
    }
    assert_eq!(to.try_recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Open files on their way.
async fn descriptors(list: &mut List) {
    let (a, b) = UnixSeqpacket::pair().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut buf = [0; 4];
    waits!(list, b.recv_fds(&mut buf, 2));
    let mut sent = 0;
    while a.try_send(b"full").is_ok() {
        sent += 1;
    }
    waits!(list, a.send_fds(b"two", &[null.as_fd(), null.as_fd()]));
    for _ in 0..sent {
        b.recv(&mut buf).await.unwrap();
    }
    a.send_fds(b"one", &[null.as_fd()]).await.unwrap();
    let (received, fds) = b.recv_fds(&mut buf, 2).await.unwrap();
    assert_eq!((&buf[..received], fds.len()), (&b"one"[..], 1));
}
