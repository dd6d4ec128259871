//! `mini_fuzz::tasks` with choices made by libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mini_fuzz::{Choices, tasks};

fuzz_target!(|bytes: &[u8]| tasks::run(&mut Choices::from_bytes(bytes)));
