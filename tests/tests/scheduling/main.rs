//! Scheduling: what runs when, on which thread, and what comes of code that blocks or computes.

mod at_once;
mod block_in_place;
mod blocking;
mod budget;
mod crowds;
mod fairness;
mod hardships;
mod idle;
mod shortage;
