//! Channels of `mpsc`: each test is a behaviour.

mod by_hand;

use std::sync::Arc;
use std::task::Poll;

use by_hand::{Task, block_on};
use mini_sync::mpsc::{self, error::*};

#[test]
fn messages_come_in_order() {
    let (sender, mut receiver) = mpsc::channel(16);
    for n in 0..10 {
        sender.try_send(n).unwrap();
    }
    assert_eq!(receiver.len(), 10);
    for n in 0..10 {
        assert_eq!(block_on(receiver.recv()), Some(n));
    }
    assert!(receiver.is_empty());
}

#[test]
fn a_message_handed_to_a_waiting_receiver_comes_before_queued_ones() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let task = Task::new();
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    for n in 0..200 {
        sender.send(n).unwrap();
    }
    assert_eq!(task.wakes(), 1);
    assert_eq!(receiver.len(), 200);
    for n in 0..200 {
        assert_eq!(receiver.try_recv(), Ok(n));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_full_channel_refuses_and_says_so() {
    let (sender, mut receiver) = mpsc::channel(2);
    sender.try_send(1).unwrap();
    assert_eq!(sender.capacity(), 1);
    sender.try_send(2).unwrap();
    assert_eq!((sender.capacity(), sender.max_capacity()), (0, 2));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.capacity(), 1);
    sender.try_send(3).unwrap();
}

#[test]
fn a_message_for_a_waiting_receiver_takes_no_room() {
    let (sender, mut receiver) = mpsc::channel(1);
    let task = Task::new();
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    sender.try_send(1).unwrap();
    assert_eq!(sender.capacity(), 1);
    sender.try_send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(Some(1)));
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(Some(2)));
}

