//! How many seeds each program needs, beside those that it needs with tasks that run first in, first out; and what
//! shrinking leaves of the faults of each failure that was found.

use std::env;
use std::panic;
use std::process::Command;

use mini::sim::Sim;
use mini_tests::child_support::full_name;

use super::{PROGRAMS, Program, SEEDS, faults, report};

/// So many times a program is looked at, each time with other seeds.
const BLOCKS: u64 = 20;

/// Names one program, to look at it alone.
const PROGRAM: &str = "MINI_PLANTED";

/// A number of seeds for each block, in order. A block in which no seed fails has [`SEEDS`] + 1.
struct Needed(Vec<u64>);

impl Needed {
    fn median(&self) -> String {
        match self.0[self.0.len() / 2] {
            seeds if seeds > SEEDS => format!("not in {SEEDS}"),
            seeds => seeds.to_string(),
        }
    }

    fn most(&self) -> String {
        match self.0[self.0.len() - 1] {
            seeds if seeds > SEEDS => format!("over {SEEDS}"),
            seeds => seeds.to_string(),
        }
    }
}

/// The first seed of the block under which `program` fails.
fn first_failing(program: &Program, block: u64, is_fifo: bool) -> Option<u64> {
    (1 + block * SEEDS..).take(SEEDS as usize).find(|&seed| {
        let sim = if is_fifo { Sim::new(seed).fifo() } else { Sim::new(seed) };
        sim.run((program.run)(false)).is_err()
    })
}

/// The faults of that failure: those that are left, and all.
fn shrunk(program: &Program, seed: u64) -> (u64, u64) {
    let mut alone = Command::new(env::current_exe().unwrap());
    alone.args(["--exact", full_name("measured::one_failure"), "--ignored", "--nocapture"]);
    let output = alone.env(PROGRAM, program.name).env("MINI_SEED", seed.to_string()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(program.says), "seed {seed} of {}:\n{text}", program.name);
    faults(&text)
}

#[test]
#[ignore = "it is a part of the table"]
fn one_failure() {
    let name = env::var(PROGRAM).expect("the name of a program");
    let program = PROGRAMS.iter().find(|program| program.name == name).expect("there is such a program");
    eprintln!("{}", report(program));
}

#[test]
#[ignore = "it takes minutes, and prints the table of RELIABILITY.md"]
fn table() {
    panic::set_hook(Box::new(|_| ()));
    println!("| program | seeds | at most | FIFO alone | faults | left | at most |\n|---|---|---|---|---|---|---|");
    let only = env::var(PROGRAM).ok();
    for program in PROGRAMS.iter().filter(|program| only.as_ref().is_none_or(|name| name == program.name)) {
        let found: Vec<Option<u64>> = (0..BLOCKS).map(|block| first_failing(program, block, false)).collect();
        let needed = needed(&found);
        // A seed that fails is found soon or not at all: three blocks tell which.
        let blocks = if (0..3).any(|block| first_failing(program, block, true).is_some()) { BLOCKS } else { 3 };
        let fifo: Vec<Option<u64>> = (0..blocks).map(|block| first_failing(program, block, true)).collect();
        let (mut left, mut all): (Vec<u64>, Vec<u64>) =
            found.iter().flatten().map(|&seed| shrunk(program, seed)).unzip();
        left.sort_unstable();
        all.sort_unstable();
        println!(
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            program.name,
            needed.median(),
            needed.most(),
            self::needed(&fifo).median(),
            all[all.len() / 2],
            left[left.len() / 2],
            left[left.len() - 1],
        );
    }
}

fn needed(found: &[Option<u64>]) -> Needed {
    let mut all: Vec<u64> = found.iter().map(|seed| seed.map_or(SEEDS + 1, |seed| (seed - 1) % SEEDS + 1)).collect();
    all.sort_unstable();
    Needed(all)
}
