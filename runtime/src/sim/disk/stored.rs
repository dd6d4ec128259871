//! `Stored`: a file's content twice, as programs see it and as the disk has it, with the changes between.
//!
//! Data that were not synced are a list of writes. A crash keeps the first few of them. An fsync that fails discards
//! the writes that failed, and programs still see their data: as with Linux, whose cache keeps such pages, and treats
//! them as written.

use std::collections::VecDeque;

use super::content::Content;

/// So many bytes in so many writes may wait for a sync; then the oldest reach the disk by themselves, as they do in a
/// real system.
const MOST: (usize, usize) = (8 << 20, 64 << 10);

/// A file's content.
#[derive(Debug, Default)]
pub(super) struct Stored {
    seen: Content,
    on_disk: Content,
    unsynced: VecDeque<Change>,
    unsynced_bytes: usize,
}

#[derive(Debug)]
enum Change {
    Write { at: u64, bytes: Box<[u8]> },
    Length(u64),
}

impl Stored {
    /// As programs see it.
    pub(super) fn seen(&self) -> &Content {
        &self.seen
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.seen.write(at, bytes);
        self.note(Change::Write { at, bytes: bytes.into() });
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length != self.seen.length() {
            self.seen.set_length(length);
            self.note(Change::Length(length));
        }
    }

    /// How many changes the disk does not have yet.
    pub(super) fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    /// The disk gets all changes.
    pub(super) fn sync(&mut self) {
        self.sync_first(self.unsynced.len());
    }

    /// The disk gets the first `count` changes, and will never get the others, though programs see them.
    pub(super) fn sync_only(&mut self, count: usize) {
        self.sync_first(count);
        self.unsynced.clear();
        self.unsynced_bytes = 0;
    }

    /// From now on programs see what the disk has.
    pub(super) fn forget_unsynced(&mut self) {
        self.sync_only(0);
        self.seen = self.on_disk.clone();
    }

    fn note(&mut self, change: Change) {
        if let Change::Write { bytes, .. } = &change {
            self.unsynced_bytes += bytes.len();
        }
        self.unsynced.push_back(change);
        while self.unsynced_bytes > MOST.0 || self.unsynced.len() > MOST.1 {
            self.sync_first(1);
        }
    }

    fn sync_first(&mut self, count: usize) {
        for change in self.unsynced.drain(..count) {
            match change {
                Change::Write { at, bytes } => {
                    self.unsynced_bytes -= bytes.len();
                    self.on_disk.write(at, &bytes);
                }
                Change::Length(length) => self.on_disk.set_length(length),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &Content) -> String {
        let mut bytes = vec![0; content.length() as usize];
        content.read(0, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_failed_sync_discards_and_a_later_one_does_not_bring_it_back() {
        let mut stored = Stored::default();
        stored.write(0, b"one ");
        stored.sync();
        stored.write(4, b"two ");
        stored.write(8, b"three ");
        stored.sync_only(1);
        assert_eq!(text(stored.seen()), "one two three ");
        stored.write(14, b"four");
        stored.sync();
        stored.forget_unsynced();
        assert_eq!(text(stored.seen()), "one two \0\0\0\0\0\0four");
    }

    #[test]
    fn what_waits_for_a_sync_is_bounded() {
        let mut stored = Stored::default();
        for block in 0..10 {
            stored.write(block << 20, &vec![1; 1 << 20]);
        }
        assert_eq!(stored.unsynced(), 8);
        stored.forget_unsynced();
        assert_eq!(stored.seen().length(), 2 << 20);
        stored.set_length(2 << 20); // which it has
        assert_eq!(stored.unsynced(), 0);
    }
}
