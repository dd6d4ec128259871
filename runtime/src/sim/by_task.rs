//! `ByTask`: a map by the ids of tasks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Looked at in every step. The ids are counted up, so they need no hash that nobody can foresee.
pub(super) type ByTask<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// The golden ratio, in 64 bits: multiples of it are far apart (Knuth, The Art of Computer Programming 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
