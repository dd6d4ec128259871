#[mini::main(threads = 4)]
async fn main() {}

#[mini::test(simulated)]
async fn without_a_value() {}
