//! What a table promises to successive tenants of a place, under loom.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::ready::Interest;
use crate::sync::{Mutex, MutexGuard};

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap()
}

/// A socket goes and the next one comes into its place, while one driver has an event for the former, and another hears of the
/// next one as soon as it is there: what the former was ready for is not left to the next one, and the next one's report is
/// not taken back by an operation that came before it.
///
/// Planted: the generation not compared in `Chunk::has`; no `reset` of the slot in `Chunk::take`.
#[test]
fn events_reach_their_own_tenant_alone() {
    loom::model(|| {
        let table = Arc::new(Mutex::new(Table::default()));
        let old = lock(&table).insert(Ready::WRITABLE).unwrap().0;
        let late = {
            let table = table.clone();
            thread::spawn(move || {
                lock(&table).deliver(Event { token: old, ready: Ready::READABLE }, &mut Vec::new());
            })
        };
        drop(lock(&table).remove(old));
        let (new, lease) = lock(&table).insert(Ready::EMPTY).unwrap();
        assert_eq!(new.index, old.index);
        let driver = {
            let table = table.clone();
            thread::spawn(move || lock(&table).deliver(Event { token: new, ready: Ready::PRIORITY }, &mut Vec::new()))
        };
        // The operation that came before the registration has found nothing.
        lease.slot().clear(Slot::unregistered(), Interest::PRIORITY.mask());
        late.join().unwrap();
        assert!(driver.join().unwrap());
        assert_eq!(lease.slot().seen().ready(), Ready::PRIORITY);
    });
}