#[test]
fn senders_that_wait_are_served_in_order() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (first, second) = (Task::new(), Task::new());
    let mut sends = [Box::pin(sender.send(1)), Box::pin(sender.send(2))];
    assert!(sends[0].as_mut().poll(&mut first.cx()).is_pending());
    assert!(sends[1].as_mut().poll(&mut second.cx()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    // The room is the first one's, though it has not run yet.
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert!(sends[1].as_mut().poll(&mut second.cx()).is_pending());
    assert_eq!(sends[0].as_mut().poll(&mut first.cx()), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(second.wakes(), 1);
    assert_eq!(sends[1].as_mut().poll(&mut second.cx()), Poll::Ready(Ok(())));
}

#[test]
fn a_send_that_is_dropped_passes_its_room_on() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (first, second) = (Task::new(), Task::new());
    let mut dropped = Box::pin(sender.send(1));
    let mut kept = Box::pin(sender.send(2));
    assert!(dropped.as_mut().poll(&mut first.cx()).is_pending());
    assert!(kept.as_mut().poll(&mut second.cx()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0)); // the room is granted to the first
    drop(dropped);
    assert_eq!(second.wakes(), 1);
    assert_eq!(kept.as_mut().poll(&mut second.cx()), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn recv_that_is_dropped_loses_no_message() {
    let (sender, mut receiver) = mpsc::channel(1);
    let task = Task::new();
    let mut recv = Box::pin(receiver.recv());
    assert!(recv.as_mut().poll(&mut task.cx()).is_pending());
    sender.try_send(7).unwrap();
    drop(recv);
    assert_eq!(receiver.try_recv(), Ok(7));
}

#[test]
fn when_all_senders_are_gone_the_rest_is_received_and_then_none() {
    let (sender, mut receiver) = mpsc::channel(4);
    let other = sender.clone();
    sender.try_send(1).unwrap();
    drop(sender);
    assert_eq!(block_on(receiver.recv()), Some(1));
    let task = Task::new();
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    drop(other);
    assert_eq!(task.wakes(), 1);
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(None));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert!(receiver.is_closed());
}

#[test]
fn when_the_receiver_is_gone_messages_come_back() {
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let task = Task::new();
    let mut send = Box::pin(sender.send(2));
    assert!(send.as_mut().poll(&mut task.cx()).is_pending());
    drop(receiver);
    assert_eq!(task.wakes(), 1);
    assert_eq!(send.as_mut().poll(&mut task.cx()), Poll::Ready(Err(SendError(2))));
    assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    assert_eq!(block_on(sender.send(4)), Err(SendError(4)));
    assert!(sender.is_closed());
    let (sender, receiver) = mpsc::unbounded_channel();
    drop(receiver);
    assert_eq!(sender.send(5), Err(SendError(5)));
}

#[test]
fn a_message_that_got_room_comes_back_if_the_receiver_goes_or_closes_before_it_is_sent() {
    for closes in [false, true] {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(1).unwrap();
        let task = Task::new();
        let mut send = Box::pin(sender.send(2));
        assert!(send.as_mut().poll(&mut task.cx()).is_pending());
        assert_eq!((receiver.try_recv(), task.wakes()), (Ok(1), 1)); // it has room now
        let mut kept = Some(receiver).filter(|_| closes);
        let waiting = Task::new();
        if let Some(receiver) = &mut kept {
            receiver.close();
            assert!(receiver.poll_recv(&mut waiting.cx()).is_pending(), "the room may still be used");
        }
        assert_eq!(send.as_mut().poll(&mut task.cx()), Poll::Ready(Err(SendError(2))));
        if let Some(receiver) = &mut kept {
            assert_eq!(waiting.wakes(), 1);
            assert_eq!(receiver.poll_recv(&mut waiting.cx()), Poll::Ready(None));
        }
    }
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let (task, other) = (Task::new(), Task::new());
    let mut reserve = Box::pin(sender.reserve());
    assert!(reserve.as_mut().poll(&mut task.cx()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(1));
    drop(receiver);
    assert!(matches!(reserve.as_mut().poll(&mut other.cx()), Poll::Ready(Err(SendError(())))));
}

#[test]
fn after_close_what_was_sent_or_reserved_still_comes() {
    let (sender, mut receiver) = mpsc::channel(3);
    sender.try_send(1).unwrap();
    let used = sender.try_reserve().unwrap();
    let unused = sender.try_reserve().unwrap();
    receiver.close();
    assert_eq!(sender.try_send(9), Err(TrySendError::Closed(9)));
    assert_eq!(sender.try_reserve().err(), Some(TrySendError::Closed(())));
    let task = Task::new();
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(Some(1)));
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    used.send(2);
    assert_eq!(task.wakes(), 1);
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(Some(2)));
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    drop(unused);
    assert_eq!(task.wakes(), 2);
    assert_eq!(receiver.poll_recv(&mut task.cx()), Poll::Ready(None));
}

#[test]
fn closing_ends_those_who_wait_for_room() {
    let (sender, mut receiver) = mpsc::channel::<()>(2);
    let held = sender.try_reserve().unwrap();
    let tasks = [Task::new(), Task::new()];
    // The first has one of its two already.
    let mut many = Box::pin(sender.reserve_many(2));
    let mut one = Box::pin(sender.reserve());
    assert!(many.as_mut().poll(&mut tasks[0].cx()).is_pending());
    assert!(one.as_mut().poll(&mut tasks[1].cx()).is_pending());
    receiver.close();
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    assert!(matches!(many.as_mut().poll(&mut tasks[0].cx()), Poll::Ready(Err(_))));
    assert!(matches!(one.as_mut().poll(&mut tasks[1].cx()), Poll::Ready(Err(_))));
    drop(held);
    assert_eq!(block_on(receiver.recv()), None);
}

#[test]
fn a_grant_that_is_dropped_after_close_ends_the_channel() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let (sending, receiving) = (Task::new(), Task::new());
    let mut reserve = Box::pin(sender.reserve());
    assert!(reserve.as_mut().poll(&mut sending.cx()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(1)); // grants the room
    receiver.close();
    assert!(receiver.poll_recv(&mut receiving.cx()).is_pending());
    drop(reserve);
    assert_eq!(receiving.wakes(), 1);
    assert_eq!(receiver.poll_recv(&mut receiving.cx()), Poll::Ready(None));
}

#[test]
fn reserved_room_is_nobody_elses() {
    let (sender, mut receiver) = mpsc::channel(2);
    let permits = sender.try_reserve_many(2).unwrap();
    assert_eq!(permits.len(), 2);
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    for (n, permit) in permits.enumerate() {
        permit.send(n);
    }
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(0), Ok(1)));
    drop(sender.try_reserve_many(2).unwrap().next());
    assert_eq!(sender.capacity(), 2);
    assert_eq!(sender.try_reserve_many(3).err(), Some(TrySendError::Full(())));
    assert!(block_on(sender.reserve_many(3)).is_err());
    assert_eq!(block_on(sender.reserve_many(0)).unwrap().len(), 0);
}

