//! The example `tour`: it asserts what it claims.

use mini_tests::{LIMIT, within};

#[path = "../tour.rs"]
#[allow(dead_code)]
mod tour;

#[test]
fn every_claim_holds() {
    within(LIMIT, || tour::run().unwrap());
}
