#[mini::main]
struct Program;

#[mini::main]
pub const MAIN: fn() = main;

#[mini::test]
mod tests {}

#[mini::test]
type Test = fn();

fn main() {
    let _ = (Program, MAIN);
}
