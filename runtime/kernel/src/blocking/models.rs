//! The pool under loom: jobs that meet the end of a wait, of a spin, of the shared.

use super::*;
use crate::primitives::thread;
use crate::task::Queued;

type Blocking = super::Blocking<Queued>;

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

    /// When `before` jobs have ended, pushes two jobs, of which the first waits for the second.
    fn push_two(self: &Arc<Self>, blocking: &Arc<Blocking>, before: usize) {
        let ended = self.clone();
        let mut job = Job(self.clone(), false);
        blocking.push_call(Box::new(move || {
            ended.wait_for(before + 1);
            job.run();
        }));
        self.push(blocking);
    }

    /// All jobs are run.
    fn end(&self, blocking: &Blocking, jobs: usize) {
        self.wait_for(jobs);
        blocking.close();
        blocking.wait(Deadline::NEVER);
        assert_eq!((blocking.in_flight(), *lock(&self.dropped)), (0, 0));
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
        let unparker = Unparker::new(mini_net::Reactor::new().unwrap());
        model(&Blocking::new(&config, unparker, Queued::serve));
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
        ended.end(blocking, 3);
    });
}

/// Two jobs come while a thread looks for one, spins and waits, and the first job waits for the second: another thread
/// does the second.
///
/// Planted: a spinning thread that is taken out and not called; one that stays where the next job calls it, called or
/// not; one that is called, or started, and counted as such for ever.
#[test]
fn a_job_that_waits_for_another_one_ends() {
    model(2, Duration::MAX, |blocking| {
        let ended = Arc::new(Ended::default());
        ended.push(blocking);
        ended.wait_for(1);
        ended.push_two(blocking, 1);
        ended.end(blocking, 3);
    });
}

/// The same while two threads do so.
///
/// Planted: a second one that spins in the place of the first.
#[test]
fn two_that_spin_and_wait_do_two_jobs() {
    model(2, Duration::MAX, |blocking| {
        let ended = Arc::new(Ended::default());
        ended.push_two(blocking, 0);
        ended.wait_for(2);
        ended.push_two(blocking, 2);
        ended.end(blocking, 4);
    });
}

/// The pool is closed while another thread pushes: each job is run or dropped, once, and no thread is left.
///
/// Planted: `push` that does not check whether the scheduler is closed; `close` that notifies no thread; a thread that
/// ends without reporting it.
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
