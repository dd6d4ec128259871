//! Locks and channels: no waiter is left in a list, no permit is lost, and no message but the one of a dropped `send`.

use std::sync::Arc;

use mini::sync::{Mutex, Semaphore, mpsc, oneshot};

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    locks(list).await;
    channels(list).await;
}

async fn locks(list: &mut List) {
    let mutex = Arc::new(Mutex::new(7));
    let held = mutex.lock().await;
    waits!(list, mutex.lock());
    waits!(list, mutex.clone().lock_owned());
    drop(held);
    assert_eq!(*mutex.try_lock().expect("nobody waits"), 7);

    let semaphore = Arc::new(Semaphore::new(2));
    let held = semaphore.acquire().await.unwrap();
    waits!(list, semaphore.acquire_many(2));
    waits!(list, semaphore.clone().acquire_many_owned(2));
    let all = semaphore.acquire().await.unwrap();
    waits!(list, semaphore.acquire());
    waits!(list, semaphore.clone().acquire_owned());
    drop((held, all));
    assert_eq!(semaphore.available_permits(), 2);
}

async fn channels(list: &mut List) {
    let (sender, mut receiver) = mpsc::channel(1);
    waits!(list, receiver.recv(), kept);
    let mut buffer = Vec::new();
    waits!(list, receiver.recv_many(&mut buffer, 2), kept);
    waits!(list, sender.closed());
    sender.try_send(1).unwrap(); // to the receiver, where it waited
    sender.try_send(2).unwrap();
    waits!(list, sender.send(3));
    waits!(list, sender.reserve());
    waits!(list, sender.reserve_many(1));
    waits!(list, sender.clone().reserve_owned());
    assert_eq!(receiver.recv_many(&mut buffer, 3).await, 2);
    assert_eq!(buffer, [1, 2]);
    assert_eq!(sender.capacity(), 1);

    let (mut sender, mut receiver) = oneshot::channel();
    waits!(list, sender.closed(), kept);
    waits!(list, &mut receiver, kept);
    sender.send(4).unwrap();
    assert_eq!(receiver.await, Ok(4));
}
