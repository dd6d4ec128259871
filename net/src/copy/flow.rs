//! `Flow`: one direction of a copy.
//!
//! Called by the futures of `copy`. A flow reads into a buffer and writes the buffer out. Between two sockets, if a
//! read fills the buffer, the next ones go through a pipe, which copies nothing but costs one call more. A wait for
//! data closes it: an idle copy keeps no descriptors of its own.
//!
//! # What the pipe may not decide
//!
//! splice(2) is only a short cut. When it moves nothing, recv(2) is called at once, and its answer counts: no data, or
//! the end of the stream. So nothing depends on how splice treats urgent data (splice stops before it permanently; recv
//! skips it) or half-closed sockets. (An error of the connection is reported once, to the first call, so no second call
//! is made for it.) If the system, or a filter of system calls, refuses splice, the copy continues with recv; bytes
//! still in the pipe are read back and sent.
//!
//! # Fairness
//!
//! Reads and writes of sockets spend the budget of the task (`mini-context`), by calls and by bytes. Ends of other
//! crates may have no budget: what is read from them is counted here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};

use super::buffer::Buffer;
use super::ends::source_of;
use super::pipe::Pipe;
use crate::call;
use crate::ready::Interest;
use crate::source::{CallSite, Left, Source};
use crate::sys::socket::for_kernel;

#[derive(Debug)]
pub(super) struct Flow {
    reading: CallSite,
    writing: CallSite,
    stage: Stage,
    buffer: Buffer,
    /// Between two sockets, from a read that has filled the buffer to the next wait for data.
    pipe: Option<Pipe>,
    /// `false` from then on if an end is no socket, there is no descriptor for a pipe, or splice(2) is refused.
    may_splice: bool,
    unflushed: bool,
    copied: u64,
    last: Last,
}

/// The last step at the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Flush,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Copying,
    /// The reader has ended, and all is written.
    Flushing,
    Closing,
    Done,
}

/// Where bytes have gone.
enum Read {
    IntoBuffer(usize),
    IntoPipe,
}

impl Flow {
    pub(super) fn new([reading, writing]: [CallSite; 2], last: Last) -> Flow {
        Flow {
            reading,
            writing,
            stage: Stage::Copying,
            buffer: Buffer::new(),
            pipe: None,
            may_splice: true,
            unflushed: false,
            copied: 0,
            last,
        }
    }

    /// The call that this flow serves, and its line.
    pub(super) fn call_site(&self) -> CallSite {
        self.reading
    }

