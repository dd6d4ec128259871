//! `mini_fuzz::timers` with choices made by libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mini_fuzz::{Choices, timers};

fuzz_target!(|bytes: &[u8]| timers::run(&mut Choices::from_bytes(bytes)));
