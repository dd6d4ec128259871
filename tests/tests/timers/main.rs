//! Timers: the real clock, the paused one, time limits and deadlines.

mod deadlines;
mod elapsed;
mod paused;
mod timers;
