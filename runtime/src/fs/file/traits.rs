//! futures-io's `AsyncRead`, `AsyncWrite` and `AsyncSeek` for files.

use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};

use super::File;
use super::call::Caller;

impl AsyncRead for File {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let File { open, stream } = self.get_mut();
        stream.poll_read(cx, open, buf, Caller::here("mini::fs::File::poll_read"))
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

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let File { open, stream } = self.get_mut();
        stream.poll_flush(cx, open)
    }

    /// As [`poll_flush`](File::flush). The file is closed when it is dropped.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncSeek for File {
    #[track_caller]
    fn poll_seek(self: Pin<&mut Self>, cx: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        let File { open, stream } = self.get_mut();
        stream.poll_seek(cx, open, to, Caller::here("mini::fs::File::poll_seek"))
    }
}
