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

#[mini::main(worker_threads = {1 == 1} as usize start_paused = true)]
async fn no_comma_after_sum() {}

fn main() {}
