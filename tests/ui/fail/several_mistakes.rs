#[mini::main(flavour = "multi_thread", worker_threads = 0)]
fn main(_: u8) {}
