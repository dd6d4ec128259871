//! The disk of a host after a crash: the synced data, and the first part of the rest, drawn for each file and each
//! directory.
//!
//! Each of these losses is a fault with a number, so that a run can be repeated in which only the others happen.

use std::collections::{BTreeMap, BTreeSet};

use mini_context::sim;

use super::changes::Change;
use super::node::{Ino, ROOT};
use super::state::State;

impl State {
    /// Loses what was not synced, or a part of it. Files that are open are closed.
    pub(super) fn crash(&mut self) {
        self.crashes += 1;
        let writes = self.draw_writes();
        let names = self.draw_names();
        for (ino, kept) in writes {
            self.node_mut(ino).as_file_mut().expect("it has writes").sync_only(kept);
        }
        self.keep_names(names);
        self.show_disk();
    }

    /// How many writes of each file are kept.
    fn draw_writes(&mut self) -> Vec<(Ino, usize)> {
        let files = self.nodes.iter().filter_map(|(&ino, node)| Some((ino, node.as_file()?.unsynced())));
        let files: Vec<(Ino, usize)> = files.filter(|&(_, unsynced)| unsynced > 0).collect();
        files.into_iter().map(|(ino, unsynced)| (ino, self.draw_kept(unsynced, "writes to", ino))).collect()
    }

    /// How many changes of names of each directory are kept, but for those that others drag along.
    fn draw_names(&mut self) -> BTreeMap<Ino, usize> {
        let mut counts = BTreeMap::new();
        for change in &self.unsynced {
            for dir in change.dirs().collect::<BTreeSet<_>>() {
                *counts.entry(dir).or_insert(0) += 1;
            }
        }
        counts.into_iter().map(|(dir, unsynced)| (dir, self.draw_kept(unsynced, "changes of names in", dir))).collect()
    }

    /// How many of `unsynced` changes are kept.
    fn draw_kept(&mut self, unsynced: usize, what: &str, ino: Ino) -> usize {
        let kept = self.random.below(unsynced as u64 + 1) as usize;
        let text = || {
            let (title, path, lost) = (self.title(), self.path_of(ino), unsynced - kept);
            format!("{title}: the last {lost} of {unsynced} unsynced {what} `{path}` lost in a crash")
        };
        if kept < unsynced && sim::inject(text) { kept } else { unsynced }
    }

    /// Of the changes of each directory the disk has so many. A change that is lost drags along what came after it in
    /// its directories, and in a directory that it would have made or moved.
    fn keep_names(&mut self, mut left: BTreeMap<Ino, usize>) {
        let changes = std::mem::take(&mut self.unsynced);
        for change in changes {
            let dirs: BTreeSet<Ino> = change.dirs().collect();
            if dirs.iter().all(|dir| left[dir] > 0) {
                dirs.iter().for_each(|dir| *left.get_mut(dir).expect("just seen") -= 1);
                self.write_names(change);
            } else {
                self.lose(&change, &mut left);
            }
        }
    }

    fn lose(&mut self, change: &Change, left: &mut BTreeMap<Ino, usize>) {
        for ino in change.dirs().chain(change.nodes()) {
            left.insert(ino, 0);
        }
        self.forget_change(change);
    }

    /// Programs see what the disk has; what no name leads to is gone.
    fn show_disk(&mut self) {
        for node in self.nodes.values_mut() {
            (node.references, node.opens, node.names) = (0, 0, 0);
            if let Some(file) = node.as_file_mut() {
                file.forget_unsynced();
            }
        }
        let mut found = vec![(ROOT, ROOT)];
        while let Some((ino, parent)) = found.pop() {
            let node = self.node_mut(ino);
            (node.references, node.names) = (node.references + 2, node.names + 1); // seen and on disk
            if let Some(dir) = node.as_dir_mut() {
                dir.parent = parent;
                dir.seen.clone_from(&dir.on_disk);
                found.extend(dir.on_disk.values().map(|&entry| (entry, ino)));
            }
        }
        let Self { nodes, stand_ins, .. } = self;
        nodes.retain(|&ino, node| {
            let is_found = node.references > 0;
            if !is_found {
                stand_ins.remove(ino);
            }
            is_found
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mini_context::sim::{Faults, enter, leave};

    use super::super::open::Wanted;
    use super::super::{Disk, begin, end, here};

    /// Two writes to one file, none of them synced, and a crash under `seed`; returns what the file has.
    fn lose(disk: &Disk) -> String {
        let (path, wanted) = (Path::new("/tmp/file"), Wanted { reads: true, writes: true, ..Wanted::default() });
        let file = disk.open(path, &Wanted { creates: true, ..wanted }).unwrap();
        disk.sync();
        file.write(b"one ").unwrap();
        file.write(b"two").unwrap();
        disk.open(Path::new("/other"), &Wanted { creates: true, ..wanted }).unwrap();
        disk.crash();
        let mut bytes = [0; 10];
        let read = disk.open(path, &wanted).unwrap().read(&mut bytes).unwrap();
        str::from_utf8(&bytes[..read]).unwrap().to_owned()
    }

    #[test]
    fn each_loss_is_a_fault_that_can_be_left_out() {
        let run = |seed, faults| {
            enter(faults);
            mini_net::sim::enter(seed);
            begin(seed);
            let disk = here().unwrap();
            let left = (lose(&disk), disk.exists(Path::new("/other")).unwrap());
            end();
            mini_net::sim::leave();
            let faults = leave().unwrap();
            let texts: Vec<String> = faults.injected().iter().map(|fault| fault.text.clone()).collect();
            (left, texts)
        };
        let both = |(left, texts): &((String, bool), Vec<String>)| left.0 == "one " && !left.1 && texts.len() == 2;
        let seed = (0..100).find(|&seed| both(&run(seed, Faults::default()))).expect("one seed of six");
        let (_, texts) = run(seed, Faults::default());
        assert_eq!(texts[0], "disk of test: the last 1 of 2 unsynced writes to `/tmp/file` lost in a crash");
        assert_eq!(texts[1], "disk of test: the last 1 of 1 unsynced changes of names in `/` lost in a crash");
        let left = |skipped| run(seed, Faults::skipping(vec![skipped])).0;
        assert_eq!(left(1..=1), ("one two".to_owned(), false));
        assert_eq!(left(2..=2), ("one ".to_owned(), true));
        assert_eq!(left(1..=2), ("one two".to_owned(), true));
    }
}
