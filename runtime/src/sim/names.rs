//! `Names`: hosts, as a test names them.

use mini_net::sim as network;

/// One host or several, by their names.
///
/// # Examples
///
/// ```
/// mini::sim::Sim::new(7)
///     .run(async {
///         let sim = mini::sim::current();
///         for name in ["a", "b", "c"] {
///             sim.host(name, || async {});
///         }
///         sim.partition("a", "b");
///         sim.partition("a", ["b", "c"]);
///         sim.repair_all();
///     })
///     .unwrap();
/// ```
pub trait Names {
    /// Calls `f` with each name.
    fn each(&self, f: &mut dyn FnMut(&str));
}

impl Names for str {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        f(self);
    }
}

impl Names for String {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        f(self);
    }
}

impl<T: Names + ?Sized> Names for &T {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        (**self).each(f);
    }
}

impl<T: Names, const N: usize> Names for [T; N] {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

impl<T: Names> Names for [T] {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

impl<T: Names> Names for Vec<T> {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

/// The number of a host.
#[track_caller]
pub(super) fn number(name: &str) -> u32 {
    match network::host(name) {
        Some(number) => number,
        // Not in a closure, where the place of the panic would be this line.
        None => panic!("the simulation has no host named `{name}`"),
    }
}

#[track_caller]
pub(crate) fn numbers(names: impl Names) -> Vec<u32> {
    let (mut all, mut numbers) = (Vec::new(), Vec::new());
    names.each(&mut |name| all.push(name.to_owned()));
    for name in all {
        numbers.push(number(&name)); // not in a closure, which has no caller
    }
    numbers
}

/// Every pair of one of the first and one of the second, which are different hosts.
#[track_caller]
pub(super) fn pairs(first: impl Names, second: impl Names) -> Vec<(u32, u32)> {
    let (first, second) = (numbers(first), numbers(second));
    let all = first.iter().flat_map(|&one| second.iter().map(move |&other| (one, other)));
    all.filter(|(one, other)| one != other).collect()
}
