//! A token's place in the tree: whether it is cancelled, its waiters, and the tokens that are cancelled with it.
//!
//! Called by `CancelToken` and by the futures that wait for one.
//!
//! # No cancellation is missed
//!
//! `mark` notes the reason under the lock of the node, and in the same critical section takes out the wakers and lists
//! the children. A waker or a child is added under that lock too, and only while there is no reason. So each is either
//! found by `mark`, or its owner finds the reason. The flag repeats the reason for readers without the lock; it is
//! raised inside of the critical section, so a thread that sees it finds the reason.
//!
//! All nodes of the subtree are marked before the first waker is called: a woken task finds each of its tokens
//! cancelled. All are also marked when `cancel` returns, even nodes that another thread is about to mark: a marked node
//! keeps its children until all nodes below it are marked, and each thread that reaches the node before that walks its
//! children too. They get the reason of the node, whichever thread is first.
//!
//! # Depth
//!
//! A node keeps its parent, the parent knows its children weakly. Trees may be as deep as memory allows, so neither
//! `cancel` nor the drop recurses: one has a list of nodes to visit, the other climbs as long as it drops the last
//! reference (`Arc::into_inner` says so to exactly one thread).
//!
//! Rejected: one lock for a whole tree (the root of a program would be every token's lock). Intrusive lists of waiters
//! (unsafe code, to save one allocation in the life of a token). Children that do not keep their parent (in the middle
//! of a tree, a token without a handle would have to pass its children to its parent).

use std::sync::{Arc, Weak};
use std::task::Waker;

use mini_context::contain;
use mini_kernel::primitives::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::task::slab::{NONE, Slab};

use super::Cancelled;

pub(super) struct Node {
    is_cancelled: AtomicBool,
    state: Mutex<State>,
    /// Until the drop takes it.
    pub(super) parent: Option<Arc<Node>>,
    /// Its number among the children of the parent; written once, under the lock of the parent.
    key: AtomicU32,
}

struct State {
    why: Option<Cancelled>,
    name: Option<Arc<str>>,
    /// Empty once there is a reason.
    waiters: Slab<Waker>,
    /// Empty once all below are cancelled.
    children: Slab<Weak<Node>>,
}

/// The state of a token, for people.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) name: Option<Arc<str>>,
    pub(super) why: Option<Cancelled>,
    pub(super) children: usize,
    pub(super) waiters: usize,
}

impl Node {
    pub(super) fn root() -> Arc<Self> {
        Self::new(None)
    }

    fn new(parent: Option<Arc<Node>>) -> Arc<Self> {
        let state = State { why: None, name: None, waiters: Slab::new(), children: Slab::new() };
        let (is_cancelled, key) = (AtomicBool::new(false), AtomicU32::new(NONE));
        Arc::new(Self { is_cancelled, state: Mutex::new(state), parent, key })
    }

    /// A node that is cancelled with this one: at once if this one is.
    pub(super) fn child(self: &Arc<Self>) -> Arc<Self> {
        let child = Self::new(Some(self.clone()));
        let mut state = lock(&self.state);
        let Some(why) = state.why else {
            let key = state.children.insert(Arc::downgrade(&child));
            child.key.store(key, Relaxed); // read by the drop, which comes after all else
            drop(state);
            return child;
        };
        drop(state);
        child.cancel(why);
        child
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Acquire) // pairs with the Release in `mark`
    }

    pub(super) fn why(&self) -> Option<Cancelled> {
        if self.is_cancelled() { lock(&self.state).why } else { None }
    }

    pub(super) fn set_name(&self, name: Arc<str>) {
        let _before = lock(&self.state).name.replace(name);
    }

    /// Cancels the node and all below it. Says whether this was the first reason.
    pub(super) fn cancel(self: &Arc<Self>, why: Cancelled) -> bool {
        let (mut wakers, mut nodes, mut parents) = (Vec::new(), Vec::new(), Vec::new());
        let is_first = self.mark(why, &mut wakers, &mut nodes);
        if !nodes.is_empty() {
            parents.push(self.clone());
        }
        while let Some((node, why)) = nodes.pop() {
            let others = nodes.len();
            node.mark(why, &mut wakers, &mut nodes);
            if nodes.len() > others {
                parents.push(node);
            }
        }
        parents.iter().for_each(|node| node.forget_children());
        for waker in wakers {
            contain(|| waker.wake()); // if one panics, the others are woken all the same
        }
        is_first
    }

    /// Cancels this node alone, unless it is cancelled: hands out its waiters. In either case hands out the children
    /// that may not be cancelled yet, with the reason for them.
    fn mark(&self, why: Cancelled, wakers: &mut Vec<Waker>, nodes: &mut Vec<(Arc<Node>, Cancelled)>) -> bool {
        let mut state = lock(&self.state);
        let is_first = state.why.is_none();
        let why = *state.why.get_or_insert(why);
        let waiters = is_first.then(|| state.waiters.take());
        self.is_cancelled.store(true, Release);
        nodes.extend(state.children.iter().filter_map(|(_, child)| Some((child.upgrade()?, why))));
        drop(state);
        wakers.extend(waiters.into_iter().flatten());
        is_first
    }

    /// All below are cancelled: a thread that comes here need not look at them.
    fn forget_children(&self) {
        let _children = lock(&self.state).children.take();
    }

    /// Keeps `waker` until the node is cancelled or [`remove_waiter`](Self::remove_waiter) is called with the number,
    /// or returns the reason.
    pub(super) fn add_waiter(&self, waker: Waker) -> Result<u32, Cancelled> {
        let mut state = lock(&self.state);
        match state.why {
            None => Ok(state.waiters.insert(waker)),
            Some(why) => {
                drop(state);
                drop(waker); // a user's code: after the lock
                Err(why)
            }
        }
    }

    /// Takes a waker back. For a number of [`add_waiter`](Self::add_waiter), once.
    pub(super) fn remove_waiter(&self, key: u32) -> Option<Waker> {
        lock(&self.state).waiters.remove(key) // nothing is there if the node was cancelled meanwhile
    }

    fn remove_child(&self, key: u32) {
        let _gone = lock(&self.state).children.remove(key);
    }

    pub(super) fn sight(&self) -> Sight {
        let state = lock(&self.state);
        let (children, waiters) = (state.children.len(), state.waiters.len());
        Sight { name: state.name.clone(), why: state.why, children, waiters }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut key = self.key.load(Relaxed);
        let mut parent = self.parent.take();
        while let Some(node) = parent {
            if key != NONE {
                node.remove_child(key);
            }
            parent = Arc::into_inner(node).and_then(|mut last| {
                key = last.key.load(Relaxed);
                last.parent.take() // so that the drop of `last` does not climb
            });
        }
    }
}
