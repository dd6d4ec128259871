//! `cargo bench -p mini-benches`: mini beside tokio, smol and monoio. The program is [`mini_benches::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    mini_benches::run(std::env::args().skip(1))
}
