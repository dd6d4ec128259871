//! What the guards of the locks are alike in.

#![allow(unsafe_code)]

/// A guard lends the value, or the part of it, at `$pointer`.
macro_rules! guard {
    (read [$($params:tt)*] $guard:ty, $target:ident, |$this:ident| $pointer:expr) => {
        impl<$($params)*> Deref for $guard {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                let $this = self;
                // SAFETY: the pointer is to the value or to a part of it, and this has a permit until it is dropped, so
                // nobody writes but through it. The value does not move meanwhile, as its lock is borrowed or shared.
                // Tests: `tests/mutex.rs`, `tests/rwlock.rs`, models `mutex_is_held_by_one` and
                // `rwlock_is_held_by_one_writer_or_by_readers`.
                unsafe { &*$pointer }
            }
        }

        impl<$($params)*> fmt::Debug for $guard where $target: fmt::Debug {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($params)*> fmt::Display for $guard where $target: fmt::Display {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&**self, f)
            }
        }
    };
    (write [$($params:tt)*] $guard:ty, $target:ident, |$this:ident| $pointer:expr) => {
        guard!(read [$($params)*] $guard, $target, |$this| $pointer);

        impl<$($params)*> DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut $target {
                let $this = self;
                // SAFETY: as in `deref`; this has all permits, and is borrowed for writing.
                unsafe { &mut *$pointer }
            }
        }
    };
}

/// Two methods that turn a guard of `$target` into `$mapped`, a guard of its part `$part`.
macro_rules! map {
    (read $($rest:tt)*) => {
        map!(@ [] from_ref $($rest)*);
    };
    (write $($rest:tt)*) => {
        map!(@ [mut] from_mut $($rest)*);
    };
    (
        @ [$($mut:tt)?] $from:ident
        $(#[$doc:meta])*
        $map:ident, $try_map:ident, $target:ident => $part:ident, $mapped:ty, |$this:ident, $pointer:ident| $new:expr
    ) => {
        $(#[$doc])*
        pub fn $map<$part: ?Sized>(
            $($mut)? this: Self,
            part: impl FnOnce(&$($mut)? $target) -> &$($mut)? $part,
        ) -> $mapped {
            let $pointer = std::ptr::$from(part(&$($mut)? this));
            let $this = this;
            $new
        }

        #[doc = concat!("Maps like [`", stringify!($map), "`](Self::", stringify!($map), "), if there is such a part.")]
        ///
        /// # Errors
        ///
        /// Returns the guard as it was if there is no such part.
        pub fn $try_map<$part: ?Sized>(
            $($mut)? this: Self,
            part: impl FnOnce(&$($mut)? $target) -> Option<&$($mut)? $part>,
        ) -> Result<$mapped, Self> {
            let Some($pointer) = part(&$($mut)? this).map(std::ptr::$from) else { return Err(this) };
            let $this = this;
            Ok($new)
        }
    };
}

pub(crate) use {guard, map};
