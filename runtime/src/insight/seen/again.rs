//! The second check of what seems wrong: a walk reads one task after the other, while the tasks run.

use std::collections::HashSet;
use std::mem;

use mini_kernel::scheduler::core::Core;
use mini_kernel::task::{LastWait, Place, Sight, Standing, Task};

use super::{CHANGED, Seen, SeenTask};
use crate::insight::circles::{circles, strong_target};

impl Seen {
    /// Looks a second time at the tasks that seem to wait in a circle, if a lock is in it; `mains` are what main tasks
    /// wait for. A lock that goes from one task to the next while the walk goes on looks like a circle, if each of
    /// those that wait is seen with another holder.
    ///
    /// A task that is seen twice in the same wait has not run in between. So if all of a circle are, there was a moment
    /// at which all of them waited, and each for what the next one had. Tasks that are not are said to go on.
    pub(in crate::insight) fn look_again_at_circles<'a>(
        &mut self,
        cores: impl Iterator<Item = &'a Core>,
        mains: impl Iterator<Item = (u64, LastWait)>,
    ) {
        if self.holders.is_empty() {
            return;
        }
        let mains: Vec<(u64, LastWait)> = mains.collect();
        if !self.has_holder_that_waits(&mains) {
            return; // as where very many wait for one
        }
        let waits = self.tasks.iter().filter_map(|task| Some((task.sight.id.get(), task.waits()?)));
        let circles: HashSet<u64> = circles(waits.chain(mains)).into_iter().flatten().collect();
        let is_in_one = |(task, _): &(&SeenTask, u32)| circles.contains(&task.sight.id.get());
        let in_circles: Vec<u32> = self.tasks.iter().zip(0..).filter(is_in_one).map(|(_, at)| at).collect();
        let mut again = HashSet::with_capacity(in_circles.len());
        self.look_again(cores, &in_circles, |at, sight, task| {
            let mut now = task.sight();
            let _holder = task.holder(&mut now);
            if now.polls == sight.polls && now.standing == Standing::Waits && now.wait.is_same(sight.wait) {
                again.insert(at);
            }
        });
        for at in in_circles.into_iter().filter(|at| !again.contains(at)) {
            let task = &mut self.tasks[at as usize];
            task.sight.standing = Standing::Ready;
            task.unchanged_since = CHANGED;
        }
    }

    /// Whether one of those for whose locks others wait waits for a task itself.
    fn has_holder_that_waits(&mut self, mains: &[(u64, LastWait)]) -> bool {
        let mut holders: Vec<(u64, u32)> = mem::take(&mut self.holders).into_iter().zip(std::iter::repeat(0)).collect();
        holders.sort(); // as pairs, like what else is sorted for a dump (`order.rs`)
        let is_holder = |id: u64| holders.binary_search(&(id, 0)).is_ok();
        let task_waits = |task: &SeenTask| {
            let id = task.sight.id.get(); // first: as a rule it is none
            is_holder(id) && task.waits().is_some_and(|wait| strong_target(id, wait).is_some())
        };
        self.tasks.iter().any(task_waits)
            || mains.iter().any(|&(id, wait)| is_holder(id) && strong_target(id, wait).is_some())
    }

    /// Calls `f` with those of the tasks at `places`, which are in order, that have not ended.
    fn look_again<'a>(
        &self,
        cores: impl Iterator<Item = &'a Core>,
        places: &[u32],
        mut f: impl FnMut(u32, &Sight, &Task),
    ) {
        let mut rest = places;
        for core in cores {
            let end = self.range(core.index()).end as u32;
            let part = rest.split_off(..rest.partition_point(|&at| at < end)).unwrap_or_default();
            let sight = |at: u32| &self.tasks[at as usize].sight;
            let places: Vec<Place> = part.iter().map(|&at| sight(at).place).collect();
            core.each_task_in(&places, |number, task| {
                let at = part[number];
                if task.id() == sight(at).id {
                    f(at, sight(at), task);
                }
            });
        }
    }
}
