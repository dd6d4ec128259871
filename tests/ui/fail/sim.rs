//! A simulation takes no runtime's settings, and is for tests.

#[mini::test(sim, flavor = "multi_thread")]
async fn with_a_flavor() {}

#[mini::test(sim = true)]
async fn with_a_value() {}

#[mini::test(seeds = 10)]
async fn without_sim() {}

#[mini::test(sim, time_limit = 10)]
async fn a_limit_without_a_unit() {}

#[mini::test(step_limit = 10)]
async fn a_limit_of_nothing() {}

#[mini::test(sim, limit = 10)]
async fn an_unknown_argument() {}

#[mini::main(sim)]
async fn main() {}
