//! `buggify!`: places where a program asks to be treated badly.

use std::panic::Location;

use mini_context::sim::inject;

use super::sites;

/// Returns `true` now and then in a simulation, to do something rare that the program must survive; returns `false`
/// outside a simulation.
///
/// Use it at the weak places of a program: to answer with an error, give up early, or take a buffer of one byte. In one
/// seed of four the place is active; then `buggify!()` is `true` with a probability of a quarter, `buggify!(p)` with
/// probability `p`. Each `true` is a fault, with a number and the line: a seed that fails is run again without the
/// faults that it does not need; see [`sim`](crate::sim#faults).
///
/// Outside a simulation it reads one thread-local variable, and does not evaluate `p`. Without the feature `sim` this
/// macro does not exist: a crate that is also built without the feature needs a `cfg` around the call.
///
/// # Examples
///
/// ```
/// /// Writes as much as it wants to, as write(2) does.
/// fn write(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
///     let len = if mini::sim::buggify!() { bytes.len().min(1) } else { bytes.len() };
///     out.extend(&bytes[..len]);
///     len
/// }
///
/// async fn sends() {
///     let mut out = Vec::new();
///     write(&mut out, b"hello"); // ignores how much was written
///     assert_eq!(out, b"hello");
/// }
///
/// assert!((0..100).any(|seed| mini::sim::Sim::new(seed).run(sends()).is_err()));
/// mini::block_on(sends()); // it is no simulation
/// ```
///
/// # Panics
///
/// In a simulation, if `p` is not a number from 0 to 1.
#[doc(hidden)]
#[macro_export]
macro_rules! __sim_buggify {
    () => {
        $crate::sim::is_simulated() && $crate::sim::misbehaves(0.25)
    };
    ($probability:expr $(,)?) => {
        $crate::sim::is_simulated() && $crate::sim::misbehaves($probability)
    };
}

/// Returns `true` if the calling line misbehaves now.
#[doc(hidden)]
#[must_use]
#[track_caller]
pub fn misbehaves(probability: f64) -> bool {
    sites::check(probability);
    let location = Location::caller();
    let is_drawn = sites::ask(location, |site| site.is_on && site.draw(probability));
    is_drawn == Some(true) && inject(|| format!("buggify {}", sites::shown(location)))
}
