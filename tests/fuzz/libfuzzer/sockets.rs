//! `mini_fuzz::sockets` with choices made by libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mini_fuzz::{Choices, sockets};

fuzz_target!(|bytes: &[u8]| sockets::run(&mut Choices::from_bytes(bytes)));
