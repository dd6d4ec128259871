#[mini::main]
async fn main() {}
