//! The same echoes by a bare loop: a queue of tasks, and queues of bytes between them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::{BYTES, CLIENTS, MESSAGES};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks that were woken.
type Ready = Arc<Mutex<VecDeque<usize>>>;

struct ById {
    id: usize,
    ready: Ready,
}

impl Wake for ById {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.id);
    }
}

/// Bytes on their way in one direction.
#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    reader: Option<Waker>,
}

impl Pipe {
    fn send(&self, bytes: &[u8]) {
        let reader = {
            let mut state = self.0.borrow_mut();
            state.bytes.extend(bytes);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    async fn receive(&self, message: &mut [u8]) {
        let mut at = 0;
        std::future::poll_fn(|context| {
            let mut state = self.0.borrow_mut();
            while at < message.len() {
                let Some(byte) = state.bytes.pop_front() else {
                    state.reader = Some(context.waker().clone());
                    return Poll::Pending;
                };
                message[at] = byte;
                at += 1;
            }
            Poll::Ready(())
        })
        .await;
    }
}

async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Each message in two pieces, as those of the simulation come now and then: so there are as many polls as there.
async fn ask(to: Pipe, from: Pipe) {
    let (first, second) = [7; BYTES].split_at(BYTES / 2);
    for _ in 0..MESSAGES {
        to.send(first);
        yield_now().await;
        to.send(second);
        from.receive(&mut [0; BYTES]).await;
    }
}

async fn serve(from: Pipe, to: Pipe) {
    let mut message = [0; BYTES];
    for _ in 0..MESSAGES {
        from.receive(&mut message).await;
        to.send(&message);
    }
}

/// Returns how many polls there were.
pub(crate) fn echo() -> u64 {
    let ready = Ready::default();
    let pipes = (0..CLIENTS).map(|_| <(Pipe, Pipe)>::default());
    let pair = |(to, from): (Pipe, Pipe)| {
        let client: Task = Box::pin(ask(to.clone(), from.clone()));
        [client, Box::pin(serve(to, from))]
    };
    let mut tasks: Vec<Option<Task>> = pipes.flat_map(pair).map(Some).collect();
    let wakers: Vec<Waker> = (0..tasks.len()).map(|id| Arc::new(ById { id, ready: ready.clone() }).into()).collect();
    wakers.iter().for_each(Waker::wake_by_ref);
    let mut polls = 0;
    loop {
        let next = ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(id) = next else { break };
        if let Some(task) = &mut tasks[id] {
            polls += 1;
            if task.as_mut().poll(&mut Context::from_waker(&wakers[id])).is_ready() {
                tasks[id] = None;
            }
        }
    }
    assert!(tasks.iter().all(Option::is_none), "an echo is missing");
    polls
}
