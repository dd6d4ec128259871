//! `Change`: what happened to names, and when the disk gets it.
//!
//! Programs see a change at once. The disk gets the changes of a directory in their order: all of them with an fsync of
//! the directory, or the first few at a crash. A rename between two directories happens on the disk as a whole or not
//! at all, as with a journal. So the changes that the disk has are a prefix for each directory, and never half a
//! rename.

use std::collections::BTreeSet;
use std::ffi::OsString;

use mini_context::sim;

use super::node::Ino;
use super::state::State;

/// So many changes may wait; then the oldest reach the disk by themselves, as a journal commits now and then.
const MOST: usize = 4096;

/// One call's, which changes one or two names.
#[derive(Debug)]
pub(super) struct Change(pub(super) Vec<Entry>);

/// That a directory has a name for a node now, or no more.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) dir: Ino,
    pub(super) name: OsString,
    pub(super) node: Option<Ino>,
}

impl Entry {
    pub(super) fn new(dir: Ino, name: OsString, node: Ino) -> Self {
        Self { dir, name, node: Some(node) }
    }

    pub(super) fn gone(dir: Ino, name: OsString) -> Self {
        Self { dir, name, node: None }
    }
}

impl Change {
    pub(super) fn dirs(&self) -> impl Iterator<Item = Ino> {
        self.0.iter().map(|entry| entry.dir)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = Ino> {
        self.0.iter().filter_map(|entry| entry.node)
    }

    fn is_between_dirs(&self) -> bool {
        self.0.iter().any(|entry| entry.dir != self.0[0].dir)
    }
}

impl State {
    /// Changes names, for programs at once and for the disk later.
    pub(super) fn change(&mut self, entries: Vec<Entry>) {
        let change = Change(entries);
        for ino in change.dirs().chain(change.nodes()) {
            self.hold(ino);
        }
        for entry in &change.0 {
            self.show(entry);
        }
        self.unsynced.push_back(change);
        if self.unsynced.len() > MOST {
            self.sync_first_names(1);
        }
    }

    fn show(&mut self, entry: &Entry) {
        let Entry { dir, name, node } = entry;
        if let Some(ino) = *node {
            let node = self.node_mut(ino);
            (node.references, node.names) = (node.references + 1, node.names + 1);
            if let Some(moved) = node.as_dir_mut() {
                moved.parent = *dir;
            }
        }
        let holder = self.node_mut(*dir);
        holder.modified = sim::now();
        let seen = &mut holder.as_dir_mut().expect("it is a directory").seen;
        let before = match *node {
            Some(ino) => seen.insert(name.clone(), ino),
            None => seen.remove(name),
        };
        if let Some(ino) = before {
            self.node_mut(ino).names -= 1;
            self.release(ino);
        }
    }

    /// The disk gets the names that a directory has, as far as programs have changed them: its own name is in another
    /// directory.
    pub(super) fn sync_names(&mut self, dir: Ino) {
        // From the last change to the first, as a change draws in what came before it: in its other directory, and
        // what made or moved its directories, which would be lost together with what was moved there.
        let (mut dirs, mut needed) = (BTreeSet::from([dir]), BTreeSet::new());
        let mut is_synced = vec![false; self.unsynced.len()];
        for (change, is_synced) in self.unsynced.iter().zip(&mut is_synced).rev() {
            if change.dirs().any(|dir| dirs.contains(&dir)) || change.nodes().any(|node| needed.contains(&node)) {
                *is_synced = true;
                dirs.extend(change.dirs());
                if change.is_between_dirs() || change.nodes().any(|node| needed.contains(&node)) {
                    needed.extend(change.dirs());
                }
            }
        }
        let changes = std::mem::take(&mut self.unsynced);
        for (change, is_synced) in changes.into_iter().zip(is_synced) {
            if is_synced {
                self.write_names(change);
            } else {
                self.unsynced.push_back(change);
            }
        }
    }

    pub(super) fn sync_first_names(&mut self, count: usize) {
        let changes: Vec<Change> = self.unsynced.drain(..count).collect();
        for change in changes {
            self.write_names(change);
        }
    }

    /// The disk gets a change that has waited.
    pub(super) fn write_names(&mut self, change: Change) {
        for Entry { dir, name, node } in &change.0 {
            if let Some(ino) = *node {
                self.hold(ino);
            }
            let on_disk = &mut self.node_mut(*dir).as_dir_mut().expect("it is a directory").on_disk;
            let before = match *node {
                Some(ino) => on_disk.insert(name.clone(), ino),
                None => on_disk.remove(name),
            };
            if let Some(ino) = before {
                self.release(ino);
            }
        }
        self.forget_change(&change);
    }

    pub(super) fn forget_change(&mut self, change: &Change) {
        for ino in change.dirs().chain(change.nodes()) {
            self.release(ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use mini_context::sim::Random;

    use super::super::node::{ROOT, What};
    use super::super::open::Wanted;
    use super::super::walk::Last;
    use super::*;

    /// Who refers to each node, counted anew: all, and names that are seen.
    fn count(state: &State) -> BTreeMap<Ino, (u32, u32)> {
        let mut counts = BTreeMap::from([(ROOT, (2, 1))]);
        let mut refer = |ino, names| {
            let count = counts.entry(ino).or_insert((0, 0));
            *count = (count.0 + 1, count.1 + names);
        };
        for (&ino, node) in &state.nodes {
            (0..node.opens).for_each(|_| refer(ino, 0));
            if let What::Dir(dir) = &node.what {
                dir.seen.values().for_each(|&ino| refer(ino, 1));
                dir.on_disk.values().for_each(|&ino| refer(ino, 0));
            }
        }
        for change in &state.unsynced {
            change.dirs().chain(change.nodes()).for_each(|ino| refer(ino, 0));
        }
        counts
    }

    fn path(random: &mut Random) -> PathBuf {
        let name = |random: &mut Random| ["a", "b", "c"][random.below(3) as usize];
        let depth = 1 + random.below(3);
        (0..depth).fold(PathBuf::from("/"), |path, _| path.join(name(random)))
    }

    #[test]
    fn a_node_is_there_as_long_as_somebody_refers_to_it() {
        for seed in 0..100 {
            let (mut state, mut random) = (State::new(seed, 0), Random::new(seed, 0));
            let wanted = Wanted { writes: true, creates: true, ..Wanted::default() };
            for step in 0..200 {
                let (one, other) = (path(&mut random), path(&mut random));
                match random.below(24) {
                    0..=4 => drop(state.make_dir(&one, 0o700)),
                    5..=8 => drop(state.open(&one, &wanted)),
                    9..=12 => drop(state.rename(&one, &other)),
                    13 | 14 => drop(state.remove_file(&one)),
                    15 | 16 => drop(state.remove_dir(&one)),
                    17 => drop(state.add_name(&one, &other)),
                    18 => drop(state.remove_tree(&one)),
                    19..=21 => match state.look_up(&one, Last::Follow) {
                        Ok(dir) if state.node(dir).is_dir() => state.sync_names(dir),
                        _ => {}
                    },
                    22 => state.sync_first_names(state.unsynced.len() / 2),
                    _ => state.crash(),
                }
                let nodes = state.nodes.iter().map(|(&ino, node)| (ino, (node.references, node.names)));
                assert_eq!(nodes.collect::<BTreeMap<_, _>>(), count(&state), "seed {seed}, step {step}");
            }
        }
    }
}
