//! tokio's `AsyncRead` and `AsyncWrite` for TCP and Unix streams, their halves, and pipes.
//!
//! These are tokio's traits alone, without its runtime.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{close, unfilled};
use crate::kind::StreamKind;
use crate::kind::sealed::Kind as _;
use crate::ready::Interest;
use crate::socket::{Socket, site};
use crate::source::{Channel, Wait};
use crate::split::{ReadHalf, Share, WriteHalf};
use crate::unix::pipe::{Receiver, Sender};

socket_reads! {
    AsyncRead, into &mut ReadBuf<'_>;
    for [K: StreamKind] Socket<K>, as K;
    for [S: Share] ReadHalf<S>, as S::Kind;
}

channel_writes! {
    AsyncWrite;
    for [K: StreamKind] Socket<K>, as K, close close;
    for [S: Share] WriteHalf<S>, as S::Kind, close |half: &WriteHalf<S>| close(half.as_ref());
    for [] Sender, as Sender, close |_| Ok(());
}

impl AsyncRead for Receiver {
    /// Initialises what `buf` has not: a pipe is read by the standard library, which wants that.
    #[track_caller]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wait = Wait::here(site!(poll_read, Read, Receiver));
        let room = buf.initialize_unfilled();
        let read = self.source().poll_io(cx, &wait, Interest::READABLE, None, |source| Channel::read(source, room));
        buf.advance(ready!(read)?);
        Poll::Ready(Ok(()))
    }
}
