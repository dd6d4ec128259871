//! Simulations in a program with `mini::sim::interpose!`: what follows the seed then, and the examples `redis`, `http`,
//! `queue` and `lease`, unmodified.

#![cfg(feature = "sim")]

mod http;
mod interpose;
mod lease;
mod queue;
mod redis;
mod storm;

mini::sim::interpose!();
