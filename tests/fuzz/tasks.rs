//! Lives of tasks on a runtime with one worker, beside a model that knows what must happen to each.
//!
//! A future on the worker makes the choices: it spawns, wakes, aborts, polls and drops handles, itself or by a second
//! thread, for which it waits. Tasks run only when it yields, so between two of its steps nothing moves, and the
//! model is exact; except that an owned task woken from both threads may hear of that once or twice. On a
//! `current_thread` runtime the tasks are owned, on a `multi_thread` one shared. The end comes at any point, with wakes
//! on their way or not.
//!
//! The model checks the numbers of polls, that each future is dropped once and where it ran, each output once, each
//! joiner woken once, and each panic reported once. At the end it checks that no reference is left, by the one thing
//! that lives as long as the runtime.

use std::mem::take;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mini::runtime::{Builder, Handle, Runtime};
use mini::task::{AbortHandle, yield_now};

mod known;
mod script;

use crate::Choices;
use known::{Asked, End, Join, Joiner, Known};
use script::{Facts, Script, Step};

/// Tasks at a time.
const TASKS: usize = 12;

/// After so many yields, what has not happened never will.
const PATIENCE: usize = 10_000;

/// A second thread, which does one thing at a time while the first one waits.
struct Elsewhere {
    /// Until the end.
    jobs: Option<mpsc::Sender<Box<dyn FnOnce() + Send>>>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Model {
    choices: Choices,
    runtime: Handle,
    is_multi: bool,
    elsewhere: Elsewhere,
    tasks: Vec<Known>,
    /// Panics of which the runtime's hook has been told.
    panics: Arc<AtomicUsize>,
    /// How many panics it must have been told of.
    told: usize,
}

/// Runs the model.
///
/// # Panics
///
/// If the tasks do something else.
pub fn run(choices: &mut Choices) {
    let panics = Arc::new(AtomicUsize::new(0));
    let is_multi = choices.one_in(2);
    let mut builder = if is_multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.worker_threads(1);
    let count = Arc::clone(&panics);
    let runtime = builder.on_task_panic(move |_| _ = count.fetch_add(1, SeqCst)).build().expect("a runtime");
    drop(builder); // has the hook too
    let handle = runtime.handle().clone();
    let elsewhere = Elsewhere::new();
    let mut model = Model {
        choices: std::mem::replace(choices, Choices::seeded(0, 0)),
        runtime: handle,
        is_multi,
        elsewhere,
        tasks: Vec::new(),
        panics: Arc::clone(&panics),
        told: 0,
    };
    let lives = async move {
        model.live().await;
        model
    };
    // On the worker that runs the tasks, so that none runs beside it.
    let mut model = match is_multi {
        true => runtime.block_on(runtime.spawn(lives)).unwrap_or_else(|error| resume_unwind(error.into_panic())),
        false => runtime.block_on(lives),
    };
    model.end(runtime);
    *choices = std::mem::replace(&mut model.choices, Choices::seeded(0, 0));
    drop(model);
    let begin = Instant::now();
    while Arc::strong_count(&panics) > 1 {
        // A thread of the runtime may be about to end.
        assert!(begin.elapsed() < Duration::from_secs(20), "a reference was left: the runtime lives on");
        thread::yield_now();
    }
}

impl Model {
    async fn live(&mut self) {
        while self.choices.step() {
            match self.choices.below(24) {
                0..=3 => self.spawn(),
                4..=10 => self.use_waker(),
                11 | 12 => self.abort(),
                13..=15 => self.poll_join(),
                16 => self.drop_join(),
                17 => self.keep_abort(),
                18 => self.cancel(),
                19 => self.forget(),
                _ => self.settle().await,
            }
        }
        if self.choices.one_in(2) {
            self.settle().await;
        }
    }

