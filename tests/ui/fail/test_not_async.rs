#[mini::test]
fn sync() {}

fn main() {}
