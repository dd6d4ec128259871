//! tokio's `AsyncRead`, `AsyncWrite` and `AsyncSeek` for files.

use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

use super::File;
use super::call::Caller;

impl AsyncRead for File {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let File { open, stream } = self.get_mut();
        stream.poll_read(cx, open, buf, Caller::here("mini::fs::File::poll_read")).map_ok(drop)
    }
}

impl AsyncWrite for File {
    #[track_caller]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let File { open, stream } = self.get_mut();
        stream.poll_write(cx, open, &[IoSlice::new(buf)], Caller::here("mini::fs::File::poll_write"))
    }

    #[track_caller]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let File { open, stream } = self.get_mut();
        stream.poll_write(cx, open, bufs, Caller::here("mini::fs::File::poll_write_vectored"))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let File { open, stream } = self.get_mut();
        stream.poll_flush(cx, open)
    }

    /// As [`poll_flush`](File::flush). The file is closed when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncSeek for File {
    /// Where the position is to be moved. It is moved by [`poll_complete`](AsyncSeek::poll_complete), or else by the
    /// next read, write or seek of this `File`, through any trait or method, before that operation begins: the seek may
    /// be given up after this call. Its error is returned by the operation that moves the position. Until then another
    /// `start_seek` takes its place.
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.get_mut().stream.target = Some(to);
        Ok(())
    }

    /// Returns the position; after `start_seek` the requested position.
    #[track_caller]
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let File { open, stream } = self.get_mut();
        let caller = Caller::here("mini::fs::File::poll_complete");
        match ready!(stream.poll_target(cx, open, caller))? {
            Some(position) => Poll::Ready(Ok(position)),
            None => stream.poll_seek(cx, open, SeekFrom::Current(0), caller),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::future::poll_fn;
    use std::io::ErrorKind;

    use super::*;

    fn start(file: &mut File, to: SeekFrom) {
        Pin::new(file).start_seek(to).unwrap();
    }

    async fn position(file: &mut File) -> io::Result<u64> {
        poll_fn(|cx| Pin::new(&mut *file).poll_complete(cx)).await
    }

    #[test]
    fn what_follows_a_seek_that_was_started_begins_at_its_target() {
        let path = std::env::temp_dir().join(format!("mini-start-seek-{}", std::process::id()));
        let content: Vec<u8> = (0..200).collect();
        std::fs::write(&path, &content).unwrap();
        crate::block_on(async {
            let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
            let mut buf = [0; 4];
            start(&mut file, SeekFrom::Start(100));
            file.read_exact(&mut buf).await.unwrap();
            assert_eq!((buf, position(&mut file).await.unwrap()), ([100, 101, 102, 103], 104));
            start(&mut file, SeekFrom::Start(50));
            assert_eq!(file.seek(SeekFrom::Current(1)).await.unwrap(), 51);
            start(&mut file, SeekFrom::End(-1));
            assert_eq!(poll_fn(|cx| Pin::new(&mut file).poll_write(cx, b"!")).await.unwrap(), 1);
            assert_eq!(position(&mut file).await.unwrap(), 200);
            start(&mut file, SeekFrom::Start(7));
            let mut file = file.try_into_std().expect_err("a seek is under way").into_std().await;
            assert_eq!(io::Seek::stream_position(&mut file).unwrap(), 7);
        });
        assert_eq!(std::fs::read(&path).unwrap()[198..], [198, b'!']);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_error_of_a_seek_that_was_started_comes_once() {
        crate::block_on(async {
            let mut file = File::open("Cargo.toml").await.unwrap();
            start(&mut file, SeekFrom::Current(-1));
            assert_eq!(file.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(file.read(&mut [0; 4]).await.unwrap(), 4);
            start(&mut file, SeekFrom::Current(-9));
            assert_eq!(position(&mut file).await.unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(position(&mut file).await.unwrap(), 4);
        });
    }
}
