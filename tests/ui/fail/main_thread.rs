#[mini::main(main_thread = 1)]
async fn main() {}

#[mini::main(flavor = "current_thread", main_thread = true)]
async fn one() {}

#[mini::test(main_thread = false)]
async fn test() {}
