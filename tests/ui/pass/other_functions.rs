use mini as rt;

mod shapes {
    #[mini::main(crate = "super::rt")]
    pub(crate) async fn corners() -> impl Iterator<Item = u8> {
        0..4
    }
}

fn main() {
    #[rt::main(crate = rt, flavor = "current_thread")]
    async fn sides() -> usize {
        4
    }
    assert_eq!(shapes::corners().count(), sides());
}
