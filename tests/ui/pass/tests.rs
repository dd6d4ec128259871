// Without `--test` the functions are left out; what they do when run is checked beside the macros.

#[mini::test]
async fn plain() {}

#[mini::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic(expected = "wanted")]
#[ignore = "to see that it is accepted"]
async fn with_attributes() {
    panic!("wanted");
}

fn main() {}
