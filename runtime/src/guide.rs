#![cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#![doc = include_str!("../guide/front.md")]
//!
//! Only here, in the documentation: a program has no such module.

// `links.md` defines the links of all chapters for rustdoc, before each chapter defines them for the forge: the first
// definition of a label counts. `tests/tests/project/links.rs` writes it. Without it a failing example is reported with
// its chapter's file and line.
//
// `feature_links.md` has the items that need a feature. Without the feature the chapters' own definitions apply, which
// are pages of the published reference. A chapter whose code needs a feature is tested with that feature.

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/first_program.md"))]
pub mod first_program {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/event_loop.md")]
pub mod event_loop {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/tasks.md"))]
pub mod tasks {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/structure.md")]
pub mod structure {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/select.md")]
pub mod select {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/time.md"))]
pub mod time {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/deadlines.md")]
pub mod deadlines {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/sockets.md"))]
pub mod sockets {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(
    all(not(doctest), feature = "io-util", feature = "sim", feature = "stream"),
    doc = include_str!("../guide/feature_links.md")
)]
#[doc = include_str!("../guide/framing.md")]
pub mod framing {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/files.md"))]
pub mod files {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/children.md")]
pub mod children {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/blocking.md")]
pub mod blocking {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/sync_async.md")]
pub mod sync_async {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/shutdown.md"))]
pub mod shutdown {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(
    all(not(doctest), feature = "io-util", feature = "sim", feature = "stream"),
    doc = include_str!("../guide/feature_links.md")
)]
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/hangs.md")]
pub mod hangs {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/warnings.md")]
pub mod warnings {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/trace.md")]
pub mod trace {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/observing.md")]
pub mod observing {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/sharing.md")]
pub mod sharing {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/servers.md")]
pub mod servers {}

// Its code is compiled by the tests of mini-ecosystem.
#[cfg(not(doctest))]
#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/clients.md")]
pub mod clients {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(any(not(doctest), feature = "io-util"), doc = include_str!("../guide/cookbook.md"))]
pub mod cookbook {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/templates.md")]
pub mod templates {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/embedding.md")]
pub mod embedding {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/porting.md")]
pub mod porting {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/crates.md")]
pub mod crates {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/deploying.md")]
pub mod deploying {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/differences.md")]
pub mod differences {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[doc = include_str!("../guide/platforms.md")]
pub mod platforms {}

#[cfg_attr(not(doctest), doc = include_str!("../guide/links.md"))]
#[cfg_attr(
    all(not(doctest), feature = "io-util", feature = "sim", feature = "stream"),
    doc = include_str!("../guide/feature_links.md")
)]
#[doc = include_str!("../guide/glossary.md")]
pub mod glossary {}
