//! The recorded events, and their encoding in 16 bytes.
//!
//! The writer of a ring packs events, and an export unpacks them. A slice (a poll, a wait) is one event, written when
//! it is over, with its length; a slice in progress when a trace is taken is in [`Probe`](super::Probe). A wake does
//! not name the waking task: that is the task whose poll contains the wake on the worker's track.
//!
//! ```text
//!   first word    5 bits kind, 59 bits time in ticks (6 years)
//!   second word   of a poll: 24 bits length, 40 bits task; of a spawn: 24 bits place, 40 bits task; else a number
//!   text          5 bits kind, 4 bits length, 7 bits nothing, 6 bytes of text; 8 bytes of text
//! ```
//!
//! A task has 39 bits of its id and whether it is the future of a `block_on`: at a million tasks a second they are used
//! again after six days, of which a ring keeps a second. A poll's length is rounded down to 19 bits of precision, a
//! 500,000th; so a poll never seems to begin before the one before has ended.
//!
//! Rejected: an event for each begin and each end (twice the memory). The pointer of a place in the event (to follow it
//! would need `unsafe`).

use mini_kernel::scheduler::observe::Then;

use super::ring::Words;

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A task was polled for so many ticks, until now.
    Poll { task: Number, took: u64, then: Then },
    /// A worker has waited for so many ticks, until now.
    Wait { took: u64 },
    /// A task was spawned at a place, and its name follows in texts.
    Spawn { task: Number, place: u32 },
    /// A part of the name of the task whose spawn came directly before.
    Text { bytes: [u8; TEXT], len: u8 },
    /// A task was queued since something has woken it.
    Wake { task: Number },
    /// A worker has taken so many tasks from another one.
    Steal { tasks: u64 },
    /// The reactor had so many events.
    Ready { events: u64 },
    /// So many timers have fired.
    Timers { fired: u64 },
    /// So many tasks wait for this worker.
    Queue { tasks: u64 },
    /// So many tasks wait for any worker.
    Injected { tasks: u64 },
    /// A blocking job begins.
    JobBegin { task: Number },
    /// It has ended.
    JobEnd { task: Number },
}

/// How many bytes of text an event has room for.
pub(super) const TEXT: usize = 14;

/// A task, by 40 bits of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number(u64);

const MAIN: u64 = 1 << 39;

impl Number {
    /// For the id of a task, or that of the future of a `block_on`.
    #[inline]
    pub(super) fn of(id: u64) -> Self {
        // Without a branch: the ids of those futures have a bit of their own, above all other ids.
        let main = mini_context::MAIN;
        Self(id & (MAIN - 1) | (id & main) >> (main.trailing_zeros() - MAIN.trailing_zeros()))
    }

    /// Whether it stands for the future of a `block_on`.
    pub(super) fn is_main(self) -> bool {
        self.0 & MAIN != 0
    }

    /// The id without its upper bits.
    pub(super) fn get(self) -> u64 {
        self.0 & (MAIN - 1)
    }

    /// What [`bits`](Self::bits) has returned.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits & ((MAIN << 1) - 1))
    }

    /// As [`get`](Self::get), but different for the future of a `block_on`.
    pub(super) fn bits(self) -> u64 {
        self.0
    }
}

const TIME: u32 = 59;
const TASK: u32 = 40;

impl Event {
    /// Packs it, with its time.
    #[inline(always)]
    pub(super) fn pack(self, at: u64) -> Words {
        let of = |task: Number, more: u32| task.0 | u64::from(more) << TASK;
        let (kind, number) = match self {
            Self::Poll { task, took, then } => (1 + then as u64, of(task, squeeze(took))),
            Self::Wait { took } => (4, took),
            Self::Spawn { task, place } => (5, of(task, place)),
            Self::Text { bytes, len } => return pack_text(bytes, len),
            Self::Wake { task } => (7, of(task, 0)),
            Self::Steal { tasks } => (8, tasks),
            Self::Ready { events } => (9, events),
            Self::Timers { fired } => (10, fired),
            Self::Queue { tasks } => (11, tasks),
            Self::Injected { tasks } => (12, tasks),
            Self::JobBegin { task } => (13, of(task, 0)),
            Self::JobEnd { task } => (14, of(task, 0)),
        };
        [kind << TIME | at & ((1 << TIME) - 1), number]
    }

