//! `Table`: from a token to its slot, so that a late event for a reused place finds no slot.
//!
//! Called by `reactor`, under its lock, which threads that deliver share. A place is reused with the next generation in
//! its token; the events of its former tenant carry the old one and are dropped.

use std::io;
use std::task::Waker;

use super::blocks::Blocks;
use super::cell::SlotLease;
use crate::ready::Ready;
use crate::slot::Waiters;
use crate::sys::{Event, Token};

#[derive(Debug, Default)]
pub(super) struct Table {
    places: Blocks,
    len: usize,
    shut: bool,
}

impl Table {
    /// How many slots have a token here.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes a place for a slot that starts out as `ready`.
    pub(super) fn insert(&mut self, ready: Ready) -> io::Result<(Token, SlotLease)> {
        self.check()?;
        self.len += 1;
        Ok(self.places.take(ready))
    }

    /// The socket leaves. Returns its last waiters (`poll_` methods, and futures that were forgotten); drop them after
    /// the lock is released.
    pub(super) fn remove(&mut self, token: Token) -> Option<Waiters> {
        let left = self.places.slot(token)?.clear_out();
        self.len -= 1;
        self.places.give_back(token);
        Some(left)
    }

    /// Hands the event to its slot; false if the slot is gone.
    pub(super) fn deliver(&self, event: Event, woken: &mut Vec<Waker>) -> bool {
        let slot = self.places.slot(event.token);
        if let Some(slot) = slot {
            slot.set(event.ready, woken);
        }
        slot.is_some()
    }

    /// Returns an error after `shut`.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.shut { Err(super::shut_down_error()) } else { Ok(()) }
    }

    /// Ends every wait, and refuses new slots.
    pub(super) fn shut(&mut self, woken: &mut Vec<Waker>) {
        self.shut = true;
        self.places.tenants().for_each(|slot| slot.set(Ready::SHUTDOWN, woken));
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashMap;
    use std::task::Context;

    use super::*;
    use crate::ready::Interest;
    use crate::slot::Slot;
    use crate::tests::rig::Task;

    const READABLE: Ready = Ready::READABLE;

    fn take(table: &mut Table) -> (Token, SlotLease) {
        table.insert(Ready::EMPTY).unwrap()
    }

    fn ready_of(lease: &SlotLease) -> Ready {
        lease.slot().seen().ready()
    }

    fn deliver(table: &Table, token: Token) -> bool {
        table.deliver(Event { token, ready: READABLE }, &mut Vec::new())
    }

    #[test]
    fn an_event_for_a_former_tenant_is_dropped() {
        let mut table = Table::default();
        let (old, _) = take(&mut table);
        assert!(table.remove(old).is_some());
        let (new, tenant) = take(&mut table);
        assert_eq!(old.index, new.index);

        assert!(!deliver(&table, old));
        assert_eq!(ready_of(&tenant), Ready::EMPTY);
        assert!(deliver(&table, new));
        assert_eq!(ready_of(&tenant), READABLE);
    }

    #[test]
    fn a_token_frees_its_place_once() {
        let mut table = Table::default();
        let (token, _) = take(&mut table);
        assert_eq!(table.len(), 1);
        assert!(table.remove(token).is_some());
        assert!(table.remove(token).is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_event_for_an_empty_or_unknown_place_is_dropped() {
        let mut table = Table::default();
        let (token, _) = take(&mut table);
        table.remove(token);
        let vacant = Token { generation: token.generation + 1, ..token };
        for index in [token.index, 9, 999] {
            assert!(!deliver(&table, Token { index, ..vacant }), "{index}");
            assert!(table.remove(Token { index, ..vacant }).is_none(), "{index}");
        }
    }

    #[test]
    fn a_shut_table_refuses_newcomers() {
        let mut table = Table::default();
        table.shut(&mut Vec::new());
        assert!(table.insert(Ready::EMPTY).unwrap_err().to_string().contains("has shut down"));
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn nothing_of_a_tenant_is_left_to_the_next_one() {
        let mut table = Table::default();
        let (token, lease) = take(&mut table);
        let (task, slot) = (Task::new(), lease.slot());
        deliver(&table, token);
        slot.clear(slot.seen(), READABLE);
        let waker = task.waker();
        let wait = |interest| slot.poll_ready(&mut Context::from_waker(&waker), interest, None);
        assert!(wait(Interest::READABLE).is_pending() && wait(Interest::WRITABLE).is_pending());
        deliver(&table, token);
        drop(table.remove(token));

        let (next, again) = table.insert(Ready::WRITABLE).unwrap();
        assert!(std::ptr::eq(again.slot(), slot));
        assert_eq!((ready_of(&again), slot.waiting()), (Ready::WRITABLE, 0));
        slot.clear(Slot::unregistered(), Ready::WRITABLE);
        assert_eq!(ready_of(&again), Ready::EMPTY, "no event has come yet");
        let before = task.wakes();
        deliver(&table, next);
        assert_eq!(task.wakes(), before);
    }

    /// Tenants come and go in an order that is as good as random: each token leads to its own slot, and to
    /// none once it is over.
    #[test]
    fn every_token_leads_to_its_slot_alone() {
        let mut table = Table::default();
        let (mut here, mut gone) = (HashMap::new(), Vec::new());
        let mut random = 1u32;
        for round in 0..4_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 28 < if round < 2_000 { 10 } else { 7 } {
                let (token, lease) = take(&mut table);
                assert!(here.insert((token.index, token.generation), (token, lease)).is_none());
            } else if let Some(key) = here.keys().min_by_key(|key| key.0.wrapping_mul(random | 1)).copied() {
                let (token, _) = here.remove(&key).unwrap();
                assert!(table.remove(token).is_some());
                gone.push(token);
            }
            assert_eq!(table.len(), here.len());
        }
        assert!(here.len() > 100 && gone.len() > 1_000);
        assert!(gone.iter().all(|token| !deliver(&table, *token)));
        for (token, lease) in here.values() {
            assert_eq!(ready_of(lease), Ready::EMPTY);
            assert!(deliver(&table, *token));
            assert_eq!(ready_of(lease), READABLE);
        }
    }
}
