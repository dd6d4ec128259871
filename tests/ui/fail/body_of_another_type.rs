#[mini::main]
async fn early() -> u8 {
    if true {
        return "eight bits";
    }
    0
}

#[mini::main]
async fn late() -> u8 {
    "eight bits"
}

#[mini::main]
async fn missing() -> u8 {}

fn main() {
    early();
    late();
    missing();
}
