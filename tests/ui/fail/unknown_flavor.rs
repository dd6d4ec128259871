#[mini::main(flavor = "multithread", worker_threads = 2)]
async fn main() {
    assert_eq!(letters().count(), 2);
}

#[mini::main(flavor = "single", start_paused = true)]
async fn letters() -> impl Iterator<Item = char> {
    "ab".chars()
}
