//! `Slab`: values under small numbers, added and removed in constant time, without an allocation once it is warm.
//!
//! Used by modules that keep wakers, children or tasks under a lock and must find one of them again: `cancel`, `group`
//! and `shared_join`. A number is reused after its value was removed; the callers remove each value once.
//!
//! Memory is that of the maximum number of simultaneous values. When the last value is removed, the memory beyond
//! [`KEPT`] places is freed.

use std::mem;

/// How many places an empty slab keeps.
const KEPT: usize = 64;

#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<SlabEntry<T>>,
    /// The first free place, or [`NONE`].
    free: u32,
    len: usize,
}

#[derive(Debug)]
enum SlabEntry<T> {
    Taken(T),
    /// With the next free place.
    Free(u32),
}

/// No place has this number.
pub const NONE: u32 = u32::MAX;

impl<T> Slab<T> {
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: NONE, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Keeps `value`, and returns its number.
    ///
    /// # Panics
    ///
    /// If there are 2³² - 1 values already.
    pub fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        match self.places.get_mut(self.free as usize) {
            Some(place) => {
                let SlabEntry::Free(next) = mem::replace(place, SlabEntry::Taken(value)) else {
                    unreachable!("the list has free places only")
                };
                mem::replace(&mut self.free, next)
            }
            None => {
                let key = u32::try_from(self.places.len()).ok().filter(|&key| key != NONE).expect("too many values");
                self.places.push(SlabEntry::Taken(value));
                key
            }
        }
    }

    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        match self.places.get_mut(key as usize) {
            Some(SlabEntry::Taken(value)) => Some(value),
            _ => None,
        }
    }

    /// Takes the value out, if there is one.
    pub fn remove(&mut self, key: u32) -> Option<T> {
        let place = self.places.get_mut(key as usize).filter(|place| matches!(place, SlabEntry::Taken(_)))?;
        let SlabEntry::Taken(value) = mem::replace(place, SlabEntry::Free(self.free)) else {
            unreachable!("just looked")
        };
        (self.free, self.len) = (key, self.len - 1);
        if self.len == 0 && self.places.capacity() > KEPT {
            self.places.clear();
            self.places.shrink_to(KEPT);
            self.free = NONE;
        }
        Some(value)
    }

    /// The values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.places).filter_map(|(key, place)| match place {
            SlabEntry::Taken(value) => Some((key, value)),
            SlabEntry::Free(_) => None,
        })
    }

    /// The values with their numbers, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(&mut self.places).filter_map(|(key, place)| match place {
            SlabEntry::Taken(value) => Some((key, value)),
            SlabEntry::Free(_) => None,
        })
    }

    /// Takes all values out.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        mem::replace(self, Self::new()).places.into_iter().filter_map(|place| match place {
            SlabEntry::Taken(value) => Some(value),
            SlabEntry::Free(_) => None,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_values_stay_where_they_are() {
        let mut slab = Slab::new();
        let keys: Vec<u32> = (0..5).map(|value| slab.insert(value)).collect();
        assert_eq!(slab.remove(keys[1]), Some(1));
        assert_eq!(slab.remove(keys[3]), Some(3));
        assert_eq!((slab.remove(keys[3]), slab.get_mut(keys[1])), (None, None));
        assert_eq!((slab.insert(30), slab.insert(10), slab.insert(50)), (keys[3], keys[1], 5));
        let values: Vec<_> = slab.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!(values, [(0, 0), (1, 10), (2, 2), (3, 30), (4, 4), (5, 50)]);
        assert_eq!(slab.take().collect::<Vec<_>>(), [0, 10, 2, 30, 4, 50]);
        assert_eq!((slab.len(), slab.insert(7)), (0, 0));
    }

    #[test]
    fn a_crowd_leaves_little_memory_behind() {
        let mut slab = Slab::new();
        let keys: Vec<u32> = (0..10_000).map(|value| slab.insert(value)).collect();
        assert!(keys.into_iter().all(|key| slab.remove(key).is_some()));
        assert!(slab.places.capacity() < 2 * KEPT, "{}", slab.places.capacity());
        assert_eq!((slab.insert(1), slab.insert(2)), (0, 1));
    }
}