    /// The bytes that the writer has taken.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    /// Copies until the reader ends, and returns the number of bytes.
    pub(super) fn poll<R, W>(&mut self, cx: &mut Context<'_>, reader: &mut R, writer: &mut W) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            match self.stage {
                Stage::Copying if self.has_bytes() => ready!(self.poll_write(cx, writer))?,
                Stage::Copying => {
                    ready!(mini_context::check_budget(cx, self)); // a spent budget is no wait: the pipe stays
                    match self.poll_read(cx, reader, writer) {
                        Poll::Ready(read) => read?,
                        Poll::Pending => {
                            self.pipe = None; // a proxy has many connections that are idle
                            // The data must not stay with the writer while the reader waits for more.
                            ready!(self.poll_flush(cx, writer))?;
                            return Poll::Pending;
                        }
                    }
                }
                Stage::Flushing => {
                    ready!(self.poll_flush(cx, writer))?;
                    self.stage = if self.last == Last::Close { Stage::Closing } else { Stage::Done };
                }
                Stage::Closing => {
                    ready!(Pin::new(&mut *writer).poll_close(cx))?;
                    self.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(Ok(self.copied)),
            }
        }
    }

    fn has_bytes(&self) -> bool {
        !self.buffer.is_empty() || self.pipe.as_ref().is_some_and(|pipe| !pipe.is_empty())
    }

    /// Reads once, into the buffer or the pipe; both are empty.
    fn poll_read<R, W>(&mut self, cx: &mut Context<'_>, reader: &mut R, writer: &W) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: ?Sized,
    {
        let read = match source_of(reader) {
            Some(source) => ready!(self.poll_receive(cx, source)),
            None => {
                let read = ready!(Pin::new(&mut *reader).poll_read(cx, self.buffer.room()));
                mini_context::spend_call();
                mini_context::spend_bytes(*read.as_ref().unwrap_or(&0));
                read.map(Read::IntoBuffer)
            }
        };
        match read? {
            Read::IntoBuffer(0) => self.stage = Stage::Flushing,
            Read::IntoBuffer(received) => {
                if self.buffer.filled(received) && self.pipe.is_none() {
                    self.make_room(source_of(reader).is_some() && source_of(writer).is_some());
                }
            }
            Read::IntoPipe => {}
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once from a socket: into the pipe if there is one, or into the buffer if that does not work.
    fn poll_receive(&mut self, cx: &mut Context<'_>, source: &Source) -> Poll<io::Result<Read>> {
        let Flow { reading, buffer, pipe, may_splice, .. } = self;
        let room = buffer.room();
        source.poll_io(cx, reading, Interest::READABLE, None, |source| {
            match pipe.as_mut().filter(|_| *may_splice).map(|pipe| pipe.fill(source.io())) {
                Some(Ok(1..)) => return Ok((Read::IntoPipe, Left::Perhaps)),
                Some(Err(e)) if is_refusal(&e) => (*may_splice, *pipe) = (false, None),
                Some(Err(e)) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                // Nothing has come, or the stream has ended, or neither: recv knows. See above.
                _ => {}
            }
            source.recv_into(for_kernel(room)).map(|(received, left)| (Read::IntoBuffer(received), left))
        })
    }

    /// After a read that has filled the buffer: opens a pipe, or else makes the buffer larger.
    fn make_room(&mut self, both_are_sockets: bool) {
        self.pipe = if self.may_splice && both_are_sockets { Pipe::open() } else { None };
        self.may_splice = self.pipe.is_some();
        if !self.may_splice {
            self.buffer.grow();
        }
    }

    /// Writes once, from the buffer or else from the pipe.
    fn poll_write<W>(&mut self, cx: &mut Context<'_>, writer: &mut W) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + Unpin + ?Sized,
    {
        let written = if self.buffer.is_empty() {
            ready!(self.poll_drain(cx, writer))
        } else {
            let rest = self.buffer.rest();
            let written = match source_of(writer) {
                Some(source) => ready!(source.poll_call(cx, &self.writing, None, &mut call::Send(rest))),
                None => ready!(Pin::new(writer).poll_write(cx, rest)),
            };
            written.and_then(|written| self.buffer.written(written))
        };
        self.copied += written? as u64;
        self.unflushed = true;
        Poll::Ready(Ok(()))
    }

    /// Writes once from the pipe, or moves something from there into the buffer.
    fn poll_drain<W: ?Sized>(&mut self, cx: &mut Context<'_>, writer: &W) -> Poll<io::Result<usize>> {
        let (Some(pipe), Some(source)) = (&mut self.pipe, source_of(writer)) else {
            unreachable!("a pipe with bytes in it is between two sockets");
        };
        let drain = |source: &Source| {
            let moved = pipe.drain(source.io())?;
            mini_context::spend_bytes(moved);
            Ok((moved, Left::Perhaps))
        };
        match ready!(source.poll_io(cx, &self.writing, Interest::WRITABLE, None, drain)) {
            Err(e) if is_refusal(&e) => {
                self.may_splice = false;
                let read = pipe.read(self.buffer.room())?;
                if pipe.is_empty() {
                    self.pipe = None;
                }
                self.buffer.filled(read);
                Poll::Ready(Ok(0))
            }
            Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            result => Poll::Ready(result),
        }
    }

    fn poll_flush<W>(&mut self, cx: &mut Context<'_>, writer: &mut W) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + Unpin + ?Sized,
    {
        if self.unflushed {
            ready!(Pin::new(writer).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

/// Returns `true` if the system, or a filter of system calls, refuses splice(2).
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM))
}
