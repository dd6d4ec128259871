//! Reading and writing streams, on their own and through the futures-io traits.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::pin::pin;

use super::rig::{Rig, Task};
use crate::{TcpListener, TcpStream, UnixStream};

#[test]
fn every_stream_call_moves_the_bytes() {
    Rig::new().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut buf = [0; 8];
        assert_eq!(a.write(b"12").await.unwrap(), 2);
        assert_eq!(a.try_write(b"34").unwrap(), 2);
        a.write_all(b"5678").await.unwrap();
        assert_eq!(b.peek(&mut buf).await.unwrap(), 8);
        assert_eq!(&std::mem::take(&mut buf), b"12345678");
        assert_eq!(b.read(&mut buf[..3]).await.unwrap(), 3);
        assert_eq!(b.try_read(&mut buf[3..4]).unwrap(), 1);
        b.read_exact(&mut buf[4..]).await.unwrap();
        assert_eq!(&buf, b"12345678");
        assert_eq!(b.read(&mut []).await.unwrap(), 0);
        b.read_exact(&mut []).await.unwrap();
        a.write_all(&[]).await.unwrap();
    });
}

#[test]
fn vectored_calls_move_all_slices() {
    Rig::new().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let bufs = [IoSlice::new(b"pi"), IoSlice::new(b""), IoSlice::new(b"ng")];
        assert_eq!(a.write_vectored(&bufs).await.unwrap(), 4);
        assert_eq!(a.try_write_vectored(&bufs).unwrap(), 4);
        let (mut first, mut second) = ([0; 3], [0; 9]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(b.read_vectored(&mut bufs).await.unwrap(), 8);
        let error = b.try_read_vectored(&mut bufs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!((&first, &second[..5]), (b"pin", &b"gping"[..]));
        // More slices than the kernel takes in one call.
        let many = vec![IoSlice::new(b"x"); 1_500];
        assert_eq!(a.write_vectored(&many).await.unwrap(), 1_024);
        assert_eq!(b.read(&mut [0; 2_000]).await.unwrap(), 1_024);
    });
}

#[test]
fn an_early_end_is_an_error_of_read_exact() {
    Rig::new().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        a.write_all(b"ping").await.unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        let error = b.read_exact(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn writing_to_a_closed_peer_is_an_error_and_no_signal() {
    Rig::new().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        assert_eq!(a.write(b"ping").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(a.write_all(b"ping").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        let error = a.write_vectored(&[IoSlice::new(b"ping")]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_reset_ends_a_read_that_waits() {
    let mut rig = Rig::new();
    rig.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        client.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        let mut buf = [0; 8];
        let reset = async { drop(client) };
        let (read, ()) = super::rig::both(server.read(&mut buf), reset).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn tcp_options_are_what_was_set() {
    Rig::new().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_ttl(33).unwrap();
        stream.set_linger(Some(std::time::Duration::from_secs(3))).unwrap();
        assert!(stream.nodelay().unwrap());
        assert_eq!(stream.ttl().unwrap(), 33);
        assert_eq!(stream.linger().unwrap(), Some(std::time::Duration::from_secs(3)));
        stream.set_linger(None).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
        let text = format!("{stream:?}");
        assert!(text.starts_with("TcpStream") && text.contains("127.0.0.1"), "{text}");
    });
}

#[cfg(feature = "futures-io")]
mod traits {
    use std::future::poll_fn;
    use std::pin::Pin;

    use futures_io::{AsyncRead, AsyncWrite};

    use super::*;

    async fn close(stream: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *stream).poll_close(cx)).await
    }

    #[test]
    fn streams_and_references_to_them_read_and_write() {
        Rig::new().block_on(async {
            let (mut a, b) = UnixStream::pair().unwrap();
            let mut buf = [0; 8];
            let write = poll_fn(|cx| Pin::new(&mut a).poll_write(cx, b"ping"));
            assert_eq!(write.await.unwrap(), 4);
            let bufs = [IoSlice::new(b"po"), IoSlice::new(b"ng")];
            let write = poll_fn(|cx| Pin::new(&mut &a).poll_write_vectored(cx, &bufs));
            assert_eq!(write.await.unwrap(), 4);
            poll_fn(|cx| Pin::new(&mut a).poll_flush(cx)).await.unwrap();
            let read = poll_fn(|cx| Pin::new(&mut &b).poll_read(cx, &mut buf));
            assert_eq!(read.await.unwrap(), 8);
            assert_eq!(&buf, b"pingpong");
        });
    }

    #[test]
    fn closing_twice_or_after_the_peer_is_fine() {
        Rig::new().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            close(&mut client).await.unwrap();
            close(&mut client).await.unwrap();
            assert_eq!(server.read(&mut [0; 4]).await.unwrap(), 0);
            server.set_linger(Some(std::time::Duration::ZERO)).unwrap();
            drop(server);
            close(&mut client).await.unwrap();
        });
    }
}

#[test]
fn a_read_to_the_end_appends_all_that_comes_and_survives_a_drop() {
    let mut rig = Rig::new();
    let (a, b) = UnixStream::pair().unwrap();
    let mut buf = b"old".to_vec();
    rig.block_on(a.write_all(&[1; 10_000])).unwrap();
    assert!(Task::new().poll(pin!(b.read_to_end(&mut buf))).is_pending());
    assert_eq!(buf.len(), 10_003, "a dropped future has lost nothing");
    rig.block_on(a.write_all(&[2; 10_000])).unwrap();
    drop(a);
    assert_eq!(rig.block_on(b.read_to_end(&mut buf)).unwrap(), 10_000);
    assert_eq!((&buf[..3], buf.len()), (&b"old"[..], 20_003));
    assert!(buf[3..10_003].iter().all(|&byte| byte == 1) && buf[10_003..].iter().all(|&byte| byte == 2));
}
