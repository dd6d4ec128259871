//! The ends of a copy: a socket of this crate, or anything else.
//!
//! Called by `flow`, which takes the kernel's short cut between two sockets. Rust cannot yet choose a function by type,
//! so this compares types; the compiler knows the answer, and no comparison is left at run time.
//!
//! # Rejected
//!
//! - `Any` on the ends: they would have to be `'static`, and `&TcpStream` is not.
//! - Asking an end through its `poll_read`: a stream that wraps a socket, to encrypt or to count, would pass the
//!   question on, and the copy would bypass it.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem;
use std::ptr;

use crate::kind::sealed::Kind;
use crate::source::Source;
use crate::{TcpStream, UnixStream, tcp, unix};

/// If `$end`, a `&'e $t`, is a `$known`, looks at it as a `$seen`, which is the same with the lifetime `'e`.
macro_rules! look {
    ($t:ident, $end:ident: $($known:ty => $seen:ty;)*) => { $(
        if is::<$t, $known>() {
            // SAFETY: `$t` is `$known` but for lifetimes. A reference in it lives at least as long as `$end`, and all
            // of these types are valid with a shorter lifetime. Test: `sockets_are_known_and_wrappers_are_not`.
            let seen: &'e $seen = unsafe { &*ptr::from_ref($end).cast::<$seen>() };
            return Some(seen.source());
        }
    )* };
}

/// `look!` for a stream and its halves, which are in the module `$module`.
macro_rules! of_module {
    ($t:ident, $end:ident: $module:ident, $stream:ident) => {
        look! { $t, $end:
            $stream => $stream;
            &'static $stream => &'e $stream;
            $module::OwnedReadHalf => $module::OwnedReadHalf;
            $module::OwnedWriteHalf => $module::OwnedWriteHalf;
            $module::ReadHalf<'static> => $module::ReadHalf<'e>;
            $module::WriteHalf<'static> => $module::WriteHalf<'e>;
        }
    };
}

/// The socket behind `end`, which is a socket, a reference to one, or a half of one.
pub(super) fn source_of<'e, T: ?Sized>(end: &'e T) -> Option<&'e Source> {
    of_module!(T, end: tcp, TcpStream);
    of_module!(T, end: unix, UnixStream);
    None
}

/// Returns `true` if `T` and `U` are the same, apart from lifetimes.
fn is<T: ?Sized, U: 'static>() -> bool {
    trait Named {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Named for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let named: &dyn Named = &PhantomData::<T>;
    // SAFETY: only the lifetime bound of the trait object changes, and nothing is reached through it: `PhantomData` has
    // no content, `id` does not look at it, and a `TypeId` knows no lifetimes. Test:
    // `sockets_are_known_and_wrappers_are_not`.
    let named = unsafe { mem::transmute::<&dyn Named, &(dyn Named + 'static)>(named) };
    named.id() == TypeId::of::<U>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{UnixDatagram, UnixStream};

    struct Wrapper(UnixStream);

    #[test]
    fn tcp_streams_and_their_halves_are_known_too() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = TcpStream::from_std(client).unwrap();
        let fd = stream.source().raw_fd();
        assert!(ptr::eq(source_of(&stream).unwrap(), stream.source()));
        let by_reference = &stream;
        assert!(ptr::eq(source_of(&by_reference).unwrap(), stream.source()));
        let (reader, writer) = stream.split();
        assert_eq!([source_of(&reader).unwrap().raw_fd(), source_of(&writer).unwrap().raw_fd()], [fd; 2]);
        let (reader, writer) = stream.into_split();
        assert_eq!([source_of(&reader).unwrap().raw_fd(), source_of(&writer).unwrap().raw_fd()], [fd; 2]);
    }

    #[test]
    fn sockets_are_known_and_wrappers_are_not() {
        let (mut a, _b) = UnixStream::pair().unwrap();
        let fd = a.source().raw_fd();
        let (reader, writer) = a.split();
        assert_eq!([source_of(&reader).unwrap().raw_fd(), source_of(&writer).unwrap().raw_fd()], [fd; 2]);
        let (reader, writer) = a.into_split();
        assert_eq!([source_of(&reader).unwrap().raw_fd(), source_of(&writer).unwrap().raw_fd()], [fd; 2]);
        let a = reader.reunite(writer).unwrap();
        assert!(ptr::eq(source_of(&a).unwrap(), a.source()));
        let by_reference = &a;
        assert!(ptr::eq(source_of(&by_reference).unwrap(), a.source()));
        let wrapper = Wrapper(a);
        assert!(source_of(&wrapper).is_none());
        assert!(source_of(&&wrapper).is_none());
        assert!(source_of(&Box::new(wrapper.0)).is_none());
        assert!(source_of("a stranger without a size").is_none());
        assert!(source_of(&UnixDatagram::pair().unwrap()).is_none());
    }
}
