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
        let read =
            ready!(stream.poll_read(cx, open, buf.initialize_unfilled(), Caller::here("mini::fs::File::poll_read")))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
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
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.get_mut().stream.target = Some(to);
        Ok(())
    }

    /// The position; after `start_seek` the one that it asked for.
    #[track_caller]
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let File { open, stream } = self.get_mut();
        let to = stream.target.unwrap_or(SeekFrom::Current(0));
        let sought = ready!(stream.poll_seek(cx, open, to, Caller::here("mini::fs::File::poll_complete")));
        stream.target = None;
        Poll::Ready(sought)
    }
}
