#![doc = include_str!("../guide/front.md")]
//!
//! Only here, in the documentation: a program has no such module.

#[doc = include_str!("../guide/first_program.md")]
#[doc = ""]
#[doc = include_str!("../guide/pictures/future.svg")]
#[doc = ""]
#[doc = include_str!("../guide/pictures/tasks.svg")]
pub mod first_program {}

#[doc = include_str!("../guide/event_loop.md")]
#[doc = ""]
#[doc = include_str!("../guide/pictures/turn.svg")]
pub mod event_loop {}

#[doc = include_str!("../guide/tasks.md")]
pub mod tasks {}

#[doc = include_str!("../guide/structure.md")]
pub mod structure {}

#[doc = include_str!("../guide/select.md")]
pub mod select {}

#[doc = include_str!("../guide/time.md")]
pub mod time {}

#[doc = include_str!("../guide/deadlines.md")]
pub mod deadlines {}

#[doc = include_str!("../guide/sockets.md")]
pub mod sockets {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[doc = include_str!("../guide/framing.md")]
pub mod framing {}

#[doc = include_str!("../guide/files.md")]
pub mod files {}

#[doc = include_str!("../guide/children.md")]
pub mod children {}

#[doc = include_str!("../guide/blocking.md")]
pub mod blocking {}

#[doc = include_str!("../guide/sync_async.md")]
pub mod sync_async {}

#[doc = include_str!("../guide/shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../guide/hangs.md")]
pub mod hangs {}

#[doc = include_str!("../guide/warnings.md")]
pub mod warnings {}

#[doc = include_str!("../guide/trace.md")]
pub mod trace {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[doc = include_str!("../guide/observing.md")]
pub mod observing {}

#[doc = include_str!("../guide/sharing.md")]
pub mod sharing {}

// Its code is compiled by the tests of mini-hyper.
#[cfg(not(doctest))]
#[doc = include_str!("../guide/servers.md")]
pub mod servers {}

#[doc = include_str!("../guide/cookbook.md")]
pub mod cookbook {}

#[doc = include_str!("../guide/templates.md")]
pub mod templates {}

#[doc = include_str!("../guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("../guide/porting.md")]
pub mod porting {}

#[doc = include_str!("../guide/crates.md")]
pub mod crates {}

#[doc = include_str!("../guide/deploying.md")]
pub mod deploying {}

#[doc = include_str!("../guide/differences.md")]
pub mod differences {}

#[doc = include_str!("../guide/platforms.md")]
pub mod platforms {}

#[doc = include_str!("../guide/glossary.md")]
pub mod glossary {}
