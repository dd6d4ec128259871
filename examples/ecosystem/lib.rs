//! What the examples and tests of this package share.

pub mod web_server;
