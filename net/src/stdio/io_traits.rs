//! futures-io's `AsyncRead` and `AsyncWrite` for the standard streams, by value and by reference.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::{Output, Stdin, site};
use crate::source::CallSite;

impl AsyncRead for &Stdin {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_read_from(cx, &CallSite::here(site!("Stdin", poll_read, Read)), None, buf)
    }
}

impl<const FD: i32> AsyncWrite for &Output<FD> {
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
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncRead for Stdin {
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buf)
    }
}

impl<const FD: i32> AsyncWrite for Output<FD> {
    #[track_caller]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, buf)
    }

    #[track_caller]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_flush(cx)
    }

    #[track_caller]
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_close(cx)
    }
}
