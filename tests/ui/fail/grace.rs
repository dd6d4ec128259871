//! A grace is a time, and that of a program.

mod a_number {
    #[mini::main(grace = 10)]
    async fn main() {}
}

mod no_unit {
    #[mini::main(grace = "10")]
    async fn main() {}
}

mod two_units {
    #[mini::main(grace = "1m30s")]
    async fn main() {}
}

mod another_function {
    #[mini::main(grace = "10s")]
    async fn run() {}
}

mod a_test {
    #[mini::test(grace = "10s")]
    async fn run() {}
}

fn main() {}
