#[mini::main(flavor)]
async fn no_value() {}

#[mini::main(flavor =)]
async fn empty_value() {}

#[mini::main("multi_thread")]
async fn no_name() {}

#[mini::main(flavor = "multi_thread",, worker_threads = 2)]
async fn two_commas() {}

#[mini::main(flavor = "multi_thread" worker_threads = 2)]
async fn no_comma() {}

fn main() {}
