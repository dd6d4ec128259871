#[mini::main]
async unsafe fn run() {}

#[mini::main]
pub async extern "C" fn main() {}
