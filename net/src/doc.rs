//! A runtime of two dozen lines for this crate's own examples and tests; everybody else uses the one of `mini`.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use crate::{Blocking, Events, Reactor, enter};

/// Rings the reactor's bell, whose echo ends the turn that the thread sleeps in.
struct Bell(Reactor);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Runs `future` on this thread with a reactor of its own, and a thread for each job that may block.
///
/// # Panics
///
/// If the kernel refuses a reactor, or a wait.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let reactor = Reactor::new().expect("a reactor can be opened");
    let blocking: Blocking = Arc::new(|job| drop(std::thread::spawn(job)));
    let _entered = enter(&reactor, &blocking);
    let waker = Arc::new(Bell(reactor.clone())).into();
    let mut cx = Context::from_waker(&waker);
    let mut events = Events::new();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        reactor.turn(&mut events, None).expect("the wait works");
    }
}
