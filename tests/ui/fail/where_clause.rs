#[mini::main]
async fn run() -> u8
where
    u8: Copy,
{
    0
}

fn main() {
    run();
}
