//! The examples that are tested with the helpers of this package. As a dev-dependency of those it would be compiled for
//! each of them.

#![allow(clippy::module_inception, reason = "the tests of an example have the name of the example")]

#[path = "../../../examples/tests/balance.rs"]
mod balance;
#[path = "../../../examples/tests/event_loop.rs"]
mod event_loop;
#[path = "../../../examples/tests/http.rs"]
mod http;
#[path = "../../../examples/tests/library.rs"]
mod library;
