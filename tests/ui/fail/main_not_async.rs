#[mini::main]
fn main() {
    work().await;
}

async fn work() {}
