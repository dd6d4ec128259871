#![deny(warnings, missing_docs, unreachable_pub, unsafe_code, unused, let_underscore_drop, single_use_lifetimes)]
//! The expansion causes no warning of its own.

/// Documented.
#[mini::main(worker_threads = 1)]
pub async fn main() {}