    /// The time and the event; `None` for words that no event has.
    pub(super) fn unpack(words: Words) -> Option<(u64, Self)> {
        let (kind, at, number) = (words[0] >> TIME, words[0] & ((1 << TIME) - 1), words[1]);
        let (task, more) = (Number(number & ((1 << TASK) - 1)), (number >> TASK) as u32);
        let poll = |then| Self::Poll { task, took: expand(more), then };
        let event = match kind {
            1 => poll(Then::Waits),
            2 => poll(Then::Asks),
            3 => poll(Then::Ended),
            4 => Self::Wait { took: number },
            5 => Self::Spawn { task, place: more },
            6 => return Some((0, unpack_text(words))),
            7 => Self::Wake { task },
            8 => Self::Steal { tasks: number },
            9 => Self::Ready { events: number },
            10 => Self::Timers { fired: number },
            11 => Self::Queue { tasks: number },
            12 => Self::Injected { tasks: number },
            13 => Self::JobBegin { task },
            14 => Self::JobEnd { task },
            _ => return None,
        };
        Some((at, event))
    }
}

fn pack_text(bytes: [u8; TEXT], len: u8) -> Words {
    let mut first = [0; 8];
    first[..6].copy_from_slice(&bytes[..6]);
    let mut second = [0; 8];
    second.copy_from_slice(&bytes[6..]);
    [6 << TIME | u64::from(len) << 55 | u64::from_le_bytes(first), u64::from_le_bytes(second)]
}

fn unpack_text(words: Words) -> Event {
    let mut bytes = [0; TEXT];
    bytes[..6].copy_from_slice(&words[0].to_le_bytes()[..6]);
    bytes[6..].copy_from_slice(&words[1].to_le_bytes());
    let len = (words[0] >> 55 & 0xf) as u8;
    Event::Text { bytes, len: len.min(TEXT as u8) }
}

/// The bits of precision of a length, and how many bits say by how much they are shifted.
const PRECISION: u32 = 19;

/// A length in 24 bits, rounded down.
#[inline]
fn squeeze(ticks: u64) -> u32 {
    if ticks >> PRECISION == 0 { ticks as u32 } else { squeeze_long(ticks) }
}

#[cold]
fn squeeze_long(ticks: u64) -> u32 {
    let shift = (u64::BITS - ticks.leading_zeros()).saturating_sub(PRECISION);
    if shift > 31 {
        return u32::MAX >> 8; // 100 hours and more
    }
    shift << PRECISION | (ticks >> shift) as u32
}

fn expand(squeezed: u32) -> u64 {
    u64::from(squeezed & ((1 << PRECISION) - 1)) << (squeezed >> PRECISION & 31)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let task = Number::of(mini_context::new_main());
        assert!(task.is_main() && !Number::of(7).is_main());
        let events = [
            Event::Poll { task, took: 1_000, then: Then::Asks },
            Event::Poll { task: Number::of((1 << 39) - 1), took: 0, then: Then::Waits },
            Event::Poll { task, took: 3, then: Then::Ended },
            Event::Wait { took: 1 << 60 },
            Event::Spawn { task, place: 0xff_ffff },
            Event::Wake { task },
            Event::Steal { tasks: 1 },
            Event::Ready { events: 2 },
            Event::Timers { fired: 3 },
            Event::Queue { tasks: 4 },
            Event::Injected { tasks: 5 },
            Event::JobBegin { task },
            Event::JobEnd { task },
        ];
        for event in events {
            assert_eq!(Event::unpack(event.pack(123_456_789_012)), Some((123_456_789_012, event)));
        }
        let text = Event::Text { bytes: *b"fourteen bytes", len: 13 };
        assert_eq!(Event::unpack(text.pack(9)), Some((0, text)));
    }

    #[test]
    fn a_length_is_rounded_down_by_little() {
        for ticks in (0..50).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 12345]) {
            let kept = expand(squeeze(ticks));
            assert!(kept <= ticks && ticks - kept <= ticks >> 18, "{ticks} {kept}");
        }
        assert_eq!(squeeze(u64::MAX), 0xff_ffff);
    }
}
