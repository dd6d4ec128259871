//! `Content`: what is in a file. It lies in pages, so that a gap takes no memory, and copies share them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const PAGE: usize = 4096;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    length: u64,
    /// Where one is missing there are zeros. None begins behind the end, and behind the end each has zeros.
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Copies from `at` on into the front of `buf`; returns how many bytes there were.
    pub(super) fn read(&self, at: u64, buf: &mut [u8]) -> usize {
        let count = self.length.saturating_sub(at).min(buf.len() as u64) as usize;
        for (number, in_page, in_buf) in parts(at, count) {
            match self.pages.get(&number) {
                Some(page) => buf[in_buf].copy_from_slice(&page[in_page]),
                None => buf[in_buf].fill(0),
            }
        }
        count
    }

    /// Writes over what is at `at`. Between the end before and `at` there are zeros then.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        for (number, in_page, in_bytes) in parts(at, bytes.len()) {
            let page = self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[in_page].copy_from_slice(&bytes[in_bytes]);
        }
        self.length = self.length.max(at + bytes.len() as u64);
    }

    /// Cuts off what is behind `length`, or adds zeros up to there.
    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            drop(self.pages.split_off(&length.div_ceil(PAGE as u64)));
            let rest = (length % PAGE as u64) as usize;
            if rest > 0
                && let Some(page) = self.pages.get_mut(&(length / PAGE as u64))
            {
                Arc::make_mut(page)[rest..].fill(0);
            }
        }
        self.length = length;
    }

    /// How many bytes the disk needs for it: gaps of whole pages need none.
    pub(super) fn size_on_disk(&self) -> u64 {
        self.size_after(0, 0)
    }

    /// How many of `count` bytes can be written at `at` if the disk has room for `room` more.
    pub(super) fn fitting(&self, at: u64, count: usize, room: u64) -> usize {
        if room >= (count + 2 * PAGE) as u64 {
            return count; // without a look: no write needs more
        }
        let most = self.size_on_disk().saturating_add(room);
        let (mut fits, mut too_many) = (0, count + 1);
        while fits + 1 < too_many {
            let middle = fits + (too_many - fits) / 2;
            if self.size_after(at, middle as u64) <= most {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        fits
    }

    /// What `size_on_disk` will be after a write of `count` bytes at `at`.
    fn size_after(&self, at: u64, count: u64) -> u64 {
        let page = PAGE as u64;
        let (written, new) = if count == 0 {
            (0..0, 0)
        } else {
            let written = at / page..(at + count).div_ceil(page);
            let present = self.pages.range(written.clone()).count() as u64;
            (written.clone(), written.end - written.start - present)
        };
        let length = if count == 0 { self.length } else { self.length.max(at + count) };
        let last = length.saturating_sub(1) / page;
        let has_last = self.pages.contains_key(&last) || written.contains(&last);
        let behind_end = if has_last { (last + 1) * page - length } else { 0 };
        (self.pages.len() as u64 + new) * page - behind_end
    }
}

/// The pages of `count` bytes from `at` on: the number of each, where the bytes are in it, and in the bytes.
fn parts(at: u64, count: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (place, left) = (at + done as u64, count - done);
        let begin = (place % PAGE as u64) as usize;
        let length = left.min(PAGE - begin);
        let part = (place / PAGE as u64, begin..begin + length, done..done + length);
        done += length;
        (length > 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini_context::sim::Random;

    fn all(content: &Content) -> Vec<u8> {
        let mut bytes = vec![7; content.length() as usize + 10];
        let read = content.read(0, &mut bytes);
        bytes.truncate(read);
        bytes
    }

    #[test]
    fn it_is_what_a_vector_is() {
        let (mut content, mut expected, mut random) = (Content::default(), Vec::new(), Random::new(1, 1));
        for round in 0..3000 {
            let at = random.below(5 * PAGE as u64) as usize;
            if random.below(4) == 0 {
                content.set_length(at as u64);
                expected.resize(at, 0);
            } else {
                let bytes = vec![round as u8 | 1; random.below(2 * PAGE as u64) as usize];
                content.write(at as u64, &bytes);
                if !bytes.is_empty() {
                    expected.resize(expected.len().max(at + bytes.len()), 0);
                    expected[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
            assert!(all(&content) == expected, "round {round}");
            let mut part = vec![9; 5000];
            let read = content.read(at as u64, &mut part);
            let rest = expected.get(at..).unwrap_or_default();
            assert_eq!(read, rest.len().min(5000));
            assert!(part[..read] == rest[..read] && part[read..].iter().all(|&byte| byte == 9));
        }
    }

    #[test]
    fn a_write_needs_no_more_than_is_said() {
        let mut random = Random::new(1, 1);
        for _ in 0..2000 {
            let (length, at, count) = (random.below(9000), random.below(20_000), random.below(9000));
            let mut content = Content::default();
            content.write(0, &vec![1; length as usize]);
            let before = content.size_on_disk();
            content.write(at, &vec![2; count as usize]);
            assert!(content.size_on_disk() - before <= count + 2 * PAGE as u64, "{length} {at} {count}");
        }
    }

    #[test]
    fn a_gap_needs_no_disk_and_what_fits_is_written() {
        let mut content = Content::default();
        content.set_length(1 << 40);
        assert_eq!((content.length(), content.size_on_disk()), (1 << 40, 0));
        content.write(1 << 30, b"abc");
        assert_eq!(content.size_on_disk(), PAGE as u64);
        content.set_length(10);
        assert_eq!(content.size_on_disk(), 0);
        assert_eq!(content.fitting(10, 100, 50), 40); // the ten zeros before need place too
        content.write(10, &[1; 40]);
        assert_eq!((content.size_on_disk(), content.fitting(50, 5, 0), content.fitting(0, 50, 0)), (50, 0, 50));
        assert_eq!(content.fitting(50, 10_000, 9_000), 9_000);
        assert_eq!(content.fitting(50, 10, u64::MAX), 10);
    }
}
