//! A child cannot borrow what is local to the body: it may outlive that.

async fn work() {
    mini::scope!(|s| {
        let local = String::from("text");
        s.spawn(async { println!("{local}") });
    })
    .await;
}

fn main() {
    mini::block_on(work());
}
