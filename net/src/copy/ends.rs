//! What is at an end of a copy: a socket of this crate, or anything else.
//!
//! Called by `flow`, which takes the kernel's short cut between two sockets. Rust cannot yet choose a function by type,
//! so the type is looked at; the compiler sees the answer, and nothing of it is left when the program runs.
//!
//! # Rejected
//!
//! - `Any` on the ends: they would have to be `'static`, and `&TcpStream` is not.
//! - Asking an end through its `poll_read`: a stream that wraps a socket, to encrypt or to count, would pass the
//!   question on, and then be left out.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem;
use std::ptr;

use crate::kind::{self, StreamKind};
use crate::socket::Socket;
use crate::source::Source;
use crate::split::{BorrowedReadHalf, BorrowedWriteHalf, OwnedReadHalf, OwnedWriteHalf};

/// The socket that `end` is, by value or by reference, or of which it is a half.
pub(super) fn source_of<T: ?Sized>(end: &T) -> Option<&Source> {
    of_kind::<T, kind::TcpStream>(end).or_else(|| of_kind::<T, kind::UnixStream>(end))
}

/// If `$end`, a `&'e T`, is a `$known`, looks at it as a `$seen`, which is the same with the lifetime `'e`.
macro_rules! look {
    ($end:ident: $($known:ty => $seen:ty, $socket:expr;)*) => { $(
        if is::<T, $known>() {
            // SAFETY: `T` is `$known` but for lifetimes. One of a reference in there is at least that of `$end`, and
            // all of these types may be seen with a shorter one. Test: `sockets_are_known_and_wrappers_are_not`.
            let seen: &'e $seen = unsafe { &*ptr::from_ref($end).cast::<$seen>() };
            let socket: fn(&'e $seen) -> &'e Socket<K> = $socket;
            return Some(socket(seen).source());
        }
    )* };
}

fn of_kind<'e, T: ?Sized, K: StreamKind>(end: &'e T) -> Option<&'e Source> {
    look! { end:
        Socket<K> => Socket<K>, |socket| socket;
        &'static Socket<K> => &'e Socket<K>, |socket| socket;
        OwnedReadHalf<K> => OwnedReadHalf<K>, |half| half.as_ref();
        OwnedWriteHalf<K> => OwnedWriteHalf<K>, |half| half.as_ref();
        BorrowedReadHalf<'static, K> => BorrowedReadHalf<'e, K>, |half| half.as_ref();
        BorrowedWriteHalf<'static, K> => BorrowedWriteHalf<'e, K>, |half| half.as_ref();
    }
    None
}

/// Whether `T` and `U` are the same, apart from lifetimes.
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
