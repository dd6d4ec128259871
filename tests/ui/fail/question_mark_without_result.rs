#[mini::main]
async fn main() {
    "1".parse::<u8>()?;
}
