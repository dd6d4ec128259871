//! `queue`: each job is done once, whatever the order in which the consumers run, and however often their host crashes.
//!
//! An `eventfd` and a pair of Unix sockets are the system's in a simulation too; which consumer gets a job is the
//! schedule's choice. The third queue of the example is left out: processes are not simulated.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use mini::sim::{Sim, current};
use mini::task::yield_now;
use mini::time::sleep;

use crate::storm::{SERVER, ms};

#[allow(dead_code)]
#[path = "../../../examples/queue.rs"]
mod example;

const JOBS: usize = 60;
const CONSUMERS: usize = 4;

/// What the host has done: how often it has begun and ended, and how many jobs each consumer had.
#[derive(Clone, Default)]
struct Log {
    begun: Rc<Cell<u32>>,
    ended: Rc<Cell<u32>>,
    shares: Rc<RefCell<Vec<Vec<usize>>>>,
}

async fn serve(log: Log) -> io::Result<()> {
    log.begun.set(log.begun.get() + 1);
    for share in [example::semaphore(JOBS, CONSUMERS).await?, example::datagrams(JOBS, CONSUMERS).await?] {
        assert_eq!(share.iter().sum::<usize>(), JOBS);
        log.shares.borrow_mut().push(share);
    }
    log.ended.set(log.ended.get() + 1);
    std::future::pending().await
}

async fn crash_in_the_middle() -> Log {
    let (sim, log) = (current(), Log::default());
    let given = log.clone();
    sim.host(SERVER, move || serve(given.clone()));
    for _ in 0..3 {
        for _ in 0..sim.rand() % 500 {
            yield_now().await;
        }
        sim.crash(SERVER);
        sim.restart(SERVER);
    }
    sleep(ms(100)).await;
    log
}

#[test]
fn each_job_is_done_once() {
    let (mut crashed, mut shares) = (0, BTreeSet::new());
    for seed in 0..100 {
        let log = Sim::new(seed).run(crash_in_the_middle()).unwrap();
        let (begun, ended) = (log.begun.get(), log.ended.get());
        assert!(ended > 0, "seed {seed}: it does not end after the last crash");
        crashed += begun - ended;
        shares.extend(log.shares.take());
    }
    assert!(crashed > 50, "only {crashed} crashes have hit the host at work");
    assert!(shares.len() > 50, "the schedule does not choose: {shares:?}");
}
