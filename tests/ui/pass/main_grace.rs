//! A program that ends by itself has the exit code of its `main`.

use std::rc::Rc;

use mini::task::{Group, Reason};

#[mini::main(grace = "1h")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let not_send = Rc::new(7);
    let group = Group::new();
    let token = group.token();
    group.spawn(async move {
        token.cancelled().await;
    });
    mini::task::yield_now().await;
    let report = group.shutdown(Reason::Requested).await;
    assert!(report.is_clean() && *not_send == 7);
    Ok(())
}
