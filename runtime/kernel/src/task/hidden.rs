//! `Hidden`: the values of the scopes that a thread is inside of, while it polls tasks that are in none of them.
//!
//! A thread that takes a core in the middle of a scope, by `block_on` for example, hides the values before it runs
//! tasks, and shows them to the future that its caller has given. So scopes and polls know nothing of it: a key is
//! listed when a thread enters a scope of it for the first time, and its value is taken out of the place from there.
//!
//! A value that is lent cannot be moved, and stays in sight.
//!
//! Rejected: a list of the scopes that a thread is inside of (each poll of a scope would enter it and leave it).

use std::cell::RefCell;

// Not the one of the models: the places are the standard library's too.
std::thread_local! {
    /// The keys that have had a value on this thread.
    static KEYS: RefCell<Vec<&'static dyn Key>> = const { RefCell::new(Vec::new()) };
}

/// A key of task-local values, whatever their type.
pub trait Key {
    /// Takes the value out of the place, if one is there and not lent.
    fn take(&'static self) -> Option<Box<dyn Value>>;
}

/// A value beside its place.
pub trait Value {
    /// Exchanges it with what is in the place.
    fn swap(&mut self);
}

/// Lists a key that has no value on this thread yet.
#[cold]
pub fn list(key: &'static dyn Key) {
    let _ends = KEYS.try_with(|keys| keys.borrow_mut().push(key)); // a thread that ends polls no task any more
}

/// Takes all values out of sight, until what comes back is dropped.
pub fn hide() -> Hidden {
    let take_all = |keys: &RefCell<Vec<&'static dyn Key>>| keys.borrow().iter().filter_map(|key| key.take()).collect();
    Hidden(KEYS.try_with(take_all).unwrap_or_default())
}

/// While it lives, this thread is inside of no scope but those that it enters meanwhile.
pub struct Hidden(Vec<Box<dyn Value>>);

impl Hidden {
    /// Whether there was no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the values in place, until what comes back is dropped.
    pub fn show(&mut self) -> Shown<'_> {
        self.swap();
        Shown(self)
    }

    fn swap(&mut self) {
        self.0.iter_mut().for_each(|value| value.swap());
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.swap();
    }
}

/// While it lives, the values are in place.
pub struct Shown<'a>(&'a mut Hidden);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.swap();
    }
}
