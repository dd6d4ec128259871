//! Bugs that need a certain order of tasks, and nothing else.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use mini::sync::{Mutex, Notify};
use mini::task::{spawn_local, yield_now};

/// A deposit reads the balance under one lock and writes it under the next.
pub(super) async fn lost_update(is_mended: bool) {
    let balance = Rc::new(Mutex::new(0));
    let deposits = [10, 20].map(|amount| {
        let balance = balance.clone();
        spawn_local(async move {
            if is_mended {
                *balance.lock().await += amount;
            } else {
                let before = *balance.lock().await;
                *balance.lock().await = before + amount;
            }
        })
    });
    for deposit in deposits {
        deposit.await.unwrap();
    }
    assert_eq!(*balance.lock().await, 30, "a deposit is lost");
}

/// A row of a table. A transaction commits if nobody has written the row since the transaction read it.
#[derive(Default)]
struct Row {
    value: u64,
    version: u64,
}

/// A transaction that meets a conflict is tried again, with the value that it has computed from its first read.
///
/// Published: TiDB 2.1.7 applied the updates of a transaction again after a conflict, without its reads, and so lost
/// updates by default (K. Kingsbury, Jepsen: TiDB 2.1.7, 2019, <https://jepsen.io/analyses/tidb-2.1.7>).
pub(super) async fn blind_retry(is_mended: bool) {
    let row = Rc::new(Mutex::new(Row::default()));
    let orders = [1, 2, 4].map(|amount| {
        let row = row.clone();
        spawn_local(async move {
            let read = async || {
                let row = row.lock().await;
                (row.value + amount, row.version)
            };
            let (mut update, mut version) = read().await;
            loop {
                let mut row = row.lock().await;
                if row.version == version {
                    *row = Row { value: update, version: version + 1 };
                    return;
                }
                version = row.version; // a conflict
                if is_mended {
                    update = row.value + amount;
                }
            }
        })
    });
    for order in orders {
        order.await.unwrap();
    }
    assert_eq!(row.lock().await.value, 7, "an order is lost");
}

/// A transfer locks the account that it takes from, and then the one that it gives to.
pub(super) async fn two_mutexes(is_mended: bool) {
    let accounts = Rc::new([const { Mutex::const_new(100) }; 2]);
    let transfers = [(0, 1), (1, 0)].map(|(from, to): (usize, usize)| {
        let accounts = accounts.clone();
        spawn_local(async move {
            let (first, second) = if is_mended { (from.min(to), from.max(to)) } else { (from, to) };
            let mut first_guard = accounts[first].lock().await;
            let mut second_guard = accounts[second].lock().await;
            let (source, target) = if first == from {
                (&mut first_guard, &mut second_guard)
            } else {
                (&mut second_guard, &mut first_guard)
            };
            **source -= 10;
            **target += 10;
        })
    });
    for transfer in transfers {
        transfer.await.unwrap();
    }
    assert_eq!(*accounts[0].lock().await, 100);
}

/// A worker sees that the queue is empty, counts itself among those that wait, and waits: what has come in between has
/// woken nobody.
pub(super) async fn lost_wakeup(is_mended: bool) {
    #[derive(Default)]
    struct Queue {
        jobs: Mutex<VecDeque<u32>>,
        waits: Mutex<u32>,
        arrived: Notify,
    }
    let queue = Rc::new(Queue::default());
    let worker = spawn_local({
        let queue = queue.clone();
        async move {
            let mut done = Vec::new();
            while done.len() < 3 {
                let early = is_mended.then(|| queue.arrived.notified()); // hears of what comes from here on
                let job = queue.jobs.lock().await.pop_front();
                if let Some(job) = job {
                    done.push(job);
                } else {
                    *queue.waits.lock().await += 1;
                    early.unwrap_or_else(|| queue.arrived.notified()).await;
                }
            }
            done
        }
    });
    for job in 0..3 {
        queue.jobs.lock().await.push_back(job);
        queue.arrived.notify_waiters();
        yield_now().await;
    }
    assert_eq!(worker.await.unwrap(), [0, 1, 2]);
}

/// A list of free blocks whose head is compared and exchanged: one that is taken and given back in between has the same
/// number, but another successor (the problem ABA).
pub(super) async fn same_head_again(is_mended: bool) {
    const BLOCKS: usize = 4;
    struct Free {
        /// A block, and how often the head was exchanged.
        head: Cell<(usize, u64)>,
        next: [Cell<usize>; BLOCKS + 1],
        taken: [Cell<bool>; BLOCKS],
        counts: bool,
    }
    impl Free {
        fn exchange(&self, head: (usize, u64), block: usize) -> bool {
            let is_same = self.head.get() == head;
            if is_same {
                self.head.set((block, head.1 + u64::from(self.counts)));
            }
            is_same
        }
        async fn take(&self) -> Option<usize> {
            loop {
                let head = self.head.get();
                let next = self.next[head.0].get();
                yield_now().await; // as between two instructions of a thread
                if head.0 == BLOCKS {
                    return None;
                }
                if self.exchange(head, next) {
                    assert!(!self.taken[head.0].replace(true), "a block has two owners");
                    return Some(head.0);
                }
            }
        }
        async fn give(&self, block: usize) {
            self.taken[block].set(false);
            loop {
                let head = self.head.get();
                self.next[block].set(head.0);
                yield_now().await;
                if self.exchange(head, block) {
                    return;
                }
            }
        }
    }
    let next = std::array::from_fn(|block| Cell::new((block + 1).min(BLOCKS)));
    let free = Rc::new(Free { head: Cell::new((0, 0)), next, taken: Default::default(), counts: is_mended });
    let workers = [2, 2, 1].map(|count| {
        let free = free.clone();
        spawn_local(async move {
            for _ in 0..2 {
                let mut mine = Vec::new();
                for _ in 0..count {
                    mine.extend(free.take().await);
                }
                for block in mine {
                    free.give(block).await;
                }
            }
        })
    });
    for worker in workers {
        worker.await.unwrap();
    }
}

/// A writer goes round in a ring of eight places and does not look for the reader, which is always faster.
pub(super) async fn overtaken_reader(is_mended: bool) {
    const PLACES: u64 = 8;
    #[derive(Default)]
    struct Ring {
        places: [Cell<u64>; PLACES as usize],
        written: Cell<u64>,
        read: Cell<u64>,
    }
    let ring = Rc::new(Ring::default());
    let writer = spawn_local({
        let ring = ring.clone();
        async move {
            for number in 0..40 {
                while is_mended && number - ring.read.get() == PLACES {
                    yield_now().await;
                }
                ring.places[(number % PLACES) as usize].set(number);
                ring.written.set(number + 1);
                yield_now().await;
                yield_now().await; // it computes the next one
            }
        }
    });
    while ring.read.get() < 40 {
        let number = ring.read.get();
        if number < ring.written.get() {
            assert_eq!(ring.places[(number % PLACES) as usize].get(), number, "the reader was overtaken");
            ring.read.set(number + 1);
        }
        yield_now().await;
    }
    writer.await.unwrap();
}
