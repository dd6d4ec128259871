#[mini::main(worker_threads = 2, flavor = "current_thread")]
async fn main() {}

#[mini::test(worker_threads = 2)]
async fn test() {}
