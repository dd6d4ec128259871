//! A line of code in an atomic, or none: for tables that any thread may read.

#![allow(unsafe_code)]

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

pub(crate) struct AtomicLocation(AtomicPtr<Location<'static>>);

impl AtomicLocation {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn set(&self, location: Option<&'static Location<'static>>) {
        self.0.store(location.map_or(ptr::null(), ptr::from_ref).cast_mut(), Release);
    }

    pub(crate) fn get(&self) -> Option<&'static Location<'static>> {
        // SAFETY: null, or from a `&'static Location` in `set`. Test: `it_gives_back_what_was_set`.
        unsafe { self.0.load(Acquire).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_back_what_was_set() {
        let here = Location::caller();
        let location = AtomicLocation::none();
        for set in [None, Some(here), None] {
            location.set(set);
            assert_eq!(location.get(), set);
        }
    }
}
