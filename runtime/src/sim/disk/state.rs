//! `State`: what is on the disk of a host, and what waits to get there.
//!
//! A node lives as long as somebody refers to it. Nothing here looks at paths: `walk` does, for `names` and `open`.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use mini_context::sim::{self, Random};

use super::changes::Change;
use super::node::{Dir, Ino, Node, ROOT, What};
use super::stand_ins::StandIns;

/// Streams of the seed: the host's number is added.
const FAULTS: u64 = 0x6469_736b << 32;
const ORDERS: u64 = 0x6e61_6d65 << 32;

#[derive(Debug)]
pub(super) struct State {
    pub(super) host: u32,
    pub(super) nodes: BTreeMap<Ino, Node>,
    last: u64,
    /// Changes of names that the disk does not have yet, oldest first.
    pub(super) unsynced: VecDeque<Change>,
    /// How often the host has crashed: files that were open before are no more.
    pub(super) crashes: u32,
    /// How many bytes it holds.
    pub(super) capacity: Option<u64>,
    /// How likely a read, a write or a sync fails.
    pub(super) error_rate: f64,
    /// What is lost, and what fails.
    pub(super) random: Random,
    /// In what order a directory has its entries.
    pub(super) orders: Random,
    pub(super) stand_ins: StandIns,
}

impl State {
    pub(super) fn new(seed: u64, host: u32) -> Self {
        let mut state = Self {
            host,
            nodes: BTreeMap::new(),
            last: ROOT.0,
            unsynced: VecDeque::new(),
            crashes: 0,
            capacity: None,
            error_rate: 0.0,
            random: Random::new(seed, FAULTS + u64::from(host)),
            orders: Random::new(seed, ORDERS + u64::from(host)),
            stand_ins: StandIns::default(),
        };
        let mut root = Node::new(What::Dir(Dir::within(ROOT)), 0o755, Duration::ZERO);
        (root.references, root.names) = (2, 1); // seen and on disk, as every directory that is synced
        state.nodes.insert(ROOT, root);
        for dir in [std::path::Path::new("/tmp"), &std::env::temp_dir()] {
            if dir.is_absolute() {
                state.make_dirs(dir, 0o777).expect("there is nothing yet that could be in the way");
            }
        }
        state.sync();
        state
    }

    pub(super) fn node(&self, ino: Ino) -> &Node {
        &self.nodes[&ino]
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> &mut Node {
        self.nodes.get_mut(&ino).expect("whoever has its number refers to it")
    }

    /// What is in a directory.
    pub(super) fn dir(&self, ino: Ino) -> &Dir {
        self.node(ino).as_dir().expect("it is a directory")
    }

    /// A node that nobody refers to yet.
    pub(super) fn add(&mut self, what: What, mode: u32) -> Ino {
        self.last += 1;
        let ino = Ino(self.last);
        self.nodes.insert(ino, Node::new(what, mode, sim::now()));
        ino
    }

    pub(super) fn hold(&mut self, ino: Ino) {
        self.node_mut(ino).references += 1;
    }

    pub(super) fn release(&mut self, ino: Ino) {
        let mut released = vec![ino];
        while let Some(ino) = released.pop() {
            let node = self.node_mut(ino);
            node.references -= 1;
            if node.references == 0
                && let Some(node) = self.nodes.remove(&ino)
            {
                self.stand_ins.remove(ino);
                if let What::Dir(dir) = node.what {
                    released.extend(dir.seen.into_values().chain(dir.on_disk.into_values()));
                }
            }
        }
    }

    /// The path of a node, for people.
    pub(super) fn path_of(&self, ino: Ino) -> String {
        match self.name_of(ino) {
            _ if ino == ROOT => "/".to_owned(),
            None => "a removed file".to_owned(),
            Some((ROOT, name)) => format!("/{}", name.display()),
            Some((dir, name)) => format!("{}/{}", self.path_of(dir), name.display()),
        }
    }

    /// A directory in which it is, and its name there.
    pub(super) fn name_of(&self, ino: Ino) -> Option<(Ino, &OsString)> {
        self.nodes.iter().find_map(|(&dir, node)| {
            let entries = &node.as_dir()?.seen;
            entries.iter().find_map(|(name, &entry)| (entry == ino).then_some((dir, name)))
        })
    }

    /// How many more bytes it can hold.
    pub(super) fn room(&self) -> u64 {
        let Some(capacity) = self.capacity else { return u64::MAX };
        let is_used = |node: &&Node| node.names > 0 || node.opens > 0;
        let used: u64 = self.nodes.values().filter(is_used).map(size_on_disk).sum();
        capacity.saturating_sub(used)
    }

    /// The disk gets all that waits.
    pub(super) fn sync(&mut self) {
        self.sync_first_names(self.unsynced.len());
        for node in self.nodes.values_mut() {
            if let Some(file) = node.as_file_mut() {
                file.sync();
            }
        }
    }

    /// Whether a call fails that does `what` with a node; drawn at the rate that was asked for.
    pub(super) fn is_to_fail(&mut self, what: &str, ino: Ino) -> bool {
        if self.error_rate == 0.0 {
            return false;
        }
        let drawn = (self.random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let text = || format!("{}: EIO at {what} of `{}`", self.title(), self.path_of(ino));
        drawn < self.error_rate && sim::inject(text)
    }

    /// For texts of faults.
    pub(super) fn title(&self) -> String {
        format!("disk of {}", mini_net::sim::host_name(self.host))
    }
}

fn size_on_disk(node: &Node) -> u64 {
    node.as_file().map_or(0, |file| file.seen().size_on_disk())
}

/// The error with that number of the system.
pub(super) fn error<T>(number: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(number))
}
