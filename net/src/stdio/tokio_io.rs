//! tokio's `AsyncRead` and `AsyncWrite` for the standard streams.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Output, Stdin, site};
use crate::source::CallSite;

impl AsyncRead for Stdin {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let call_site = CallSite::here(site!("Stdin", poll_read, Read));
        self.poll_read_from(cx, &call_site, None, buf).map_ok(drop)
    }
}

impl<const FD: i32> AsyncWrite for Output<FD> {
    #[track_caller]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_to(cx, &CallSite::here(site!(Output::<FD>::NAME, poll_write, Write)), None, buf)
    }

    /// Waits for all that was written before this poll; [`flush`](Output::flush) waits only for what was written before
    /// its first poll.
    #[track_caller]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush_of(cx, &CallSite::here(site!(Output::<FD>::NAME, poll_flush, Write)), None, &mut None)
    }

    /// Flushes. The stream stays open, as it is the process's.
    #[track_caller]
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
