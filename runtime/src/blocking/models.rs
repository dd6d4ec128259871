//! The pool under loom: jobs that meet the end of a wait, of a spin, of the pool.

use super::*;
use crate::sync::thread;

/// Jobs that have ended, one way or the other.
#[derive(Default)]
struct Ended {
    run: Mutex<usize>,
    dropped: Mutex<usize>,
    changed: Condvar,
}

struct Job(Arc<Ended>, bool);

impl Job {
    fn run(&mut self) {
        self.1 = true;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        *lock(if self.1 { &self.0.run } else { &self.0.dropped }) += 1;
        self.0.changed.notify_all();
    }
}

impl Ended {
    fn push(self: &Arc<Self>, blocking: &Arc<Blocking>) {
        let mut job = Job(self.clone(), false);
        blocking.push_call(Box::new(move || job.run()));
    }

    fn wait_for(&self, jobs: usize) {
        let mut run = lock(&self.run);
        while *run < jobs {
            run = self.changed.wait(run).unwrap();
        }
    }
}

fn model(
    max_blocking_threads: usize,
    thread_keep_alive: Duration,
    model: impl Fn(&Arc<Blocking>) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let config = Config { max_blocking_threads, thread_keep_alive, ..Config::new(false) };
        let bell = Bell::new(mini_net::Reactor::new().unwrap());
        model(&Blocking::new(&config, bell));
    });
}

/// Two jobs come while the one thread runs, waits, and ends because it has waited long enough: both are done.
///
/// Planted: a thread that ends and stays among those that wait; one that ends its spin and stays there; one that stays
/// counted among the threads.
#[test]
fn a_job_that_meets_a_leaving_thread_is_done() {
    model(1, Duration::from_secs(10), |blocking| {
        let ended = Arc::new(Ended::default());
        ended.push(blocking);
        ended.push(blocking);
        ended.wait_for(2);
        ended.push(blocking);
        ended.wait_for(3);
        blocking.close();
        blocking.wait(Deadline::NEVER);
        assert_eq!((blocking.in_flight(), *lock(&ended.dropped)), (0, 0));
    });
}

/// Two jobs come while a thread looks for one, spins and waits, and the first waits for the second: another thread does that.
///
/// Planted: a spinning thread that is taken out and not called; one that stays where the next job calls it, called or not.
#[test]
fn a_job_that_waits_for_another_one_ends() {
    model(2, Duration::MAX, |blocking| {
        let ended = Arc::new(Ended::default());
        ended.push(blocking);
        ended.wait_for(1);
        let other = ended.clone();
        let mut job = Job(ended.clone(), false);
        blocking.push_call(Box::new(move || {
            other.wait_for(2);
            job.run();
        }));
        ended.push(blocking);
        ended.wait_for(3);
        blocking.close();
        blocking.wait(Deadline::NEVER);
        assert_eq!((blocking.in_flight(), *lock(&ended.dropped)), (0, 0));
    });
}

/// The pool is closed while another thread pushes: each job is run or dropped, once, and no thread is left.
///
/// Planted: `push` that does not look whether the pool is closed; `close` that notifies nobody; a thread that ends without
/// saying so.
#[test]
fn a_closed_pool_leaves_no_job_and_no_thread() {
    model(2, Duration::MAX, |blocking| {
        let ended = Arc::new(Ended::default());
        let pusher = thread::spawn({
            let (blocking, ended) = (blocking.clone(), ended.clone());
            move || ended.push(&blocking)
        });
        ended.push(blocking);
        blocking.close();
        blocking.wait(Deadline::NEVER);
        pusher.join().unwrap();
        assert_eq!((*lock(&ended.run) + *lock(&ended.dropped), blocking.in_flight()), (2, 0));
        assert_eq!(blocking.gauge().queued, 0);
    });
}
