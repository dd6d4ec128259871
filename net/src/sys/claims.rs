//! `Claims`: which registration a number belongs to, for fds that the user may close.
//!
//! Called by `epoll`. The kernel removes an fd by its number, and the number is all that a registration has. The user
//! may close an fd while it is registered (`AsyncFd::get_mut`), and the next socket may get its number; a removal by
//! number would then remove that socket. So the registration of such an fd *claims* the number, and only the owner of
//! the claim removes it.
//!
//! # Why a removal never hits another registration
//!
//! - The kernel refuses to add a number whose open file is in already. An `add` that succeeds proves that what was
//!   registered by this number is gone, so it ends the claim, or takes it over.
//! - That `add` and the end of the claim are one step under the lock, as are the look for the claim and the removal. So
//!   the removal comes before the `add`, and does no harm, or finds the claim gone.
//! - An fd of this crate's ([`Custody::Ours`]) is closed after it has been removed. Meanwhile no other fd gets its
//!   number, and the kernel refuses to add it again: it needs no claim.
//!
//! The lock is held during epoll_ctl(2), as the kernel holds one of the epoll instance.
//!
//! Rejected: a duplicate of the fd, for the registration alone (a descriptor and two system calls for each, and the
//! other end is not told of a close). A table of all numbers (eight bytes for each socket). A filter in front of the
//! lock (a listener for signals or a child is claimed, so in a server it said yes). Leaving the runtime in
//! `get_mut` and coming back at the next wait (two system calls for each use; and a library may close its descriptor by
//! itself).

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::PoisonError;

use super::{Custody, Token};
use crate::primitives::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<RawFd, Token>>);

impl Claims {
    /// Registers a number by `add`, for `token`.
    pub(super) fn add(
        &self,
        number: RawFd,
        token: Token,
        custody: Custody,
        add: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut owners = self.owners();
        add()?;
        match custody {
            Custody::Ours if owners.is_empty() => {} // without a hash
            Custody::Ours => drop(owners.remove(&number)),
            Custody::Users => drop(owners.insert(number, token)),
        }
        Ok(())
    }

    /// Removes a number by `remove`, if it still belongs to `token`.
    pub(super) fn remove(&self, number: RawFd, token: Token, custody: Custody, remove: impl FnOnce()) {
        if custody == Custody::Ours {
            return remove();
        }
        let mut owners = self.owners();
        if owners.get(&number) == Some(&token) {
            remove();
            owners.remove(&number);
        }
    }

    /// Poison is ignored: no user code runs under this lock.
    fn owners(&self) -> MutexGuard<'_, HashMap<RawFd, Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const NUMBER: RawFd = 7;

    /// The registration that the kernel has under the number.
    #[derive(Default)]
    struct Kernel(Mutex<Option<Token>>);

    impl Kernel {
        fn add(&self, token: Token) -> io::Result<()> {
            *self.0.lock().unwrap() = Some(token);
            Ok(())
        }

        fn remove(&self) {
            self.0.lock().unwrap().take();
        }
    }

    fn token(index: u32) -> Token {
        Token { index, generation: 1 }
    }

    /// An fd was closed while it was registered. Its number is registered for the next fd while the former registration
    /// goes: the next one stays in until it is removed itself.
    ///
    /// Planted: `add` without the lock; the claim not ended by the `add` of a socket; the lock released before
    /// `remove`.
    #[test]
    fn a_number_stays_registered_for_whom_it_belongs_to() {
        for custody in [Custody::Ours, Custody::Users] {
            loom::model(move || {
                let shared = Arc::new((Claims::default(), Kernel::default()));
                let (former, next) = (token(0), token(1));
                let (claims, kernel) = &*shared;
                claims.add(NUMBER, former, Custody::Users, || kernel.add(former)).unwrap();
                kernel.remove(); // the fd is closed
                let other = {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        let (claims, kernel) = &*shared;
                        claims.add(NUMBER, next, custody, || kernel.add(next)).unwrap();
                    })
                };
                claims.remove(NUMBER, former, Custody::Users, || kernel.remove());
                other.join().unwrap();
                assert_eq!(*kernel.0.lock().unwrap(), Some(next));
                claims.remove(NUMBER, next, custody, || kernel.remove());
                assert_eq!(*kernel.0.lock().unwrap(), None);
                assert!(claims.owners().is_empty());
            });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn token(index: u32) -> Token {
        Token { index, generation: 1 }
    }

    /// Returns `true` if the removal reaches the kernel.
    fn removes(claims: &Claims, number: RawFd, token: Token, custody: Custody) -> bool {
        let is_removed = Cell::new(false);
        claims.remove(number, token, custody, || is_removed.set(true));
        is_removed.get()
    }

    #[test]
    fn only_who_has_registered_a_number_last_removes_it() {
        let claims = Claims::default();
        for (custody, next) in [(Custody::Users, 2), (Custody::Ours, 4)] {
            let (former, next) = (token(next - 1), token(next));
            claims.add(7, former, Custody::Users, || Ok(())).unwrap();
            claims.add(7, next, custody, || Ok(())).unwrap();
            assert!(!removes(&claims, 7, former, Custody::Users));
            assert!(removes(&claims, 7, next, custody));
            assert!(!removes(&claims, 7, former, Custody::Users));
            assert!(claims.owners().is_empty());
        }
    }

    #[test]
    fn who_is_refused_takes_no_claim_away() {
        let claims = Claims::default();
        claims.add(7, token(1), Custody::Users, || Ok(())).unwrap();
        for custody in [Custody::Ours, Custody::Users] {
            assert!(claims.add(7, token(2), custody, || Err(io::ErrorKind::AlreadyExists.into())).is_err());
        }
        assert!(!removes(&claims, 7, token(2), Custody::Users));
        assert!(removes(&claims, 7, token(1), Custody::Users));
    }
}
