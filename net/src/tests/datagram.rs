//! UDP and Unix datagrams.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::task::Poll;

use super::rig::{Rig, Task, TempPath};
use crate::{UdpSocket, UnixDatagram};

#[test]
fn every_udp_call_moves_the_message() {
    Rig::new().block_on(async {
        let a = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (a_addr, b_addr) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        let mut buf = [0; 8];
        assert_eq!(a.send_to(b"one", b_addr).await.unwrap(), 3);
        assert_eq!(a.try_send_to(b"three", b_addr).unwrap(), 5);
        assert_eq!(b.peek_from(&mut buf).await.unwrap(), (3, a_addr));
        assert_eq!(b.recv_from(&mut buf).await.unwrap(), (3, a_addr));
        assert_eq!(b.try_recv_from(&mut buf).unwrap(), (5, a_addr));
        assert_eq!(b.try_recv_from(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(a.send(b"x").await.unwrap_err().raw_os_error(), Some(libc::EDESTADDRREQ));
        a.connect(b_addr).await.unwrap();
        assert_eq!(a.peer_addr().unwrap(), b_addr);
        assert_eq!(a.send(b"four").await.unwrap(), 4);
        assert_eq!(a.try_send(b"").unwrap(), 0);
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(b.recv(&mut buf).await.unwrap(), 0);
        b.send_to(b"pong", "localhost:0").await.unwrap_err();
        b.send_to(b"pong", a_addr).await.unwrap();
        assert_eq!(a.recv(&mut buf).await.unwrap(), 4);
    });
}

#[test]
fn several_tasks_receive_on_one_socket() {
    let mut rig = Rig::new();
    let (a, b) = rig.block_on(async {
        let a = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        (a, b)
    });
    let (one, two) = (Task::new(), Task::new());
    let (mut one_buf, mut two_buf) = ([0; 8], [0; 8]);
    let mut one_recv = pin!(b.recv_from(&mut one_buf));
    let mut two_recv = pin!(b.recv_from(&mut two_buf));
    assert!(one.poll(one_recv.as_mut()).is_pending());
    assert!(two.poll(two_recv.as_mut()).is_pending());
    a.try_send_to(b"first", b.local_addr().unwrap()).unwrap();
    rig.settle();
    assert_eq!((one.wakes(), two.wakes()), (1, 1));
    assert!(matches!(two.poll(two_recv.as_mut()), Poll::Ready(Ok((5, _)))));
    assert!(one.poll(one_recv.as_mut()).is_pending(), "one message, one receiver");
    a.try_send_to(b"second", b.local_addr().unwrap()).unwrap();
    rig.settle();
    assert!(matches!(one.poll(one_recv.as_mut()), Poll::Ready(Ok((6, _)))));
}

#[test]
fn udp_options_are_what_was_set() {
    Rig::new().block_on(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.set_broadcast(true).unwrap();
        socket.set_multicast_loop_v4(false).unwrap();
        socket.set_multicast_ttl_v4(7).unwrap();
        socket.set_ttl(9).unwrap();
        assert!(socket.broadcast().unwrap() && !socket.multicast_loop_v4().unwrap());
        assert_eq!((socket.multicast_ttl_v4().unwrap(), socket.ttl().unwrap()), (7, 9));
        let group = Ipv4Addr::new(224, 0, 0, 123);
        socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        assert!(socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST).is_err());
        socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
    });
}

#[test]
fn unix_datagrams_go_to_paths() {
    let path = TempPath::new("datagram");
    Rig::new().block_on(async {
        let bound = UnixDatagram::bind(&path.0).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let mut buf = [0; 8];
        sender.send_to(b"one", &path.0).await.unwrap();
        sender.try_send_to(b"three", &path.0).unwrap();
        sender.connect(&path.0).unwrap();
        sender.send(b"four").await.unwrap();
        let (received, from) = bound.recv_from(&mut buf).await.unwrap();
        assert!(received == 3 && from.is_unnamed());
        assert_eq!(bound.recv(&mut buf).await.unwrap(), 5);
        assert_eq!(bound.peek(&mut buf).await.unwrap(), 4);
        assert_eq!(bound.try_recv(&mut buf).unwrap(), 4);
        let unconnected = UnixDatagram::unbound().unwrap();
        let error = unconnected.send_to(b"x", "/there/is/nothing").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = unconnected.send_to(b"x", "cut\0short").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), ignore = "a full queue is an error there")]
fn a_full_unix_datagram_queue_is_waited_for() {
    let mut rig = Rig::new();
    let (a, b) = UnixDatagram::pair().unwrap();
    let mut sent = 0;
    while a.try_send(&[7; 1_024]).is_ok() {
        sent += 1;
    }
    let task = Task::new();
    let mut send = pin!(a.send(b"last"));
    assert!(task.poll(send.as_mut()).is_pending());
    rig.settle();
    for _ in 0..sent {
        assert_eq!(b.try_recv(&mut [0; 1_024]).unwrap(), 1_024);
    }
    rig.block_on(send).unwrap();
    assert_eq!(b.try_recv(&mut [0; 8]).unwrap(), 4);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn abstract_names_work_where_there_are_any() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    Rig::new().block_on(async {
        let name = format!("mini-net-{}-abstract", std::process::id());
        let addr = SocketAddr::from_abstract_name(&name).unwrap();
        let bound = UnixDatagram::bind_addr(&addr).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.connect_addr(&addr).unwrap();
        sender.send(b"ping").await.unwrap();
        assert_eq!(bound.recv(&mut [0; 8]).await.unwrap(), 4);
        assert_eq!(bound.local_addr().unwrap().as_abstract_name(), Some(name.as_bytes()));
        assert_eq!(sender.peer_addr().unwrap().as_abstract_name(), Some(name.as_bytes()));
        let unnamed = sender.local_addr().unwrap();
        assert!(unnamed.is_unnamed());
        assert_eq!(UnixDatagram::bind_addr(&unnamed).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}