#[test]
fn an_owned_permit_gives_its_sender_back() {
    let (sender, mut receiver) = mpsc::channel(1);
    let permit = block_on(sender.clone().reserve_owned()).unwrap();
    assert!(permit.same_channel_as_sender(&sender));
    assert!(matches!(sender.clone().try_reserve_owned(), Err(TrySendError::Full(_))));
    let back = permit.send(1);
    assert!(back.same_channel(&sender));
    assert_eq!(receiver.try_recv(), Ok(1));
    let back = sender.try_reserve_owned().unwrap().release();
    assert_eq!(back.capacity(), 1);
}

#[test]
fn recv_many_takes_what_is_there_up_to_the_limit() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut buffer = vec![100];
    (0..150).for_each(|n| sender.send(n).unwrap());
    assert_eq!(block_on(receiver.recv_many(&mut buffer, 0)), 0);
    assert_eq!(block_on(receiver.recv_many(&mut buffer, 100)), 100);
    assert_eq!(block_on(receiver.recv_many(&mut buffer, 100)), 50);
    assert!(buffer.into_iter().eq([100].into_iter().chain(0..150)));
    drop(sender);
    assert_eq!(block_on(receiver.recv_many(&mut Vec::new(), 10)), 0);
}

#[test]
fn closed_waits_for_the_end_of_the_receiver() {
    let (sender, receiver) = mpsc::channel::<()>(1);
    let task = Task::new();
    let mut closed = Box::pin(sender.closed());
    assert!(closed.as_mut().poll(&mut task.cx()).is_pending());
    drop(receiver);
    assert_eq!(task.wakes(), 1);
    assert!(closed.as_mut().poll(&mut task.cx()).is_ready());
    block_on(sender.closed());
}

#[test]
fn a_weak_sender_keeps_nothing_open() {
    let (sender, mut receiver) = mpsc::channel(1);
    let weak = sender.downgrade();
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    weak.upgrade().unwrap().try_send(1).unwrap();
    assert_eq!(receiver.sender_strong_count(), 1);
    drop(sender);
    assert!(weak.clone().upgrade().is_none());
    assert_eq!(receiver.sender_weak_count(), 1);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Err(TryRecvError::Disconnected)));
}

#[test]
fn every_message_is_dropped_once() {
    let counted = Arc::new(());
    for is_waiting in [false, true] {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let task = Task::new();
        if is_waiting {
            assert!(receiver.poll_recv(&mut task.cx()).is_pending());
        }
        (0..200).for_each(|_| sender.send(counted.clone()).unwrap());
        drop(receiver.try_recv());
        drop(receiver);
        assert_eq!(Arc::strong_count(&counted), 1);
        drop(sender.send(counted.clone()));
    }
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_message_sent_under_a_permit_to_nobody_is_dropped() {
    let counted = Arc::new(());
    let (sender, receiver) = mpsc::channel(1);
    let permit = sender.try_reserve().unwrap();
    drop(receiver);
    permit.send(counted.clone());
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_receiver_that_moves_is_woken_where_it_is() {
    let (sender, mut receiver) = mpsc::channel(1);
    let (old, new) = (Task::new(), Task::new());
    assert!(receiver.poll_recv(&mut old.cx()).is_pending());
    assert!(receiver.poll_recv(&mut new.cx()).is_pending());
    sender.try_send(1).unwrap();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
    assert_eq!(receiver.poll_recv(&mut old.cx()), Poll::Ready(Some(1)));
}

#[test]
fn a_waker_that_sends_to_its_own_channel_is_no_deadlock() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let again = sender.clone();
    let task = Task::calling(move || again.send(2).unwrap());
    assert!(receiver.poll_recv(&mut task.cx()).is_pending());
    sender.send(1).unwrap();
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
}

#[test]
fn a_receiver_that_is_always_ready_lets_others_run() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    (0..1000).for_each(|n| sender.send(n).unwrap());
    let task = Task::new();
    mini_context::begin_poll(7);
    let received = (0..1000).take_while(|_| receiver.poll_recv(&mut task.cx()).is_ready()).count();
    assert!((1..1000).contains(&received), "{received}");
    assert_eq!(task.wakes(), 1);
}

