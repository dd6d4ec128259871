#[mini::main(worker_threads = 0)]
async fn main() {}

#[mini::main(worker_threads = 0x0_usize)]
async fn run() {}
