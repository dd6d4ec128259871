//! A simulation takes no runtime's settings, and is for tests.

#[mini::test(sim, flavor = "multi_thread")]
async fn with_a_flavor() {}

#[mini::test(sim = true)]
async fn with_a_value() {}

#[mini::test(seeds = 10)]
async fn without_sim() {}

#[mini::test(sim, seeds = 0)]
async fn no_seed() {}

#[mini::main(sim)]
async fn main() {}
