use std::error::Error;

#[mini::main]
async fn main() -> Result<(), Box<dyn Error>> {
    assert_eq!(mini::task::try_name().as_deref(), Some("main"));
    Ok(())
}
