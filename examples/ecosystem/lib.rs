//! What the examples and tests of this package share.

#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../runtime/guide/framing.md")]
    mod framing {}

    #[doc = include_str!("../../runtime/guide/observing.md")]
    mod observing {}
}

pub mod certificate;
pub mod dns_server;
pub mod grpc;
pub mod servers;
