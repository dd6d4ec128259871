//! `cargo bench -p mini-benches`: the table of mini, tokio and smol. The program is [`mini_benches::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    mini_benches::run(std::env::args().skip(1))
}
