#[mini::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    assert_eq!(std::thread::current().name(), Some("main"));
}
