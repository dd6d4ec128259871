//! Programs of the ecosystem in a simulation, unmodified: what a client was told is true, whatever the network did and
//! whenever the server crashed.
//!
//! Each protocol is a [`Protocol`](crate::endurance::Protocol), and `endurance` is what all of them go through.

#[path = "sim/axum.rs"]
mod axum;
#[path = "sim/endurance.rs"]
mod endurance;
#[path = "sim/quic.rs"]
mod quic;
#[path = "sim/tls.rs"]
mod tls;
#[path = "sim/tonic.rs"]
mod tonic;
#[path = "sim/websocket.rs"]
mod websocket;

mini::sim::interpose!();
