#[mini::main(start_paused = true)]
async fn main() {}

#[mini::test(flavor = "multi_thread", start_paused = false)]
async fn test() {}
