//! A seed says all that happens, in any process.

use std::collections::HashSet;
use std::process::Command;

#[test]
fn seeds_do_the_same_in_two_processes() {
    let run = |variable| {
        // What the second process has more of lies elsewhere in its memory.
        let output = Command::new(env!("CARGO_BIN_EXE_sim_hashes")).env(variable, "1".repeat(10_000)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (first, second) = (run("MINI_FIRST"), run("MINI_THE_SECOND"));
    for (one, other) in first.lines().zip(second.lines()) {
        assert_eq!(one, other);
    }
    let hashes: HashSet<_> = first.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!((first.lines().count(), second.lines().count(), hashes.len()), (50, 50, 50));
}
