#[mini::main]
async fn main(args: Vec<String>, name: &str) {
    assert_eq!(args, [name]);
}
