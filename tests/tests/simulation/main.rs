//! Simulations: hosts, network, files, signals, and programs.

#![cfg(feature = "sim")]

mod ends;
mod fs;
mod hashes;
mod hosts;
mod net;
mod programs;
mod signals;
mod sim;
mod sockets;
