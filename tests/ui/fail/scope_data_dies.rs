//! What a child borrows has to outlive the scope.

fn main() {
    let scope = {
        let text = String::from("text");
        mini::scope!(|s| {
            s.spawn(async { println!("{text}") });
        })
    };
    mini::block_on(scope);
}
