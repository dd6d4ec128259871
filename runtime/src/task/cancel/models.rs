//! The promises of `Node` about waiters, children and memory, under loom.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::*;

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Counts the wakes that find a node cancelled.
struct Finds(Arc<Node>, AtomicUsize);

impl Wake for Finds {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(self.0.is_cancelled().into(), Relaxed);
    }
}

fn why(reason: Reason) -> Cancelled {
    Cancelled::new(reason, Location::caller())
}

#[test]
fn a_waiter_that_races_with_a_cancellation_is_told_once() {
    loom::model(|| {
        let node = Node::root();
        let other = node.clone();
        let canceller = thread::spawn(move || other.cancel(why(Reason::Requested)));
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let place = node.add_waiter(Waker::from(count.clone()));
        assert!(canceller.join().unwrap());
        assert_eq!(count.0.load(Relaxed), usize::from(place.is_ok()));
        assert_eq!(Arc::strong_count(&count), 1, "nobody keeps the waker");
        assert!(place.is_err() || node.remove_waiter(place.unwrap()).is_none());
    });
}

#[test]
fn a_wait_that_races_with_a_cancellation_has_left_or_is_woken() {
    for leaves in [true, false] {
        loom::model(move || {
            let token = CancelToken { node: Node::root() };
            let other = token.clone();
            let data = Arc::new(AtomicUsize::new(0));
            let published = data.clone();
            let canceller = thread::spawn(move || {
                published.store(1, Relaxed);
                other.cancel(Reason::Requested);
            });
            let count = Arc::new(Count(AtomicUsize::new(0)));
            let waker = Waker::from(count.clone());
            let cx = &mut std::task::Context::from_waker(&waker);
            let mut wait = Some(Box::pin(token.cancelled()));
            let is_pending = wait.as_mut().unwrap().as_mut().poll(cx).is_pending();
            if !is_pending {
                assert_eq!(data.load(Relaxed), 1, "what came before the cancellation is seen after it");
                assert!(token.is_cancelled());
            }
            if leaves {
                wait = None; // while the other one cancels
                assert_eq!(token.node.sight().waiters, 0, "it has left, or was taken out");
            }
            canceller.join().unwrap();
            if let Some(mut wait) = wait {
                assert_eq!(count.0.load(Relaxed), is_pending.into());
                assert!(wait.as_mut().poll(cx).is_ready());
            }
            drop(waker);
            assert_eq!(Arc::strong_count(&count), 1, "nobody keeps the waker");
            assert_eq!(token.reason(), Some(Reason::Requested));
        });
    }
}

#[test]
fn the_flag_tells_that_there_is_a_reason_and_what_came_before() {
    loom::model(|| {
        let node = Node::root();
        let (other, data) = (node.clone(), Arc::new(AtomicUsize::new(0)));
        let published = data.clone();
        let canceller = thread::spawn(move || {
            published.store(1, Relaxed);
            other.cancel(why(Reason::Requested));
        });
        if node.is_cancelled() {
            assert_eq!(data.load(Relaxed), 1);
            assert!(node.why().is_some());
        }
        canceller.join().unwrap();
    });
}

#[test]
fn a_child_made_during_a_cancellation_is_cancelled_too() {
    loom::model(|| {
        let node = Node::root();
        let other = node.clone();
        let canceller = thread::spawn(move || other.cancel(why(Reason::Signal)));
        let child = node.child();
        let grandchild = child.child();
        canceller.join().unwrap();
        for node in [&node, &child, &grandchild] {
            assert_eq!(node.why().unwrap().reason(), Reason::Signal);
        }
    });
}

#[test]
fn there_is_one_first_reason_for_all() {
    loom::model(|| {
        let node = Node::root();
        let child = node.child();
        let other = node.clone();
        let rival = thread::spawn(move || other.cancel(why(Reason::Signal)));
        let is_first = node.cancel(why(Reason::Requested));
        assert_ne!(rival.join().unwrap(), is_first);
        let expected = if is_first { Reason::Requested } else { Reason::Signal };
        assert_eq!(node.why().unwrap().reason(), expected);
        assert_eq!(child.why().unwrap().reason(), expected);
    });
}

#[test]
fn who_cancels_finds_all_cancelled_also_what_another_thread_is_at() {
    // Both ways round: of an atomic, loom remembers the last access alone. So it does not try the order in which a
    // first load of the main thread comes after a store of the other thread, if that loads before it stores.
    for is_main_above in [true, false] {
        loom::model(move || {
            let top = Node::root();
            let middle = top.child();
            let last = middle.child();
            let finds = Arc::new(Finds(last.clone(), AtomicUsize::new(0)));
            assert!(top.add_waiter(Waker::from(finds.clone())).is_ok());
            let (above, found) = (top.clone(), last.clone());
            let cancel_above = move || {
                assert!(above.cancel(why(Reason::Requested)));
                assert!(found.is_cancelled());
                assert_eq!(finds.1.load(Relaxed), 1, "before the first waker is called");
            };
            let cancel_below = move || middle.cancel(why(Reason::Signal));
            let is_first = if is_main_above {
                let rival = thread::spawn(cancel_below);
                cancel_above();
                rival.join().unwrap()
            } else {
                let rival = thread::spawn(cancel_above);
                let is_first = cancel_below();
                rival.join().unwrap();
                is_first
            };
            let expected = if is_first { Reason::Signal } else { Reason::Requested };
            assert_eq!(last.why().unwrap().reason(), expected);
            assert_eq!((top.sight().children, last.parent.as_ref().unwrap().sight().children), (0, 0));
        });
    }
}

/// The child in between has no handle: it goes with the last one.
#[test]
fn a_child_dropped_during_a_cancellation_leaves_nothing_behind() {
    loom::model(|| {
        let node = Node::root();
        let (last, other) = (node.child().child(), node.clone());
        let canceller = thread::spawn(move || other.cancel(why(Reason::Requested)));
        drop(last);
        canceller.join().unwrap();
        assert_eq!((node.sight().children, Arc::strong_count(&node)), (0, 1));
    });
}
