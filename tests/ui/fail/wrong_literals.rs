#[mini::main(flavor = 1)]
async fn flavor_integer() {}

#[mini::main(flavor = current_thread)]
async fn flavor_name() {}

#[mini::main(worker_threads = "4")]
async fn threads_string() {}

#[mini::main(worker_threads = 4.0)]
async fn threads_float() {}

#[mini::main(worker_threads = true)]
async fn threads_bool() {}

#[mini::main(flavor = "current_thread", start_paused = "true")]
async fn paused_string() {}

#[mini::main(flavor = "current_thread", start_paused = 1 + 1)]
async fn paused_sum() {}

#[mini::main(crate = 1)]
async fn crate_integer() {}

#[mini::main(crate = "not a path")]
async fn crate_words() {}

#[mini::main(crate = some::<path>)]
async fn crate_generic() {}

fn main() {}
