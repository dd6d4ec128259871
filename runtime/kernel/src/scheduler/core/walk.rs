//! The walk over the tasks of a core, from any thread.

use super::Core;
use crate::primitives::lock;
use crate::task::owned::Seats;
use crate::task::{Place, Task};

/// So many seats of a list are visited at once: few enough that nobody notices the wait for the list.
const AT_ONCE: usize = 64;

impl Core {
    /// Calls `f` with each task that belongs here, as [`each_part`](Self::each_part) does.
    pub fn each_task(&self, mut f: impl FnMut(&Task), make_room: impl FnMut(usize)) -> bool {
        let all = |part: &Seats<'_, Task>| {
            part.each(&mut f);
            true
        };
        self.each_part(all, make_room)
    }

    /// Calls `f` with the tasks that belong here, one part of a list after the other, from any thread; says whether it
    /// could look at the owned ones. The tasks may not come and go during a call of `f`, which is short, allocates
    /// nothing, runs no user code, and says whether to go on; during one of `make_room`, which is told for how many
    /// tasks, they may.
    pub fn each_part(&self, mut f: impl FnMut(&Seats<'_, Task>) -> bool, mut make_room: impl FnMut(usize)) -> bool {
        let mut is_end = |part: &Seats<'_, Task>| !f(part) || part.is_empty();
        let is_owner = self.is_held();
        let visit = if is_owner { None } else { self.owned_tasks.visit() };
        let can_look = is_owner || visit.is_some();
        for from in (0..).step_by(AT_ONCE).take_while(|_| can_look) {
            make_room(AT_ONCE);
            let is_last = match &visit {
                Some(visit) => visit.part(from, AT_ONCE, &mut is_end),
                None => self.owned_tasks().part(from, AT_ONCE, &mut is_end),
            };
            if is_last {
                break;
            }
        }
        drop(visit);
        for from in (0..).step_by(AT_ONCE) {
            make_room(AT_ONCE);
            if lock(&self.shared_tasks).part(from, AT_ONCE, &mut is_end) {
                break;
            }
        }
        can_look
    }

    /// Calls `f` with the tasks in these places that are still there, and with the number of the place among them, as
    /// [`each_task`](Self::each_task) does.
    pub fn each_task_in(&self, places: &[Place], mut f: impl FnMut(usize, &Task)) {
        let (shared, owned): (Vec<_>, Vec<_>) = places.iter().enumerate().partition(|(_, place)| place.is_shared());
        if !owned.is_empty()
            && let Some(visit) = self.owned_tasks.visit()
        {
            for (at, place) in owned {
                visit.part(place.seat(), 1, |part| part.each(|task| f(at, task)));
            }
        }
        for (at, place) in shared {
            lock(&self.shared_tasks).part(place.seat(), 1, |part| part.each(|task| f(at, task)));
        }
    }

    /// How many new tasks wait in the inbox, where [`each_task`](Self::each_task) does not see them.
    pub fn in_inbox(&self) -> usize {
        self.inbox.len()
    }
}
