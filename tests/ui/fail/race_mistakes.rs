//! What `race!`, `join!` and `scope!` say of a slip.

async fn of<T: ?Sized>() {}

async fn work() {
    mini::race!();
    mini::race! { 1 = std::future::ready(1) };
    mini::race!(of::<dyn Iterator<Item = u8>>(), of::<u8>());
    mini::join!();
    mini::scope!(s.spawn(async {})).await;
}

fn main() {
    mini::block_on(work());
}
