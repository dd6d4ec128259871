#[mini::main]
async fn main<T: Default, F: Fn() -> T>() -> T {
    T::default()
}
