//! `Table`: from a token to its slot, so that a late event for a reused place finds no slot.
//!
//! Called by `reactor`, under its lock, which threads that deliver share. A place is reused with the next generation in
//! its token; the events of its former tenant carry the old one and are dropped. Slots live in the table's own places
//! (`blocks`), except those of sockets from a reactor that has shut down: these *guests* stay in its memory, and have
//! an entry here.

use std::io;
use std::task::Waker;

use super::blocks::{BEYOND as GUEST, Blocks};
use super::place::Lease;
use crate::ready::Ready;
use crate::slot::{Slot, Waiters};
use crate::sys::{Event, Token};

#[derive(Debug, Default)]
pub(super) struct Table {
    own: Blocks,
    /// Their tokens have the bit `GUEST` in the index.
    guests: Guests,
    len: usize,
    shut: bool,
}

/// Slots in the memory of other tables.
#[derive(Debug, Default)]
struct Guests {
    entries: Vec<Guest>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Guest {
    generation: u32,
    lease: Option<Lease>,
}

impl Table {
    /// How many slots have a token here.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes a place for a slot that starts out as `ready`.
    pub(super) fn insert(&mut self, ready: Ready) -> io::Result<(Token, Lease)> {
        self.check_open()?;
        self.len += 1;
        Ok(self.own.take(ready))
    }

    /// Adds an entry for a slot in the memory of another table.
    pub(super) fn insert_guest(&mut self, lease: Lease) -> io::Result<Token> {
        self.check_open()?;
        self.len += 1;
        Ok(self.guests.insert(lease))
    }

    /// The socket leaves. Returns its last waiters (`poll_` methods, and futures that were forgotten); drop them after
    /// the lock is released.
    pub(super) fn remove(&mut self, token: Token) -> Option<Waiters> {
        let left = self.slot(token)?.clear_out();
        self.leave(token);
        if token.index & GUEST == 0 {
            self.own.give_back(token);
        }
        Some(left)
    }

    /// The slot becomes another table's guest, or is no longer this one's. A place of this table stays taken: it is
    /// still the slot's memory, and a table that shuts down needs none.
    pub(super) fn leave(&mut self, token: Token) {
        if self.slot(token).is_none() {
            return;
        }
        self.len -= 1;
        match token.index & GUEST {
            0 => self.own.end(token),
            _ => self.guests.remove(token),
        }
    }

    /// Hands the event to its slot; false if the slot is gone.
    pub(super) fn deliver(&self, event: Event, woken: &mut Vec<Waker>) -> bool {
        let slot = self.slot(event.token);
        if let Some(slot) = slot {
            slot.set(event.ready, woken);
        }
        slot.is_some()
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut
    }

    /// Ends every wait, and refuses new slots.
    pub(super) fn shut(&mut self, woken: &mut Vec<Waker>) {
        self.shut = true;
        let guests = self.guests.entries.iter().filter_map(|guest| guest.lease.as_ref()).map(Lease::slot);
        for slot in self.own.tenants().chain(guests) {
            slot.set(Ready::SHUTDOWN, woken);
        }
    }

    fn check_open(&self) -> io::Result<()> {
        if self.shut { Err(super::shut_down_error()) } else { Ok(()) }
    }

    fn slot(&self, token: Token) -> Option<&Slot> {
        match token.index & GUEST {
            0 => self.own.slot(token),
            _ => self.guests.get(token).map(Lease::slot),
        }
    }
}

impl Guests {
    fn insert(&mut self, lease: Lease) -> Token {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Guest::default());
            let index = u32::try_from(self.entries.len() - 1).ok();
            index.filter(|index| *index < GUEST - 1).expect("there are fewer fds than 2^31") // the last is the bell's
        });
        let guest = &mut self.entries[index as usize];
        guest.lease = Some(lease);
        Token { index: index | GUEST, generation: guest.generation }
    }

    fn get(&self, token: Token) -> Option<&Lease> {
        let guest = self.entries.get((token.index & !GUEST) as usize)?;
        guest.lease.as_ref().filter(|_| guest.generation == token.generation)
    }

    fn remove(&mut self, token: Token) {
        let index = token.index & !GUEST;
        let guest = &mut self.entries[index as usize];
        guest.lease = None;
        guest.generation = guest.generation.wrapping_add(1);
        self.free.push(index);
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
    use crate::tests::rig::Task;

    const READABLE: Ready = Ready::READABLE;

    fn take(table: &mut Table) -> (Token, Lease) {
        table.insert(Ready::EMPTY).unwrap()
    }

    fn ready_of(lease: &Lease) -> Ready {
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
        let before = table.len();
        table.leave(token);
        assert_eq!(table.len(), before);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_event_for_an_empty_or_unknown_place_is_dropped() {
        let mut table = Table::default();
        let (token, _) = take(&mut table);
        table.remove(token);
        let vacant = Token { generation: token.generation + 1, ..token };
        for index in [token.index, 9, 999, GUEST, GUEST | 9] {
            assert!(!deliver(&table, Token { index, ..vacant }), "{index}");
            assert!(table.remove(Token { index, ..vacant }).is_none(), "{index}");
        }
    }

    #[test]
    fn a_shut_table_refuses_newcomers() {
        let (mut table, mut woken) = (Table::default(), Vec::new());
        let (_, lease) = take(&mut Table::default());
        table.shut(&mut woken);
        for refused in [table.insert(Ready::EMPTY).map(drop), table.insert_guest(lease).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("has shut down"));
        }
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

    #[test]
    fn a_guest_keeps_its_slot_and_outlives_its_first_table() {
        let (mut first, mut second) = (Table::default(), Table::default());
        let (token, lease) = take(&mut first);
        let waker = Task::new().waker();
        let polled = lease.slot().poll_ready(&mut Context::from_waker(&waker), Interest::WRITABLE, None);
        assert!(polled.is_pending());

        let guest = second.insert_guest(lease.clone()).unwrap();
        first.leave(token);
        assert_eq!((first.len(), second.len()), (0, 1));
        assert!(!deliver(&first, token));
        let (next, _) = take(&mut first);
        assert_ne!(next.index, token.index, "its place is not free");
        drop(first);
        assert!(deliver(&second, guest));
        assert_eq!((ready_of(&lease), lease.slot().waiting()), (READABLE, 1));

        second.shut(&mut Vec::new());
        assert!(ready_of(&lease).is_shut_down());
        assert!(second.remove(guest).is_some());
        assert_eq!((second.len(), lease.slot().waiting()), (0, 0));
        assert!(!deliver(&second, guest));
    }

    /// Tenants and guests come and go in an order that is as good as random: each token leads to its own slot, and to
    /// none once it is over.
    #[test]
    fn every_token_leads_to_its_slot_alone() {
        let (mut table, mut other) = (Table::default(), Table::default());
        let (mut here, mut gone) = (HashMap::new(), Vec::new());
        let mut random = 1u32;
        for round in 0..4_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 28 < if round < 2_000 { 10 } else { 7 } {
                let is_guest = random >> 20 & 3 == 0;
                let (token, lease) = match is_guest {
                    true => {
                        other.insert(Ready::EMPTY).map(|(_, lease)| (table.insert_guest(lease.clone()).unwrap(), lease))
                    }
                    false => table.insert(Ready::EMPTY),
                }
                .unwrap();
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
