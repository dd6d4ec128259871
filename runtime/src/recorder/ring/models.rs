//! The writer goes round while a reader copies, in every order that the memory model allows.
//!
//! Caught: without the fence in `push`, or that in `copy`; with a Relaxed store of the head, or a Relaxed first load;
//! with the head stored before the words; with `now` in place of `now + 1` for the oldest event that is whole.

use loom::sync::Arc;
use loom::thread;

use super::*;

fn model(before: u64, written: u64) {
    loom::model(move || {
        let ring = Arc::new(Ring::new(2));
        (1..=before).for_each(|number| ring.push([number, number]));
        let writer = ring.clone();
        let writer = thread::spawn(move || (before + 1..=before + written).for_each(|n| writer.push([n, n])));
        let copied = ring.copy();
        for words in &copied {
            assert_eq!(words[0], words[1], "torn");
            assert_ne!(words[0], 0, "not written yet");
        }
        assert!(copied.windows(2).all(|pair| pair[0][0] + 1 == pair[1][0]), "out of order: {copied:?}");
        writer.join().unwrap();
        assert_eq!(ring.copy(), [[before + written; 2]]);
    });
}

#[test]
fn what_is_copied_was_written_whole() {
    model(0, 3);
}

#[test]
fn what_is_copied_from_a_full_ring_was_written_whole() {
    model(2, 2);
}
