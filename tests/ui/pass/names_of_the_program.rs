//! Traits for all types, and variants in scope, with names that the expansion might use.
#![allow(non_camel_case_types, dead_code, unused_imports)]

enum Level {
    error,
    runtime,
    body,
}
use Level::*;

trait Ends {
    fn exit(&self) {}
    fn build(&self) -> Result<String, String> {
        Ok(String::new())
    }
    fn output(&self) -> u8 {
        7
    }
}
impl<T: ?Sized> Ends for T {}

#[mini::main]
async fn main() -> Result<(), std::io::Error> {
    5.exit();
    assert_eq!(5.output(), 7);
    Ok(())
}

mod in_time {
    use super::Ends;

    #[mini::main(grace = "1s")]
    async fn main() -> Result<(), std::io::Error> {
        Ok(())
    }
}
