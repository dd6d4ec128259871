//! What the examples and tests of this package share.

#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../runtime/guide/clients.md")]
    mod clients {}

    #[doc = include_str!("../../runtime/guide/framing.md")]
    mod framing {}

    #[doc = include_str!("../../runtime/guide/observing.md")]
    mod observing {}

    #[doc = include_str!("../../runtime/guide/servers.md")]
    mod servers {}
}

pub mod certificate;
pub mod dns_server;
pub mod grpc;
pub mod servers;
