use std::num::ParseIntError;

#[mini::main(flavor = "multi_thread", worker_threads = THREADS + 1)]
async fn main() -> Result<(), ParseIntError> {
    let three = "3".parse::<usize>()?;
    assert_eq!(three, THREADS + 1);
    Ok(())
}

const THREADS: usize = 2;
