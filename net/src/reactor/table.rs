//! `Table`: from a token to its slot, so that a late event for a reused place finds nobody.
//!
//! Called by `reactor`, under its lock. A place is reused, but with the next generation in its token; the events of its
//! former tenant carry the old one and are dropped.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use crate::ready::Ready;
use crate::slot::Slot;
use crate::sys::{Event, Token};

#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
    shut: bool,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    slot: Option<Arc<Slot>>,
}

impl Table {
    /// How many places are taken.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, slot: Arc<Slot>) -> io::Result<Token> {
        if self.shut {
            return Err(super::shut_down_error());
        }
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.slot = Some(slot);
            return Ok(Token { index, generation: place.generation });
        }
        let index = u32::try_from(self.places.len()).expect("there are fewer fds than 2^32");
        self.places.push(Place { generation: 0, slot: Some(slot) });
        Ok(Token { index, generation: 0 })
    }

    /// Returns the slot, for the caller to drop once the lock is gone: keyless wakers may be left in it.
    pub(super) fn remove(&mut self, token: Token) -> Option<Arc<Slot>> {
        let place = self.places.get_mut(token.index as usize)?;
        if place.generation != token.generation {
            return None;
        }
        let slot = place.slot.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(token.index);
        Some(slot)
    }

    /// Hands the event to its slot; false if that is gone.
    pub(super) fn deliver(&self, event: Event, woken: &mut Vec<Waker>) -> bool {
        let slot = match self.places.get(event.token.index as usize) {
            Some(place) if place.generation == event.token.generation => &place.slot,
            _ => return false,
        };
        if let Some(slot) = slot {
            slot.set(event.ready, woken);
        }
        slot.is_some()
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut
    }

    /// Ends every wait, and refuses newcomers.
    pub(super) fn shut(&mut self, woken: &mut Vec<Waker>) {
        self.shut = true;
        for slot in self.places.iter().filter_map(|place| place.slot.as_ref()) {
            slot.set(Ready::SHUTDOWN, woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Arc<Slot> {
        Arc::new(Slot::new(Ready::EMPTY))
    }

    #[test]
    fn an_event_for_a_former_tenant_is_dropped() {
        let (mut table, mut woken) = (Table::default(), Vec::new());
        let old = table.insert(slot()).unwrap();
        assert!(table.remove(old).is_some());
        let tenant = slot();
        let new = table.insert(Arc::clone(&tenant)).unwrap();
        assert_eq!(old.index, new.index);

        let ready = Ready::READABLE;
        assert!(!table.deliver(Event { token: old, ready }, &mut woken));
        assert_eq!(tenant.seen().ready(), Ready::EMPTY);
        assert!(table.deliver(Event { token: new, ready }, &mut woken));
        assert_eq!(tenant.seen().ready(), Ready::READABLE);
    }

    #[test]
    fn a_token_frees_its_place_once() {
        let mut table = Table::default();
        let token = table.insert(slot()).unwrap();
        assert_eq!(table.len(), 1);
        assert!(table.remove(token).is_some());
        assert!(table.remove(token).is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_event_for_an_empty_or_unknown_place_is_dropped() {
        let (mut table, mut woken) = (Table::default(), Vec::new());
        let token = table.insert(slot()).unwrap();
        table.remove(token);
        let vacant = Token { generation: 1, ..token };
        let unknown = Token { index: 9, generation: 0 };
        for token in [token, vacant, unknown] {
            assert!(!table.deliver(Event { token, ready: Ready::READABLE }, &mut woken));
        }
    }

    #[test]
    fn a_shut_table_refuses_newcomers() {
        let (mut table, mut woken) = (Table::default(), Vec::new());
        table.shut(&mut woken);
        let error = table.insert(slot()).unwrap_err();
        assert!(error.to_string().contains("has shut down"));
        assert_eq!(table.len(), 0);
    }
}
