#[mini::test]
async fn takes(case: u8) {
    assert_eq!(case, 1);
}

fn main() {}
