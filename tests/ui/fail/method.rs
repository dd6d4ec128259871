struct Program;

impl Program {
    #[mini::main]
    async fn run(&self) {}
}

trait Run {
    #[mini::main]
    async fn run(&mut self, _: u8) {}

    #[mini::main]
    async fn declared();
}

fn main() {
    let _ = Program.run();
}