    fn spawn(&mut self) {
        if self.tasks.len() == TASKS {
            return;
        }
        let step = self.step();
        let facts = Arc::new(Facts { next: Mutex::new(step), ..Facts::default() });
        let script = Script { facts: Arc::clone(&facts), cries: self.choices.one_in(3) };
        let (is_remote, is_local) = (self.choices.one_in(3), !self.is_multi && self.choices.one_in(2));
        let handle = if is_remote {
            let runtime = self.runtime.clone();
            self.elsewhere.run(move || runtime.spawn(script))
        } else if is_local {
            mini::spawn_local(script)
        } else {
            mini::spawn(script)
        };
        *facts.itself.lock().unwrap() = Some(handle.abort_handle());
        let asked = Asked { wake: !is_remote, remote_wake: is_remote, ..Asked::default() };
        self.tasks.push(Known {
            facts,
            is_shared: self.is_multi,
            is_posted: is_remote && !self.is_multi,
            join: Some(Join::Handle(handle)),
            aborts: Vec::new(),
            asked,
            step,
            polls: 0,
            end: None,
            joiner: None,
        });
    }

    fn step(&mut self) -> Step {
        let steps = [Step::Wait, Step::Wait, Step::WakeSelf, Step::Yield, Step::AbortSelf, Step::Finish, Step::Panic];
        steps[self.choices.below(steps.len() as u64) as usize]
    }

    /// Wakes by a waker, here or elsewhere, or clones or drops it.
    fn use_waker(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let (step, is_remote, how) = (self.step(), self.choices.one_in(2), self.choices.below(4));
        let task = &mut self.tasks[at];
        let waker = {
            let mut wakers = task.facts.wakers.lock().unwrap();
            let Some(at) = self.choices.place(wakers.len()) else { return };
            wakers.swap_remove(at)
        };
        if how < 3 && task.end.is_none() {
            if !task.asked.is_any() {
                (task.step, *task.facts.next.lock().unwrap()) = (step, step);
            }
            task.asked.wake |= !is_remote;
            task.asked.remote_wake |= is_remote;
        }
        let left = move || match how {
            0 => {
                waker.wake();
                None
            }
            1 => {
                waker.wake_by_ref();
                Some(waker)
            }
            2 => {
                let clone = waker.clone();
                clone.wake();
                Some(waker)
            }
            _ => {
                drop(waker);
                None
            }
        };
        let left = if is_remote { self.elsewhere.run(left) } else { left() };
        self.tasks[at].facts.wakers.lock().unwrap().extend(left);
    }

    fn abort(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let is_remote = self.choices.one_in(2);
        let task = &mut self.tasks[at];
        let by = task.aborts.pop();
        match (by, &task.join) {
            (Some(by), _) if is_remote => self.elsewhere.run(move || by.abort()),
            (Some(by), _) => by.abort(),
            (None, Some(Join::Handle(handle))) if is_remote => {
                let by = handle.abort_handle();
                self.elsewhere.run(move || by.abort());
            }
            (None, Some(Join::Handle(handle))) => handle.abort(),
            _ => return,
        }
        self.tasks[at].note_cancel(is_remote);
    }

    fn keep_abort(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let task = &mut self.tasks[at];
        if let Some(Join::Handle(handle)) = &task.join {
            assert_eq!(handle.is_finished(), task.end.is_some());
            task.aborts.push(handle.abort_handle());
        }
    }

    fn cancel(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let task = &mut self.tasks[at];
        task.join = match task.join.take() {
            Some(Join::Handle(handle)) => {
                task.note_cancel(false);
                Some(Join::Cancel(handle.cancel()))
            }
            other => other,
        };
    }

    /// Polls a handle, here or elsewhere, with another waker than before.
    fn poll_join(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let is_remote = self.choices.one_in(3);
        let task = &mut self.tasks[at];
        let Some(join) = task.join.take() else { return };
        let joiner = Arc::new(Joiner::default());
        let waker = Waker::from(Arc::clone(&joiner));
        let poll = move || join.poll(&waker);
        let (join, polled) = if is_remote { self.elsewhere.run(poll) } else { poll() };
        let task = &mut self.tasks[at];
        match polled {
            Poll::Pending => {
                assert_eq!(task.end, None, "the joiner of a task that has ended waits");
                task.join = Some(join);
                let before = task.joiner.replace(joiner);
                assert!(before.is_none_or(|before| Arc::strong_count(&before) == 1), "a displaced waker was kept");
            }
            Poll::Ready(result) => {
                drop(join);
                assert_eq!(Some(End::of(&result)), task.end);
                drop(result);
                assert_eq!(task.facts.output_drops.load(SeqCst), task.facts.outputs.load(SeqCst));
            }
        }
    }

