//! Delivers the reports of a simulated network in the same way as those of the kernel.

use super::{Reactor, wake_all};
use crate::sys::Event;

impl Reactor {
    /// Wakes those that wait for what is reported.
    pub(crate) fn deliver(&self, reports: Vec<Event>) {
        let mut woken = Vec::new();
        {
            let table = self.table();
            for event in reports {
                table.deliver(event, &mut woken);
            }
        }
        wake_all(&mut woken);
    }
}
