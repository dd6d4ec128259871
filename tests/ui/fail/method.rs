struct Program;

impl Program {
    #[mini::main]
    async fn run(&self) {}

    #[mini::main]
    async fn main(self: Box<Self>) {}
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
