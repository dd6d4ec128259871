//! Children of a scope are `Send`; those of a local one need not be.

use std::rc::Rc;

fn main() {
    let count = Rc::new(1);
    mini::block_on(mini::scope!(|s| {
        s.spawn(async { println!("{count}") });
    }));
}
