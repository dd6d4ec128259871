//! In a simulation each host is a program: it has a root of its own, from its start to the next one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use mini_context::sim;

#[cfg(feature = "signal")]
use super::super::Reason;
use super::node::Node;
use super::program::new_root;

thread_local! {
    /// By host.
    static ROOTS: RefCell<HashMap<u32, Arc<Node>>> = RefCell::default();
}

/// The group of the program that the host in progress runs; `None` outside of a simulation.
pub(super) fn root() -> Option<Arc<Node>> {
    sim::is_simulated().then(|| root_of(sim::host()))
}

fn root_of(host: u32) -> Arc<Node> {
    ROOTS.with_borrow_mut(|roots| roots.entry(host).or_insert_with(new_root).clone())
}

/// The host is asked to end by a signal.
#[cfg(feature = "signal")]
#[track_caller]
pub(crate) fn ask_to_end(host: u32) {
    root_of(host).token.cancel(Reason::Signal);
}

/// The host begins anew; with `None` all do.
pub(crate) fn forget(host: Option<u32>) {
    let gone: Vec<Arc<Node>> = ROOTS.with_borrow_mut(|roots| match host {
        Some(host) => roots.remove(&host).into_iter().collect(),
        None => std::mem::take(roots).into_values().collect(),
    });
    drop(gone); // not while the map is borrowed: their destructors may ask for another root
}
