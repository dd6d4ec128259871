//! The ends of the model's pairs, in one shape, and the waits on them.

use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::rc::Rc;

use mini_net::pipe::{Receiver, Sender};
use mini_net::{AsyncFd, Interest, UnixStream};

/// One end of a pair.
pub(super) enum End {
    Stream(UnixStream),
    Sender(Sender),
    Receiver(Receiver),
    Foreign(AsyncFd<StdStream>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Readable,
    Writable,
    /// By the `poll_` methods, which leave a waker that stays until another one comes.
    KeylessRead,
    KeylessWrite,
}

pub(super) enum Got {
    Data(Vec<u8>),
    Wrote(Vec<u8>),
    Ready,
}

impl Kind {
    pub(super) fn is_read(self) -> bool {
        matches!(self, Kind::Read | Kind::Readable | Kind::KeylessRead)
    }

    pub(super) fn is_keyless(self) -> bool {
        matches!(self, Kind::KeylessRead | Kind::KeylessWrite)
    }
}

impl End {
    pub(super) fn reads(&self) -> bool {
        !matches!(self, End::Sender(_))
    }

    pub(super) fn writes(&self) -> bool {
        !matches!(self, End::Receiver(_))
    }

    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            End::Stream(stream) => stream.try_read(buf),
            End::Receiver(receiver) => receiver.try_read(buf),
            End::Foreign(fd) => fd.try_io(Interest::READABLE, |mut socket| socket.read(buf)),
            End::Sender(_) => unreachable!("nobody reads a sender"),
        }
    }

    pub(super) fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        match self {
            End::Stream(stream) => stream.try_write(buf),
            End::Sender(sender) => sender.try_write(buf),
            End::Foreign(fd) => fd.try_io(Interest::WRITABLE, |mut socket| socket.write(buf)),
            End::Receiver(_) => unreachable!("nobody writes to a receiver"),
        }
    }
}

pub(super) type Boxed = Pin<Box<dyn Future<Output = io::Result<Got>>>>;

pub(super) fn read(end: Rc<End>, most: usize) -> Boxed {
    Box::pin(async move {
        let mut buf = vec![0; most];
        let read = match &*end {
            End::Stream(stream) => stream.read(&mut buf).await?,
            End::Receiver(receiver) => receiver.read(&mut buf).await?,
            End::Foreign(fd) => fd.async_io(Interest::READABLE, |mut socket| socket.read(&mut buf)).await?,
            End::Sender(_) => unreachable!("nobody reads a sender"),
        };
        buf.truncate(read);
        Ok(Got::Data(buf))
    })
}

pub(super) fn write(end: Rc<End>, mut data: Vec<u8>) -> Boxed {
    Box::pin(async move {
        let written = match &*end {
            End::Stream(stream) => stream.write(&data).await?,
            End::Sender(sender) => sender.write(&data).await?,
            End::Foreign(fd) => fd.async_io(Interest::WRITABLE, |mut socket| socket.write(&data)).await?,
            End::Receiver(_) => unreachable!("nobody writes to a receiver"),
        };
        data.truncate(written);
        Ok(Got::Wrote(data))
    })
}

pub(super) fn ready(end: Rc<End>, interest: Interest) -> Boxed {
    Box::pin(async move {
        match &*end {
            End::Stream(stream) => drop(stream.ready(interest).await?),
            End::Sender(sender) => drop(sender.ready(interest).await?),
            End::Receiver(receiver) => drop(receiver.ready(interest).await?),
            End::Foreign(fd) => drop(fd.ready(interest).await?),
        }
        Ok(Got::Ready)
    })
}

pub(super) fn keyless(end: Rc<End>, kind: Kind) -> Boxed {
    let is_read = kind.is_read();
    Box::pin(poll_fn(move |cx| {
        let polled = match &*end {
            End::Stream(stream) if is_read => stream.poll_read_ready(cx),
            End::Stream(stream) => stream.poll_write_ready(cx),
            End::Receiver(receiver) => receiver.poll_read_ready(cx),
            End::Sender(sender) => sender.poll_write_ready(cx),
            End::Foreign(fd) if is_read => fd.poll_read_ready(cx).map_ok(drop),
            End::Foreign(fd) => fd.poll_write_ready(cx).map_ok(drop),
        };
        polled.map_ok(|()| Got::Ready)
    }))
}
