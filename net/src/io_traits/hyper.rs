//! hyper's `Read` and `Write` for TCP and Unix streams and their halves.
//!
//! A connection of hyper needs both in one object: a stream. The halves are for users who build an object from two.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

use super::{close, polled};
use crate::call::{Send as SendCall, SendVectored};
use crate::kind::sealed::Kind;
use crate::socket::site;
use crate::source::CallSite;
use crate::{TcpStream, UnixStream, tcp, unix};

socket_reads! {
    Read, into ReadBufCursor<'_>;
    for [] TcpStream, as TcpStream;
    for [] tcp::ReadHalf<'_>, as TcpStream;
    for [] tcp::OwnedReadHalf, as TcpStream;
    for [] UnixStream, as UnixStream;
    for [] unix::ReadHalf<'_>, as UnixStream;
    for [] unix::OwnedReadHalf, as UnixStream;
}

channel_writes! {
    Write;
    for [] TcpStream, as TcpStream, close |this: &TcpStream| close(this.source());
    for [] tcp::WriteHalf<'_>, as TcpStream, close |this: &tcp::WriteHalf<'_>| close(this.source());
    for [] tcp::OwnedWriteHalf, as TcpStream, close |this: &tcp::OwnedWriteHalf| close(this.source());
    for [] UnixStream, as UnixStream, close |this: &UnixStream| close(this.source());
    for [] unix::WriteHalf<'_>, as UnixStream, close |this: &unix::WriteHalf<'_>| close(this.source());
    for [] unix::OwnedWriteHalf, as UnixStream, close |this: &unix::OwnedWriteHalf| close(this.source());
}
