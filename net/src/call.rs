//! The operations of the leaf futures, shared by all sockets.
//!
//! `future` gives most of them the name that users see.

use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use socket2::SockAddr;

use crate::async_fd::check_interest;
use crate::kind::sealed::Kind;
use crate::kind::{ListenerKind, SocketKind};
use crate::leaf::Call;
use crate::ready::Interest;
use crate::source::{Channel, Left, Source};
use crate::unfilled::read_source_into;

/// Reads into one buffer.
pub(crate) struct Recv<'a>(pub(crate) &'a mut [u8]);

/// Reads into what a vector has reserved, of which it needs some.
pub(crate) struct RecvMore<'a>(pub(crate) &'a mut Vec<u8>);

/// Reads into several buffers, in order.
pub(crate) struct RecvVectored<'a, 'b>(pub(crate) &'a mut [IoSliceMut<'b>]);

/// Reads into one buffer; the data stays, to be read again.
pub(crate) struct Peek<'a>(pub(crate) &'a mut [u8]);

/// Writes from one buffer.
pub(crate) struct Send<'a>(pub(crate) &'a [u8]);

/// Writes from several buffers, in order.
pub(crate) struct SendVectored<'a, 'b>(pub(crate) &'a [IoSlice<'b>]);

/// Reads one datagram, and returns its sender.
pub(crate) struct RecvFrom<'a, K> {
    pub(crate) buf: &'a mut [u8],
    pub(crate) flags: libc::c_int,
    pub(crate) kind: PhantomData<fn() -> K>,
}

/// Sends one datagram to an address.
pub(crate) struct SendToAddr<'a> {
    pub(crate) buf: &'a [u8],
    pub(crate) to: &'a SockAddr,
}

/// Takes one connection off a listener's queue.
pub(crate) struct Accept<K>(pub(crate) PhantomData<fn() -> K>);

/// Runs a closure of the user's.
pub(crate) struct Custom<F> {
    pub(crate) interest: Interest,
    pub(crate) f: F,
}

/// Runs a closure of the user's on the object that has the fd.
pub(crate) struct CustomOn<F> {
    pub(crate) interest: Interest,
    /// The waits that the object was made for.
    pub(crate) allowed: Interest,
    pub(crate) f: F,
}

impl<T: Channel> Call<T> for Recv<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(usize, Left)> {
        read_source_into(source, &mut &mut *self.0)
    }
}

impl<T: Channel> Call<T> for RecvMore<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(usize, Left)> {
        read_source_into(source, self.0)
    }
}

impl<T: Channel> Call<T> for RecvVectored<'_, '_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|buf| buf.is_empty())
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(usize, Left)> {
        T::read_vectored(source, self.0)
    }
}

impl Call<OwnedFd> for Peek<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(usize, Left)> {
        source.peek(self.0)
    }
}

impl<T: Channel> Call<T> for Send<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::WRITABLE
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(usize, Left)> {
        T::write(source, self.0)
    }
}

impl<T: Channel> Call<T> for SendVectored<'_, '_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::WRITABLE
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|buf| buf.is_empty())
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(usize, Left)> {
        T::write_vectored(source, self.0)
    }
}

impl<K: SocketKind> Call<OwnedFd> for RecvFrom<'_, K> {
    type Output = (usize, K::Addr);

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(Self::Output, Left)> {
        let (received, from) = source.recv_from(self.buf, self.flags)?;
        Ok(((received, K::addr(from)?), Left::Perhaps))
    }
}

impl Call<OwnedFd> for SendToAddr<'_> {
    type Output = usize;

    fn interest(&self) -> Interest {
        Interest::WRITABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(usize, Left)> {
        source.send_to(self.buf, self.to)
    }
}

impl<K: ListenerKind> Call<OwnedFd> for Accept<K> {
    type Output = (K::Connection, K::Addr);

    fn interest(&self) -> Interest {
        Interest::READABLE
    }

    fn call(&mut self, source: &Source) -> io::Result<(Self::Output, Left)> {
        loop {
            match source.accept() {
                Ok(((fd, from), left)) => {
                    mini_context::spend_calls(CALLS_OF_A_SOCKET);
                    return Ok(((K::Connection::adopt(fd), K::addr(from)?), left));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(e),
                Err(e) if is_about_one_connection(&e) => {}
                // Running out of files or memory too: the readiness stays, so the next accept tries again.
                Err(e) => return Err(e),
            }
        }
    }
}

/// The calls that a new socket costs besides its creation: set-up, registration, close.
pub(crate) const CALLS_OF_A_SOCKET: u8 = 3;

impl<F: FnMut() -> io::Result<R>, R> Call<OwnedFd> for Custom<F> {
    type Output = R;
    const IS_MADE_AGAIN: bool = false;

    fn interest(&self) -> Interest {
        self.interest
    }

    fn call(&mut self, _: &Source) -> io::Result<(R, Left)> {
        Ok(((self.f)()?, Left::Perhaps))
    }
}

impl<T: AsFd, F: FnMut(&T) -> io::Result<R>, R> Call<T> for CustomOn<F> {
    type Output = R;
    const IS_MADE_AGAIN: bool = false;

    fn interest(&self) -> Interest {
        self.interest
    }

    fn check(&self) -> io::Result<()> {
        check_interest(self.allowed, self.interest)
    }

    fn call(&mut self, source: &Source<T>) -> io::Result<(R, Left)> {
        Ok(((self.f)(source.io())?, Left::Perhaps))
    }
}

/// Returns `true` if the error belongs to one connection that is already gone, or to the network, and not to the
/// listener (accept(2), "Error handling"). `EOPNOTSUPP`, listed there too, does not count: it is also the error of a
/// socket that cannot listen.
#[cold]
fn is_about_one_connection(error: &io::Error) -> bool {
    use libc::{ECONNABORTED, EHOSTDOWN, EHOSTUNREACH, EINTR, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EPROTO};
    let gone = [ECONNABORTED, EPROTO, EINTR];
    let network = [ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, ENOPROTOOPT];
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if error.raw_os_error() == Some(libc::ENONET) {
        return true;
    }
    error.raw_os_error().is_some_and(|number| gone.contains(&number) || network.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_one_connection_is_nothing_of_the_listeners() {
        let is_passed_over = |number| is_about_one_connection(&io::Error::from_raw_os_error(number));
        for number in [libc::ECONNABORTED, libc::EPROTO, libc::EINTR, libc::ENETDOWN, libc::EHOSTUNREACH] {
            assert!(is_passed_over(number), "{number}");
        }
        for number in [libc::EAGAIN, libc::EMFILE, libc::ENOBUFS, libc::EBADF, libc::EINVAL, libc::EOPNOTSUPP] {
            assert!(!is_passed_over(number), "{number}: it would be tried again without end");
        }
    }
}
