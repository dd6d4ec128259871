//! Locks and channels for tasks: no waiter is left in a list, and what a waiter was given goes on.

use std::future::{Ready, pending, ready};
use std::sync::Arc;

use mini::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch};

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    locks(list).await;
    meetings(list).await;
    channels(list).await;
    queues(list).await;
}

async fn locks(list: &mut List) {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.acquire().await.unwrap();
    waits!(list, semaphore.acquire());
    waits!(list, semaphore.acquire_many(2));
    waits!(list, semaphore.clone().acquire_owned());
    waits!(list, semaphore.clone().acquire_many_owned(2));
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);

    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock().await;
    waits!(list, mutex.lock());
    waits!(list, mutex.clone().lock_owned());
    drop(guard);
    assert!(mutex.try_lock().is_ok());

    let lock = Arc::new(RwLock::new(()));
    let writer = lock.write().await;
    waits!(list, lock.read());
    waits!(list, lock.write());
    waits!(list, lock.clone().read_owned());
    waits!(list, lock.clone().write_owned());
    drop(writer);
    assert!(lock.try_write().is_ok());
}

async fn meetings(list: &mut List) {
    let notify = Arc::new(Notify::new());
    waits!(list, notify.notified());
    waits!(list, notify.clone().notified_owned());
    notify.notify_one();
    notify.notified().await;

    let barrier = Barrier::new(2);
    waits!(list, barrier.wait());
    assert!(format!("{barrier:?}").contains("arrived: 0"), "{barrier:?}");

    let cell = OnceCell::new();
    waits!(list, cell.get_or_init(pending));
    let make: fn() -> Ready<Result<u8, ()>> = || ready(Err(()));
    begins!(list, cell.get_or_try_init(make));
    cell.set(1).unwrap();

    let cell = SetOnce::new();
    waits!(list, cell.wait());
    cell.set(1).unwrap();
}

async fn channels(list: &mut List) {
    let (sender, mut receiver) = watch::channel(0);
    waits!(list, receiver.changed());
    waits!(list, receiver.wait_for(|value| *value > 1));
    waits!(list, sender.closed());
    sender.send(1).unwrap();
    receiver.changed().await.unwrap();

    let (sender, mut receiver) = broadcast::channel(1);
    waits!(list, receiver.recv());
    waits!(list, sender.closed());
    sender.send(1).unwrap();
    assert_eq!(receiver.recv().await, Ok(1));
}

async fn queues(list: &mut List) {
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
