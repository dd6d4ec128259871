//! `Log`: what the service must not forget, in a file that only grows.
//!
//! A record is a line: its checksum, and the text. It counts once it is synced; what a crash has left of a later one is
//! cut off when the log is opened. A name is synced with the folder that it is in, or a crash could lose it all: that
//! of the file, and that of its folder.

use std::io;
use std::path::Path;

use mini::fs::{self, File, OpenOptions};

/// Whether a record is on the disk before the service says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is.
    Synced,
    /// It is when the system finds time to write it: a crash of the machine loses the last ones.
    Lazy,
}

#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    durability: Durability,
}

impl Log {
    /// Opens the log in the folder, which is made if it is not there, and returns what is in it.
    pub(crate) async fn open(folder: &Path, durability: Durability) -> io::Result<(Self, Vec<String>)> {
        match fs::create_dir(folder).await {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = folder.join("leases.log");
        let before = match fs::read(&path).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let (records, length) = whole_records(&before);
        let file = OpenOptions::new().create(true).append(true).open(&path).await?;
        if length < before.len() {
            file.set_len(length as u64).await?;
        }
        if durability == Durability::Synced {
            file.sync_all().await?;
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            for folder in [folder, parent] {
                File::open(folder).await?.sync_all().await?;
            }
        }
        Ok((Self { file, durability }, records))
    }

    /// Adds a record. When this returns without an error, it is there for good.
    pub(crate) async fn append(&mut self, text: &str) -> io::Result<()> {
        let line = format!("{:016x} {text}\n", checksum(text.as_bytes()));
        self.file.write_all(line.as_bytes()).await?;
        if self.durability == Durability::Synced {
            self.file.sync_data().await?;
        }
        Ok(())
    }
}

/// The records up to the first that is not whole, and how many bytes they take.
fn whole_records(bytes: &[u8]) -> (Vec<String>, usize) {
    let (mut records, mut length) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let Some((sum, text)) = text.and_then(|line| line.split_once(' ')) else { break };
        if u64::from_str_radix(sum, 16) != Ok(checksum(text.as_bytes())) {
            break;
        }
        records.push(text.to_owned());
        length += line.len();
    }
    (records, length)
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo).
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