#[test]
#[should_panic(expected = "at least one message")]
fn a_channel_without_room_is_refused() {
    mpsc::channel::<()>(0);
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(SendError(1).to_string(), "the receiver was dropped or has closed the channel");
    assert_eq!(format!("{:?}", TrySendError::Full(1)), "Full(..)");
    let (sender, receiver) = mpsc::channel::<()>(1);
    let text = format!("{sender:?} {receiver:?}");
    assert!(text.contains("senders: 1") && text.contains("made_at: ") && text.contains("tests/mpsc.rs"), "{text}");
}

#[test]
fn threads_send_and_block() {
    let (sender, mut receiver) = mpsc::channel(2);
    let (threads, each) = if cfg!(miri) { (2, 20) } else { (4, 2_000) };
    let total = std::thread::scope(|scope| {
        for thread in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || (0..each).for_each(|n| sender.blocking_send((thread, n)).unwrap()));
        }
        drop(sender);
        let mut next = vec![0; threads];
        while let Some((thread, n)) = receiver.blocking_recv() {
            assert_eq!(n, next[thread], "in the order of its sender");
            next[thread] += 1;
        }
        next.into_iter().sum::<i32>()
    });
    assert_eq!(total, threads as i32 * each);
}

/// A message is handed over, and another queued, between the receiver's look without the lock and its look with it.
#[test]
fn what_is_handed_over_comes_first_whenever_the_receiver_looks() {
    let rounds = if cfg!(miri) { 20 } else { 2_000 };
    for round in 0..rounds {
        let (sender, mut receiver) = mpsc::channel(4);
        let task = Task::new();
        assert!(receiver.poll_recv(&mut task.cx()).is_pending());
        let sending = std::thread::spawn(move || {
            sender.try_send(1).unwrap();
            if round % 2 == 0 {
                sender.try_send(2).unwrap();
            }
        });
        let mut received = Vec::new();
        loop {
            match receiver.try_recv() {
                Ok(message) => received.push(message),
                Err(TryRecvError::Empty) => std::thread::yield_now(),
                Err(TryRecvError::Disconnected) => break,
            }
        }
        sending.join().unwrap();
        assert_eq!(received, if round % 2 == 0 { vec![1, 2] } else { vec![1] });
    }
}

#[test]
fn recv_many_takes_no_more_than_there_was() {
    let (sender, mut receiver) = mpsc::channel(2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    let waiting = sender.clone();
    let task = Task::new();
    let mut third = Box::pin(waiting.send(3));
    assert!(third.as_mut().poll(&mut task.cx()).is_pending());
    let mut buffer = Vec::new();
    assert_eq!(block_on(receiver.recv_many(&mut buffer, usize::MAX)), 2);
    assert_eq!(third.as_mut().poll(&mut task.cx()), Poll::Ready(Ok(())));
}

#[test]
fn a_waker_that_panics_takes_nobody_elses_wake_along() {
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let [panics, quiet, closing] = [Task::calling(|| panic!("a waker")), Task::new(), Task::new()];
    let mut sends = [Box::pin(sender.send(1)), Box::pin(sender.send(2))];
    assert!(sends[0].as_mut().poll(&mut panics.cx()).is_pending());
    assert!(sends[1].as_mut().poll(&mut quiet.cx()).is_pending());
    let mut closed = Box::pin(sender.closed());
    assert!(closed.as_mut().poll(&mut closing.cx()).is_pending());
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(receiver)));
    assert!(dropped.is_err());
    assert_eq!((quiet.wakes(), closing.wakes()), (1, 1));
}

