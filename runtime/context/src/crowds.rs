//! Channels that hold very many messages, for dumps. No task waits for them, so no note leads there.
//!
//! A channel registers each time it has grown by some thousands, and unregisters when it is empty or gone. As in
//! `holders.rs` the table has a fixed number of places, and two channels may have the same one.
//!
//! Rejected: a list of all channels (a lock for each that is made, and most hold three messages).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::holders::{Holder, HolderSlot, at};

const PLACES: usize = 64;

static TABLE: [HolderSlot; PLACES] = [const { HolderSlot::new() }; PLACES];

/// Notes a channel at the address `key`: its number is that of its messages, its location where it was made, its task
/// the last one to have waited for a message.
///
/// # Examples
///
/// ```
/// use mini_context::{Holder, crowds, forget_crowd, note_crowd};
///
/// let channel = 7;
/// let key = std::ptr::from_ref(&channel).addr() as u64;
/// let crowd = Holder { task: 5, location: Some(std::panic::Location::caller()), number: 4096 };
/// note_crowd(key, crowd);
/// assert_eq!(crowds(), [crowd]);
/// forget_crowd(key);
/// assert!(crowds().is_empty());
/// ```
pub fn note_crowd(key: u64, crowd: Holder) {
    at(&TABLE, key).note(key, crowd);
}

/// Forgets the channel at the address `key`, which is empty or gone.
///
/// # Examples
///
/// See [`note_crowd`].
pub fn forget_crowd(key: u64) {
    let place = at(&TABLE, key);
    if place.key.load(Relaxed) == key {
        place.key.store(0, Release);
    }
}

/// Returns the channels that were noted, the largest first.
///
/// # Examples
///
/// See [`note_crowd`].
#[must_use]
pub fn crowds() -> Vec<Holder> {
    let keys = TABLE.iter().map(|place| (place, place.key.load(Acquire))).filter(|(_, key)| *key != 0);
    let mut crowds: Vec<Holder> = Vec::new();
    for crowd in keys.filter_map(|(place, key)| place.get(key)) {
        let at = crowds.partition_point(|larger| larger.number >= crowd.number);
        crowds.insert(at, crowd);
    }
    crowds
}
