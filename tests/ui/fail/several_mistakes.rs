#[mini::main(flavour = "multi_thread", grace = 10)]
fn main(_: u8) {}
