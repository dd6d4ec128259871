//! The data: a map from keys to values, and the keys that expire, in the order of their times.
//!
//! Owned by `actor`, shared by the tasks of `local`; used by `commands`. A key whose time has come is gone for all
//! clients at once; one task takes such keys out when the earliest is due, and a few with each batch, so that a busy
//! server doesn't keep them.
//!
//! Rejected: a timer per key (a task for each, and a wheel entry that moves with each `SET`); a heap from which nothing
//! is removed (grows with each new time of one key).

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;
use mini::time::Instant;

#[derive(Default)]
pub(crate) struct Store {
    entries: HashMap<Arc<[u8]>, Entry>,
    deadlines: BTreeSet<(Instant, Arc<[u8]>)>,
}

pub(crate) struct Entry {
    value: Arc<[u8]>,
    deadline: Option<Instant>,
}

impl Store {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_alive())
    }

    /// Sets the value and when it expires, whatever was there.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<Instant>) {
        match self.entries.entry_ref(key) {
            EntryRef::Occupied(mut slot) => {
                slot.get_mut().put(value);
                let before = std::mem::replace(&mut slot.get_mut().deadline, deadline);
                if before != deadline {
                    let key = slot.key().clone();
                    self.set_deadline(key, before, deadline);
                }
            }
            EntryRef::Vacant(slot) => {
                let key: Arc<[u8]> = key.into();
                if let Some(deadline) = deadline {
                    self.deadlines.insert((deadline, key.clone()));
                }
                slot.insert_with_key(key, Entry { value: value.into(), deadline });
            }
        }
    }

    /// Changes when the value expires, and says whether there is a value.
    pub(crate) fn expire(&mut self, key: &[u8], deadline: Instant) -> bool {
        let EntryRef::Occupied(mut slot) = self.entries.entry_ref(key) else { return false };
        if !slot.get().is_alive() {
            return false;
        }
        let before = slot.get_mut().deadline.replace(deadline);
        let key = slot.key().clone();
        self.set_deadline(key, before, Some(deadline));
        true
    }

    /// Takes a key out, and says whether it was there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        let was_alive = entry.is_alive();
        self.set_deadline(key, entry.deadline, None);
        was_alive
    }

    /// How many keys there are; those whose time has just come may be among them.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When the next key is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Takes keys out that are due, no more than `limit`.
    pub(crate) fn remove_due(&mut self, limit: usize) {
        if self.deadlines.is_empty() {
            return;
        }
        let now = Instant::now();
        for _ in 0..limit {
            let Some(first) = self.deadlines.first().filter(|&&(deadline, _)| deadline <= now) else { return };
            self.entries.remove(&first.1);
            self.deadlines.pop_first();
        }
    }

    fn set_deadline(&mut self, key: Arc<[u8]>, before: Option<Instant>, after: Option<Instant>) {
        if let Some(before) = before {
            self.deadlines.remove(&(before, key.clone()));
        }
        if let Some(after) = after {
            self.deadlines.insert((after, key));
        }
    }
}

impl Entry {
    pub(crate) fn value(&self) -> &Arc<[u8]> {
        &self.value
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn is_alive(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Puts a value into the memory of the one before, if that has the same length and no reply refers to it.
    fn put(&mut self, value: &[u8]) {
        match Arc::get_mut(&mut self.value) {
            Some(before) if before.len() == value.len() => before.copy_from_slice(value),
            _ => self.value = value.into(),
        }
    }
}
