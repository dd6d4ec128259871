//! hyper's `Read` and `Write` for TCP and Unix streams and their halves.
//!
//! A connection of hyper needs both in one object: a stream. The halves are for those who put one together of two.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

use super::{close, unfilled};
use crate::kind::StreamKind;
use crate::kind::sealed::Kind as _;
use crate::ready::Interest;
use crate::socket::{Socket, site};
use crate::source::{Channel, Wait};
use crate::split::{ReadHalf, Share, WriteHalf};

socket_reads! {
    Read, into ReadBufCursor<'_>;
    for [K: StreamKind] Socket<K>, as K;
    for [S: Share] ReadHalf<S>, as S::Kind;
}

channel_writes! {
    Write;
    for [K: StreamKind] Socket<K>, as K, close close;
    for [S: Share] WriteHalf<S>, as S::Kind, close |half: &WriteHalf<S>| close(half.as_ref());
}
