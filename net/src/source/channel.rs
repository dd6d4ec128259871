//! `Channel`: a socket or a pipe that carries bytes, so that the futures for both are written once.
//!
//! Called by `call`, `leaf` and `unfilled`. A pipe is a `File`, because the standard library has write(2) for it.
//!
//! Rejected: an enum in `Source`, asked at every operation.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use super::{Left, Source};
use crate::sys::socket::{self, count_empty, total};

pub trait Channel: AsFd + Sized {
    /// Initialises as many bytes of `buf` as it returns.
    fn read(source: &Source<Self>, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Left)>;
    fn read_vectored(source: &Source<Self>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Left)>;
    fn write(source: &Source<Self>, buf: &[u8]) -> io::Result<(usize, Left)>;
    fn write_vectored(source: &Source<Self>, bufs: &[IoSlice<'_>]) -> io::Result<(usize, Left)>;
}

impl Channel for OwnedFd {
    fn read(source: &Source, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Left)> {
        source.recv_into(buf)
    }

    fn read_vectored(source: &Source, bufs: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Left)> {
        source.recv_vectored(bufs)
    }

    fn write(source: &Source, buf: &[u8]) -> io::Result<(usize, Left)> {
        source.send(buf)
    }

    fn write_vectored(source: &Source, bufs: &[IoSlice<'_>]) -> io::Result<(usize, Left)> {
        source.send_vectored(bufs)
    }
}

impl Channel for File {
    fn read(source: &Source<File>, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Left)> {
        let read = socket::read(source.io().as_fd(), buf)?;
        Ok((read, source.left(read, buf.len())))
    }

    fn read_vectored(source: &Source<File>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Left)> {
        let empty = count_empty(bufs);
        let bufs = &mut bufs[empty..];
        let asked = total(bufs.iter().map(|b| &**b));
        let read = source.io().read_vectored(bufs)?;
        Ok((read, source.left(read, asked)))
    }

    fn write(source: &Source<File>, buf: &[u8]) -> io::Result<(usize, Left)> {
        let written = source.io().write(buf)?;
        Ok((written, source.left(written, buf.len())))
    }

    fn write_vectored(source: &Source<File>, bufs: &[IoSlice<'_>]) -> io::Result<(usize, Left)> {
        let bufs = &bufs[count_empty(bufs)..];
        let asked = total(bufs.iter().map(|b| &**b));
        let written = source.io().write_vectored(bufs)?;
        Ok((written, source.left(written, asked)))
    }
}
