#[mini::test]
#[test]
async fn twice() {}

#[mini::test]
#[should_panic]
#[core::prelude::v1::test]
async fn by_path() {}

#[mini::test]
#[mini::test]
async fn two_of_mini() {}

fn main() {}
