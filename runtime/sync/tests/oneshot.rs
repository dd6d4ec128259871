//! Channels for one message: each test is a behaviour.

mod by_hand;

use std::sync::Arc;
use std::task::Poll;

use by_hand::{Task, block_on};
use mini_sync::oneshot::{self, error::TryRecvError};

#[test]
fn a_message_sent_before_or_after_the_wait_arrives() {
    let (sender, receiver) = oneshot::channel();
    sender.send(1).unwrap();
    assert_eq!(block_on(receiver), Ok(1));

    let (sender, mut receiver) = oneshot::channel();
    let task = Task::new();
    assert!(receiver_poll(&mut receiver, &task).is_pending());
    sender.send(2).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(receiver_poll(&mut receiver, &task), Poll::Ready(Ok(2)));
    assert!(receiver.is_terminated());
}

#[test]
fn a_sender_that_is_dropped_is_an_error() {
    let (sender, mut receiver) = oneshot::channel::<u32>();
    let task = Task::new();
    assert!(receiver_poll(&mut receiver, &task).is_pending());
    drop(sender);
    assert_eq!(task.wakes(), 1);
    let Poll::Ready(Err(error)) = receiver_poll(&mut receiver, &task) else { panic!() };
    assert!(error.to_string().contains("dropped without sending"));
}

#[test]
fn when_the_receiver_is_gone_the_message_comes_back() {
    let (mut sender, receiver) = oneshot::channel();
    let task = Task::new();
    assert!(sender.poll_closed(&mut task.cx()).is_pending());
    assert!(!sender.is_closed());
    drop(receiver);
    assert_eq!(task.wakes(), 1);
    assert!(sender.poll_closed(&mut task.cx()).is_ready());
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(1));
}

#[test]
fn after_close_only_what_was_sent_before_arrives() {
    let (sender, mut receiver) = oneshot::channel();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));

    let (sender, mut receiver) = oneshot::channel();
    receiver.close();
    assert_eq!(sender.send(2), Err(2));
    assert!(block_on(receiver).is_err());
}

#[test]
fn close_wakes_both_ends() {
    let (mut sender, mut receiver) = oneshot::channel::<u32>();
    let (watches, waits) = (Task::new(), Task::new());
    assert!(sender.poll_closed(&mut watches.cx()).is_pending());
    assert!(receiver_poll(&mut receiver, &waits).is_pending());
    receiver.close();
    assert_eq!((watches.wakes(), waits.wakes()), (1, 1));
    assert!(matches!(receiver_poll(&mut receiver, &waits), Poll::Ready(Err(_))));
    receiver.close(); // of a channel that is gone
}

#[test]
fn try_recv_tells_not_yet_from_never() {
    let (sender, mut receiver) = oneshot::channel::<u32>();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert!(receiver.is_empty() && !receiver.is_terminated());
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert!(receiver.is_terminated());
}

#[test]
fn a_receiver_that_moves_is_woken_where_it_is() {
    let (sender, mut receiver) = oneshot::channel();
    let (old, new) = (Task::new(), Task::new());
    assert!(receiver_poll(&mut receiver, &old).is_pending());
    assert!(receiver_poll(&mut receiver, &new).is_pending());
    sender.send(1).unwrap();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
}

#[test]
fn a_message_is_dropped_once_wherever_it_ends() {
    let counted = Arc::new(());
    let (sender, receiver) = oneshot::channel();
    sender.send(counted.clone()).unwrap();
    drop(receiver);
    assert_eq!(Arc::strong_count(&counted), 1);
    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    drop(sender.send(counted.clone()));
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_waker_that_panics_at_the_close_takes_nobody_elses_wake_along() {
    let (mut sender, mut receiver) = oneshot::channel::<u8>();
    let [panics, quiet] = [Task::calling(|| panic!("a waker")), Task::new()];
    assert!(sender.poll_closed(&mut panics.cx()).is_pending());
    assert!(receiver_poll(&mut receiver, &quiet).is_pending());
    let closed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| receiver.close()));
    assert!(closed.is_err());
    assert_eq!(quiet.wakes(), 1);
}

#[test]
fn threads_block() {
    for n in 0..if cfg!(miri) { 5 } else { 200 } {
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::spawn(move || receiver.blocking_recv());
        sender.send(n).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(n));
    }
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn polling_after_it_was_ready_is_told() {
    let (sender, mut receiver) = oneshot::channel();
    let task = Task::new();
    sender.send(1).unwrap();
    assert!(receiver_poll(&mut receiver, &task).is_ready());
    let _ = receiver_poll(&mut receiver, &task);
}

fn receiver_poll<T>(receiver: &mut oneshot::Receiver<T>, task: &Task) -> Poll<Result<T, oneshot::error::RecvError>> {
    std::pin::Pin::new(receiver).poll(&mut task.cx())
}
