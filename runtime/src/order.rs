//! Puts things into an order, for dumps and reports.
//!
//! Each type and each key that `slice::sort` is called for brings 7 kB of code into a program. Here the keys alone are
//! sorted, which are of one type, and the things are moved into their places.

/// Sorts `items` by `key`. Those of the same key keep their order.
pub(crate) fn sorted<T>(items: Vec<T>, key: impl Fn(&T) -> u64) -> Vec<T> {
    let mut order: Vec<(u64, u32)> = items.iter().map(key).zip(0..).collect();
    order.sort();
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|(_, at)| items[at as usize].take()).collect()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_key_keeps_its_order() {
        let items = vec![(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')];
        let sorted: String = sorted(items, |item| item.0).into_iter().map(|item| item.1).collect();
        assert_eq!(sorted, "bedac");
    }
}
