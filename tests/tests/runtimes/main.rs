//! Runtimes: how they are built, entered, blocked on, embedded and measured.

mod edges;
mod embed;
mod entered;
mod guards;
mod hooks;
mod main_body;
mod metrics;
mod outside;
mod per_core;
mod runtimes;
mod until_idle;
