//! Workloads of files: reading one whose pages the kernel has in memory.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::timed::{Clocks, Workload};
use crate::clock::{Stopwatch, Took};
use crate::load::Load;
use crate::measured::Group;
use crate::rt::Rt;

/// Bytes of the file.
const SIZE: usize = 64 << 10;

/// Reads a file from open to close; that is an operation. monoio has no such call.
pub(super) struct ReadFile;

impl Workload for ReadFile {
    const NAME: &'static str = "read a cached file of 64 KiB";
    const GROUP: Group = Group::Files;
    const CLOCKS: Clocks = Clocks::Both;

    fn operations(_: Load) -> u64 {
        1
    }

    async fn run<R: Rt>(rounds: u64, _: Load) -> Took {
        let file = Scratch::new().expect("a file can be made");
        R::read_file(&file.0).await.expect("it can be read");
        let watch = Stopwatch::start();
        for _ in 0..rounds {
            let content = R::read_file(&file.0).await.expect("it can be read");
            assert_eq!(content.len(), SIZE);
        }
        watch.stop()
    }
}

/// A file that goes away with this.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mini-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::write(&path, vec![b'x'; SIZE])?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind it does no harm.
        let _ = fs::remove_file(&self.0);
    }
}