/// The sender that a receive wakes may be anybody's: what is received stays in the channel if its waker panics.
#[test]
fn a_waker_that_panics_loses_no_message() {
    type Receive = fn(&mut mpsc::Receiver<i32>) -> Option<i32>;
    let receives: [Receive; 4] = [
        |receiver| receiver.try_recv().ok(),
        |receiver| block_on(receiver.recv()),
        |receiver| receiver.blocking_recv(),
        |receiver| {
            let mut buffer = Vec::new();
            block_on(receiver.recv_many(&mut buffer, 1));
            buffer.pop()
        },
    ];
    for receive in receives {
        let (sender, mut receiver) = mpsc::channel(2);
        (0..2).for_each(|number| sender.try_send(number).unwrap());
        let panics = Task::calling(|| panic!("a waker"));
        let mut sends = [Box::pin(sender.send(2)), Box::pin(sender.send(3))];
        for send in &mut sends {
            assert!(send.as_mut().poll(&mut panics.cx()).is_pending());
        }
        let mut receives_again = || {
            let received = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| receive(&mut receiver)));
            received.unwrap_or_else(|_| {
                assert!(!receiver.is_empty(), "it is still there");
                receive(&mut receiver)
            })
        };
        assert_eq!([receives_again(), receives_again()], [Some(0), Some(1)]);
        for send in &mut sends {
            assert_eq!(send.as_mut().poll(&mut panics.cx()), Poll::Ready(Ok(())));
        }
        assert_eq!([receive(&mut receiver), receive(&mut receiver)], [Some(2), Some(3)]);
        assert_eq!((sender.capacity(), receiver.is_empty()), (2, true));
    }
}

#[test]
fn a_channel_may_be_as_large_as_a_semaphore() {
    let (sender, mut receiver) = mpsc::channel(mini_sync::Semaphore::MAX_PERMITS);
    sender.try_send(1).unwrap();
    assert_eq!(sender.capacity(), mini_sync::Semaphore::MAX_PERMITS - 1);
    assert_eq!(block_on(receiver.recv()), Some(1));
}

/// Notes its number when it is dropped.
struct Numbered(usize, Arc<std::sync::Mutex<Vec<usize>>>);

impl Drop for Numbered {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn messages_that_nobody_receives_are_dropped_in_their_order() {
    let dropped = Arc::default();
    let message = |number| Numbered(number, Arc::clone(&dropped));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    for number in 0..4 {
        sender.send(message(number)).unwrap_or_else(|_| panic!("it is open"));
    }
    drop(receiver.try_recv());
    for number in 4..200 {
        sender.send(message(number)).unwrap_or_else(|_| panic!("it is open"));
    }
    drop(receiver);
    assert!(dropped.lock().unwrap().drain(..).eq(0..200));

    let (sender, receiver) = mpsc::channel(200);
    for number in 0..200 {
        sender.try_send(message(number)).unwrap_or_else(|_| panic!("it is open"));
    }
    drop(receiver);
    assert!(dropped.lock().unwrap().drain(..).eq(0..200));
}

#[test]
fn the_room_of_messages_that_nobody_receives_is_free_again() {
    let (sender, receiver) = mpsc::channel(4);
    sender.try_send(1).unwrap();
    let permit = sender.try_reserve().unwrap();
    drop(receiver);
    assert_eq!(sender.capacity(), 3);
    permit.send(2);
    assert_eq!((sender.capacity(), sender.max_capacity()), (4, 4));
    let (weak, mut reserve) = (sender.downgrade(), Box::pin(sender.reserve_owned()));
    assert!(block_on(reserve.as_mut()).is_err());
    assert_eq!(weak.strong_count(), 0, "a future that is over keeps no sender");
}

/// A receiver of jobs may be in a task that is sent, and be borrowed over an await.
type Job = Box<dyn FnOnce() + Send>;

const fn is_shared<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
const fn is_unpin<T: Unpin>() {}
const _: () = is_shared::<mpsc::Receiver<Job>>();
const _: () = is_shared::<mpsc::UnboundedReceiver<Job>>();
const _: () = is_unpin::<mpsc::Receiver<std::marker::PhantomPinned>>();
const _: () = is_unpin::<mpsc::UnboundedReceiver<std::marker::PhantomPinned>>();
