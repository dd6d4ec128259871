//! The example `tour`: it asserts what it claims.

#[path = "../tour.rs"]
#[allow(dead_code)]
mod tour;

#[mini::test]
async fn every_claim_holds() {
    tour::run().await.unwrap();
}