    fn drop_join(&mut self) {
        let Some(at) = self.choices.place(self.tasks.len()) else { return };
        let is_remote = self.choices.one_in(3);
        let task = &mut self.tasks[at];
        let Some(join) = task.join.take() else { return };
        if is_remote {
            self.elsewhere.run(move || drop(join))
        } else {
            drop(join)
        }
        let task = &mut self.tasks[at];
        if task.end.is_none() {
            let joiner = task.joiner.take();
            assert!(joiner.is_none_or(|joiner| Arc::strong_count(&joiner) == 1), "the waker of no handle was kept");
            return;
        }
        assert_eq!(task.facts.output_drops.load(SeqCst), task.facts.outputs.load(SeqCst));
        self.told += usize::from(task.end == Some(End::Panicked));
        self.check_told();
    }

    /// Drops all there is of a task that has ended, here or elsewhere.
    fn forget(&mut self) {
        let Some(at) = self.tasks.iter().position(|task| task.end.is_some() && task.join.is_none()) else { return };
        let is_remote = self.choices.one_in(2);
        let task = self.tasks.swap_remove(at);
        if is_remote { self.elsewhere.run(move || drop(task)) } else { drop(task) }
    }

    /// Lets the tasks run until each has done what was asked of it, and no more.
    async fn settle(&mut self) {
        for round in 0.. {
            if self.tasks.iter().all(Known::is_settled) {
                break;
            }
            assert!(round < PATIENCE, "a wake was lost: {:?}", self.tasks.iter().find(|task| !task.is_settled()));
            yield_now().await;
        }
        for _ in 0..4 {
            yield_now().await;
        }
        for task in &mut self.tasks {
            let was_alive = task.end.is_none();
            task.account();
            if was_alive && task.end == Some(End::Panicked) && task.join.is_none() {
                self.told += 1;
            }
        }
        self.check_told();
    }

    fn check_told(&self) {
        assert_eq!(self.panics.load(SeqCst), self.told, "panics that nobody awaits");
    }

    /// The runtime ends while handles and wakers are left.
    fn end(&mut self, runtime: Runtime) {
        match self.choices.below(3) {
            0 => drop(runtime),
            1 => {
                let _ = runtime.shutdown_timeout(Duration::from_secs(20));
            }
            _ if self.is_multi => drop(runtime),
            _ => runtime.shutdown_background(),
        }
        for mut task in take(&mut self.tasks) {
            let facts = Arc::clone(&task.facts);
            assert_eq!(facts.drops.load(SeqCst), 1, "{task:?}");
            if let Some(join) = task.join.take() {
                let (_, polled) = join.poll(Waker::noop());
                let Poll::Ready(result) = polled else { panic!("a task outlived its runtime: {task:?}") };
                assert!(task.end.is_none_or(|end| end == End::of(&result)));
            }
            for waker in take(&mut *facts.wakers.lock().unwrap()) {
                let wake = move || waker.wake();
                if self.choices.one_in(2) { self.elsewhere.run(wake) } else { wake() }
            }
            task.aborts.iter().for_each(AbortHandle::abort);
            drop(task);
            *facts.itself.lock().unwrap() = None;
            assert_eq!(facts.drops.load(SeqCst), 1);
            assert_eq!(facts.outputs.load(SeqCst), facts.output_drops.load(SeqCst));
            assert_eq!(Arc::strong_count(&facts), 1);
        }
    }
}

impl Elsewhere {
    fn new() -> Self {
        let (sender, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let thread = thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        Self { jobs: Some(sender), thread: Some(thread) }
    }

    /// Runs `job` on that thread, and waits for it.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let jobs = self.jobs.as_ref().expect("it is not the end");
        jobs.send(Box::new(move || drop(done.send(job())))).expect("the thread waits for jobs");
        result.recv().expect("the job does not panic")
    }
}

impl Drop for Elsewhere {
    /// The thread ends before the run does, so that nothing of it is taken for a leak.
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}
