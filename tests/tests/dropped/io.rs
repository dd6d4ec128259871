//! Pipes, other descriptors, the standard streams, and copies: no byte is lost that has not been taken.

use std::io::{IoSlice, IoSliceMut, Read};
use std::os::fd::AsFd;

use mini::io::{AsyncBufReadExt, AsyncFd, BufReader, Interest, copy, copy_bidirectional, stderr, stdin};
use mini::net::UnixStream;
use mini::net::unix::pipe::{Sender, pipe};
use mini_tests::net_support::narrow_tcp_pair;
use rustix::stdio::{dup2_stderr, dup2_stdin};

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    pipes(list).await;
    others(list).await;
    lines(list).await;
    input(list).await;
    output(list).await;
    copies(list).await;
    copies_under_way(list).await;
}

async fn pipes(list: &mut List) {
    let (sender, receiver) = pipe().unwrap();
    let (mut buf, mut more) = ([0; 4], [0; 4]);
    waits!(list, receiver.read(&mut buf));
    waits!(list, receiver.read_vectored(&mut [IoSliceMut::new(&mut buf), IoSliceMut::new(&mut more)]));
    waits!(list, receiver.read_exact(&mut buf));
    waits!(list, receiver.read_to_end(&mut Vec::new()));
    waits!(list, receiver.readable());
    waits!(list, receiver.ready(Interest::READABLE));
    let mut sent = fill(&sender);
    waits!(list, sender.write(&[2; 8]));
    waits!(list, sender.write_vectored(&[IoSlice::new(&[2; 8])]));
    waits!(list, sender.write_all(&[2; 8]));
    waits!(list, sender.writable());
    drop(sender);
    while let received @ 1.. = receiver.read(&mut buf).await.unwrap() {
        assert!(buf[..received].iter().all(|&byte| byte == 1));
        sent -= received;
    }
    assert_eq!(sent, 0, "what was there has come, and nothing else");
}

/// Writes ones into a pipe until it takes no more; returns how many.
fn fill(sender: &Sender) -> usize {
    let mut sent = 0;
    while let Ok(written) = sender.try_write(&[1; 4 << 10]) {
        sent += written;
    }
    sent
}

/// The streams, `Lines` and `Split`, keep what they have read; `read_line` says that it does not.
async fn lines(list: &mut List) {
    let (client, server) = UnixStream::pair().unwrap();
    let (mut reader, mut part, mut text) = (BufReader::new(server), Vec::new(), String::new());
    waits!(list, reader.fill_buf(), kept);
    waits!(list, reader.read_until(b'\n', &mut part), kept);
    waits!(list, reader.read_line(&mut text), kept);
    let mut lines = reader.lines();
    client.write_all(b"hel").await.unwrap();
    waits!(list, lines.next_line(), kept);
    client.write_all(b"lo\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "hello");
}

async fn others(list: &mut List) {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let fd = AsyncFd::new(near).unwrap();
    let mut buf = [0; 4];
    waits!(list, fd.readable());
    waits!(list, fd.ready(Interest::READABLE));
    waits!(list, fd.async_io(Interest::READABLE, |mut near| near.read(&mut buf)));
    begins!(list, fd.writable());
    std::io::Write::write_all(&mut &far, b"ping").unwrap();
    assert_eq!(fd.async_io(Interest::READABLE, |mut near| near.read(&mut buf)).await.unwrap(), 4);
}

/// The standard input of this process is a pipe for a while.
async fn input(list: &mut List) {
    let before = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let (sender, receiver) = pipe().unwrap();
    dup2_stdin(&receiver).unwrap();
    let (stream, mut buf) = (stdin(), [0; 4]);
    waits!(list, stream.read(&mut buf));
    sender.write_all(b"ping").await.unwrap();
    assert_eq!(stream.read(&mut buf).await.unwrap(), 4);
    dup2_stdin(before).unwrap();
}

/// The standard error output of this process is a full pipe for a while. So a row that fails here says nothing.
async fn output(list: &mut List) {
    let before = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
    let (sender, receiver) = pipe().unwrap();
    let sent = fill(&sender);
    dup2_stderr(&sender).unwrap();
    let stream = stderr();
    waits!(list, stream.write(&[2; 8]));
    waits!(list, stream.write_all(&[2; 8]));
    begins!(list, stream.flush());
    dup2_stderr(before).unwrap();
    drop((stream, sender));
    let mut buf = vec![0; sent + 1];
    let mut received = 0;
    while let more @ 1.. = receiver.read(&mut buf[received..]).await.unwrap() {
        received += more;
    }
    assert_eq!((received, &buf[..sent]), (sent, &vec![1; sent][..]));
}

async fn copies(list: &mut List) {
    let (client, mut front) = UnixStream::pair().unwrap();
    let (mut back, server) = UnixStream::pair().unwrap();
    waits!(list, copy(&mut front, &mut back), kept);
    waits!(list, copy_bidirectional(&mut front, &mut back), kept);
    let mut buf = [0; 4];
    client.write_all(b"ping").await.unwrap();
    server.write_all(b"pong").await.unwrap();
    front.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"ping");
    back.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"pong");
}

/// Copies that have pipes of their own, as nobody reads what they write.
async fn copies_under_way(list: &mut List) {
    let much = [7; 64 << 10];
    for is_both_ways in [false, true] {
        let (client, mut front) = narrow_tcp_pair().await;
        let (mut back, server) = narrow_tcp_pair().await;
        let feed = async || while client.try_write(&much).is_ok() {};
        if is_both_ways {
            waits!(
                list,
                {
                    feed().await;
                    copy_bidirectional(&mut front, &mut back)
                },
                kept
            );
        } else {
            waits!(
                list,
                {
                    feed().await;
                    copy(&mut front, &mut back)
                },
                kept
            );
        }
        drop((client, front, back));
        let mut buf = vec![0; 64 << 10];
        while let Ok(received @ 1..) = server.read(&mut buf).await {
            assert!(buf[..received].iter().all(|&byte| byte == 7));
        }
    }
}
