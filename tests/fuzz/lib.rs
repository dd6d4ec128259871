//! Models of mini's core, each driven by random choices beside the real thing, with which it must agree at every step.
//!
//! Three callers: `tests/fuzz.rs` runs each model on a bounded number of seeds, `MINI_FUZZ_SECONDS` makes that as long
//! as one likes, and the programs in `libfuzzer/` let coverage make the choices.
//!
//! A model is a function of [`Choices`]. One run makes its runtime, timers or sockets, takes steps until the choices
//! are over, checks what each has done, and at the end that nothing is left: no reference, no registration, no waker.
//!
//! Rejected: models inside the crates behind a `cfg` of their own. The public interface reaches all of the states, and
//! a model that knows only the promises survives changes of the implementation. The wheel has one more inside,
//! `time/src/wheel/tests/oracle.rs`, as much of it cannot be seen from here.

mod choices;
pub mod sockets;
pub mod tasks;
pub mod timers;

pub use choices::{Choices, try_seeds};
