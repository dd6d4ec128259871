//! The promises of a table to successive tenants of a place, under loom.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::primitives::{RwLock, RwLockWriteGuard};
use crate::ready::Interest;
use crate::slot::Slot;

fn lock(table: &RwLock<Table>) -> RwLockWriteGuard<'_, Table> {
    table.write().unwrap()
}

fn deliver(table: &RwLock<Table>, token: Token, ready: Ready) -> bool {
    table.read().unwrap().deliver(Event { token, ready }, &mut Vec::new())
}

/// A socket goes and the next one takes its place, while one driver has an event for the former, and another gets an
/// event for the next one at once. The next socket does not inherit the readiness of the former, and an operation from
/// before its registration does not clear its report.
///
/// Planted: the generation not compared in `Chunk::has`; no `reset` of the slot in `Chunk::take`.
#[test]
fn events_reach_their_own_socket_alone() {
    loom::model(|| {
        let table = Arc::new(RwLock::new(Table::default()));
        let old = lock(&table).insert(Ready::WRITABLE).unwrap().0;
        let late = {
            let table = table.clone();
            thread::spawn(move || deliver(&table, old, Ready::READABLE))
        };
        drop(lock(&table).remove(old));
        let (new, lease) = lock(&table).insert(Ready::EMPTY).unwrap();
        assert_eq!(new.index, old.index);
        let driver = {
            let table = table.clone();
            thread::spawn(move || deliver(&table, new, Ready::PRIORITY))
        };
        // The operation that came before the registration has found nothing.
        lease.slot().clear(Slot::unregistered(), Interest::PRIORITY.mask());
        late.join().unwrap();
        assert!(driver.join().unwrap());
        assert_eq!(lease.slot().seen().ready(), Ready::PRIORITY);
    });
}
