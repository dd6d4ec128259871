//! tokio's `AsyncRead` and `AsyncWrite` for TCP and Unix streams, their halves, and pipes.
//!
//! These are tokio's traits alone, without its runtime.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{close, polled};
use crate::call::{Send as SendCall, SendVectored};
use crate::kind::sealed::Kind;
use crate::socket::site;
use crate::source::CallSite;
use crate::unix::pipe::{Receiver, Sender};
use crate::{TcpStream, UnixStream, tcp, unix};

socket_reads! {
    AsyncRead, into &mut ReadBuf<'_>;
    for [] TcpStream, as TcpStream;
    for [] tcp::ReadHalf<'_>, as TcpStream;
    for [] tcp::OwnedReadHalf, as TcpStream;
    for [] UnixStream, as UnixStream;
    for [] unix::ReadHalf<'_>, as UnixStream;
    for [] unix::OwnedReadHalf, as UnixStream;
    for [] Receiver, as Receiver;
}

channel_writes! {
    AsyncWrite;
    for [] TcpStream, as TcpStream, close |this: &TcpStream| close(this.source());
    for [] tcp::WriteHalf<'_>, as TcpStream, close |this: &tcp::WriteHalf<'_>| close(this.source());
    for [] tcp::OwnedWriteHalf, as TcpStream, close |this: &tcp::OwnedWriteHalf| close(this.source());
    for [] UnixStream, as UnixStream, close |this: &UnixStream| close(this.source());
    for [] unix::WriteHalf<'_>, as UnixStream, close |this: &unix::WriteHalf<'_>| close(this.source());
    for [] unix::OwnedWriteHalf, as UnixStream, close |this: &unix::OwnedWriteHalf| close(this.source());
    for [] Sender, as Sender, close |_| Ok(());
}
