//! Large futures and jobs, which are boxed by the public function that takes them.
//!
//! A build without optimisations copies a value into the frame of each function that passes it on. On the way into a
//! task these were up to 22 copies, so a future of 136 KiB overflowed a stack of 2 MiB; a group's task took 6 copies
//! with optimisations too. A box is one copy, and the functions behind it pass on a pointer.
//!
//! Rejected: writing the future into its task in fewer steps (each generic function on the way is a copy, so four would
//! be left where a box leaves one).

use std::marker::PhantomData;

/// The largest size that is passed on by value.
const LIMIT: usize = if cfg!(debug_assertions) { 2 << 10 } else { 16 << 10 };

/// Tells whether a `T` is large.
pub(crate) struct Large<T>(PhantomData<T>);

impl<T> Large<T> {
    /// Whether a `T` is boxed. A constant, so that the branch that is not taken has no place in the frame.
    pub(crate) const IS_BOXED: bool = size_of::<T>() > LIMIT;
}

/// Evaluates an expression with a variable as it is or, if its type is large, boxed by `Box::pin` or `Box::new`.
macro_rules! boxed {
    ($box:path, $value:ident: $type:ty => $then:expr) => {
        if $crate::task::large::Large::<$type>::IS_BOXED {
            let $value = $box($value);
            $then
        } else {
            $then
        }
    };
}

pub(crate) use boxed;
