//! Accepting: many tasks on one listener, and what goes wrong.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;

use super::rig::{Rig, Task, TempPath};
use crate::{TcpListener, TcpStream, UnixListener, UnixStream};

fn connect(addr: SocketAddr) -> std::net::TcpStream {
    std::net::TcpStream::connect(addr).unwrap()
}

#[test]
fn many_tasks_accept_from_one_listener() {
    let mut rig = Rig::new();
    let listener = rig.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| (Task::new(), Box::pin(listener.accept()))).collect();
    for (task, accept) in &mut waiting {
        assert!(task.poll(accept.as_mut()).is_pending());
    }
    let clients = [connect(addr), connect(addr)];
    rig.settle();
    let mut accepted = Vec::new();
    waiting.retain_mut(|(task, accept)| {
        assert!(task.wakes() > 0, "an edge wakes everybody");
        match task.poll(accept.as_mut()) {
            Poll::Ready(result) => accepted.push(result.unwrap().1),
            Poll::Pending => return true,
        }
        false
    });
    let mut expected = clients.map(|client| client.local_addr().unwrap());
    accepted.sort();
    expected.sort();
    assert_eq!(accepted, expected);
    assert_eq!(waiting.len(), 1, "two connections, three tasks");

    let last = connect(addr);
    rig.turn();
    let (task, accept) = &mut waiting[0];
    match task.poll(accept.as_mut()) {
        Poll::Ready(Ok((_, from))) => assert_eq!(from, last.local_addr().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_the_tasks_that_poll_a_listener_the_last_one_is_woken() {
    let mut rig = Rig::new();
    let listener = rig.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let (accepting, former, last) = (Task::new(), Task::new(), Task::new());
    let mut accept = Box::pin(listener.accept());
    assert!(accepting.poll(accept.as_mut()).is_pending());
    for task in [&former, &last, &last] {
        let waker = task.waker();
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(listener.poll_accept(&mut cx).is_pending());
    }
    let _client = connect(listener.local_addr().unwrap());
    rig.settle();
    assert_eq!((accepting.wakes(), former.wakes(), last.wakes()), (1, 0, 1), "a future has a place of its own");
}

#[test]
fn accepted_sockets_do_not_block() {
    Rig::new().block_on(async {
        let listener = TcpListener::bind("[::1]:0").await;
        let listener = match listener {
            Ok(listener) => listener,
            // No IPv6 here.
            Err(_) => TcpListener::bind("127.0.0.1:0").await.unwrap(),
        };
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert!(server.sock().nonblocking().unwrap());
        listener.set_ttl(9).unwrap();
        assert_eq!(listener.ttl().unwrap(), 9);
    });
}

#[test]
fn a_unix_listener_accepts_and_knows_its_path() {
    let path = TempPath::new("listener");
    Rig::new().block_on(async {
        let listener = UnixListener::bind(&path.0).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.0.as_path()));
        let client = UnixStream::connect(&path.0).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed());
        server.write_all(b"ping").await.unwrap();
        client.read_exact(&mut [0; 4]).await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.0.as_path()));
        assert!(UnixListener::bind(&path.0).is_err());
    });
}

#[test]
fn a_cancelled_accept_takes_no_connection() {
    let mut rig = Rig::new();
    let listener = rig.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let task = Task::new();
    let mut accept = Box::pin(listener.accept());
    assert!(task.poll(accept.as_mut()).is_pending());
    let client = connect(listener.local_addr().unwrap());
    rig.turn();
    assert_eq!(task.wakes(), 1);
    drop(accept);
    let mut accept = pin!(listener.accept());
    let accept: Pin<&mut _> = accept.as_mut();
    match task.poll(accept) {
        Poll::Ready(Ok((_, from))) => assert_eq!(from, client.local_addr().unwrap()),
        other => panic!("{other:?}"),
    }
}
