#[mini::main(worker_threads = 2, flavor = "multi_thread", worker_threads = 2)]
async fn main() {}
