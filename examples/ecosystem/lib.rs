//! What the examples and tests of this package share.

pub mod certificate;
pub mod dns_server;
pub mod grpc;
pub mod servers;
