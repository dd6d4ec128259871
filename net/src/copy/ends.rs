//! What is at an end of a copy: a socket of this crate, or anything else.
//!
//! Called by `flow`, which takes the kernel's short cut between two sockets. Rust cannot yet choose a function by type, so
//! the type is looked at; the compiler sees the answer, and nothing of it is left when the program runs.
//!
//! # Rejected
//!
//! - `Any` on the ends: they would have to be `'static`, and `&TcpStream` is not.
//! - Asking an end through its `poll_read`: a stream that wraps a socket, to encrypt or to count, would pass the question
//!   on, and then be left out.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem;
use std::ptr;

use crate::kind::{self, StreamKind};
use crate::socket::Socket;
use crate::source::Source;

/// The socket that `end` is, by value or by reference.
pub(super) fn source_of<T: ?Sized>(end: &T) -> Option<&Source> {
    of_kind::<T, kind::TcpStream>(end).or_else(|| of_kind::<T, kind::UnixStream>(end))
}

fn of_kind<T: ?Sized, K: StreamKind>(end: &T) -> Option<&Source> {
    let end_as = ptr::from_ref(end);
    if is::<T, Socket<K>>() {
        // SAFETY: `T` is `Socket<K>`, which has no lifetime in it that `is` could have overlooked; same borrow.
        // Test: `sockets_are_known_and_wrappers_are_not`.
        return Some(unsafe { &*end_as.cast::<Socket<K>>() }.source());
    }
    if is::<T, &Socket<K>>() {
        // SAFETY: `T` is a reference to a `Socket<K>`, of a lifetime that is not known, but is longer than that of `end`;
        // what is returned has the latter. Test: `sockets_are_known_and_wrappers_are_not`.
        return Some(unsafe { *end_as.cast::<&Socket<K>>() }.source());
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
    // SAFETY: only the lifetime bound of the trait object changes, and nothing is reached through it: `PhantomData` has no
    // content, `id` does not look at it, and a `TypeId` knows no lifetimes. Test: `sockets_are_known_and_wrappers_are_not`.
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
        let (a, _b) = UnixStream::pair().unwrap();
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
