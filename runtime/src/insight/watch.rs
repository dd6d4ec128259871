//! The watcher's knowledge and warnings of a runtime: each warning once per line of code, a long poll again if it is
//! much longer.
//!
//! At each check it compares whether a worker is in the same poll as before (`watch/runs.rs`). About once a second it
//! walks over the tasks (`watch/walk.rs`, `watch/still.rs`): a task that two walks see unchanged makes no progress. A
//! walk over many tasks takes long, so walks are rare enough to take less than a twentieth of the time. In a simulation
//! only a poll that may never end is reported; everything else is virtual, and the simulation sees it itself.

mod runs;
mod still;
mod walk;

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use mini_context::rules::OVERHEAD;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::{LastWait, Source, Task};
use mini_kernel::threads;

use super::gather::source;
use super::stack::Stack;
use super::warning::Explained;
use super::{Warning, WarningKind};
use crate::runtime::layers::Layers;
use crate::task;
use runs::LastRun;
use walk::Walk;

/// Of the thread that finds out what a stack means: names are decoded by recursion.
const STACK: usize = 8 << 20;

/// How long it takes at least from one walk to the next.
const WALK: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    shared: Weak<Shared>,
    /// Of each core.
    runs: Vec<LastRun>,
    last_walk: Walk,
    walk_at: Instant,
    said: Said,
}

/// Tasks that were spawned at one line may do very different things: a poll that lasts so many times as long as any
/// that was told of is news.
const MORE: u32 = 2;

/// The warnings that have been emitted, by their line, with the longest duration at that time.
#[derive(Default)]
struct Said(HashMap<(WarningKind, usize), Duration>);

impl Said {
    /// Whether that was not said yet, or of one that lasted less than half as long.
    fn is_news(&mut self, kind: WarningKind, line: usize, lasts: Duration) -> bool {
        let longest = self.0.get(&(kind, line)).copied();
        let is_news = longest.is_none_or(|longest| !lasts.is_zero() && lasts >= longest * MORE);
        if is_news {
            self.0.insert((kind, line), lasts);
        }
        is_news
    }
}

impl Watch {
    pub(super) fn new(shared: Weak<Shared>) -> Self {
        let walk_at = Instant::now() + WALK;
        Self { shared, runs: Vec::new(), last_walk: Walk::default(), walk_at, said: Said::default() }
    }

    /// The runtime, if it has not ended.
    pub(super) fn runtime(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }

    /// What was seen before says nothing.
    pub(super) fn begin_anew(&mut self) {
        self.runs.clear();
        self.last_walk = Walk::default();
    }

    pub(super) fn look(&mut self, shared: &Shared) {
        if shared.is_closing() {
            return self.begin_anew();
        }
        let voice = &mut Voice { shared, said: &mut self.said };
        self.runs.resize_with(shared.all_cores().count(), LastRun::default);
        for (core, run) in shared.all_cores().zip(&mut self.runs) {
            run.look(core, voice);
        }
        let now = Instant::now();
        if now >= self.walk_at && !shared.config.has_pick() {
            let walk = Walk::new(shared, now, &self.last_walk);
            walk.tell(&self.last_walk, voice);
            self.last_walk = walk;
            self.walk_at = now + WALK.max(now.elapsed() * OVERHEAD);
        }
    }
}

/// How the watcher says what it has seen of a runtime.
struct Voice<'a> {
    shared: &'a Shared,
    said: &'a mut Said,
}

/// A task, or a main task, as it is told.
struct Subject {
    task: Option<task::Id>,
    location: Option<&'static Location<'static>>,
    name: String,
}

/// What is said of it.
struct Words {
    text: String,
    /// That of its thread.
    stack: Option<Stack>,
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self { text, stack: None }
    }
}

impl From<&Source> for Subject {
    fn from(source: &Source) -> Self {
        Self { task: Some(source.id), location: Some(source.location), name: source.to_string() }
    }
}

impl Subject {
    fn of_main(wait: Option<LastWait>) -> Self {
        let location = match wait {
            Some(LastWait::Known(wait)) => Some(wait.location()),
            _ => None,
        };
        Self { task: None, location, name: "the future of block_on".to_owned() }
    }
}

impl Voice<'_> {
    /// Says it, unless the same was said of that line.
    fn say<W: Into<Words>>(&mut self, kind: WarningKind, subject: &Subject, words: impl FnOnce() -> W) {
        self.say_longer(kind, subject, Duration::ZERO, words);
    }

    /// Says it, unless the same was said of that line, of what lasted more than half as long. Returns whether it did.
    fn say_longer<W: Into<Words>>(
        &mut self,
        kind: WarningKind,
        subject: &Subject,
        lasts: Duration,
        words: impl FnOnce() -> W,
    ) -> bool {
        let line = line_of(subject.location);
        if !self.said.is_news(kind, line, lasts) || self.shared.config.has_pick() && !is_new_in_simulation(line) {
            return false;
        }
        let at = self.shared.begun_at.elapsed();
        let Words { text, stack } = words().into();
        let (text, location) = (text.into(), subject.location);
        let explained = Arc::new(Explained::new());
        let warning = Warning { kind, task: subject.task, location, text, stack: Arc::clone(&explained), at };
        Layers::of(self.shared).insight.warned.keep(&warning);
        match &Layers::of(self.shared).settings.on_warning {
            Some(hook) => {
                explain(stack, explained, None);
                let (hook, warning) = (hook.clone(), &warning);
                mini_context::contain(move || hook(warning));
            }
            None => {
                say!("{warning}");
                let task = subject.task.map_or_else(|| subject.name.clone(), |task| format!("task {task}"));
                explain(stack, explained, Some(task));
            }
        }
        true
    }

    /// The task of that source, or else the main task of that id.
    fn subject(&self, source: Option<&Source>, id: u64) -> Subject {
        source.map_or_else(|| self.find(id), Subject::from)
    }

    /// The task or main task of that id. Goes through all tasks.
    fn find(&self, id: u64) -> Subject {
        if mini_context::is_main(id) {
            // Its last wait, which is over while it is polled.
            let main = |core: &Core| core.with_main(Task::sight).filter(|main| main.id.get() == id);
            let main = self.shared.all_cores().find_map(main);
            let subject = Subject::of_main(main.and_then(|main| main.wait.get()));
            return match self.shared.config.has_pick() {
                true => Subject { name: "the main task".to_owned(), ..subject },
                false => subject,
            };
        }
        let unknown = || Subject { task: None, location: None, name: "a task".to_owned() };
        source(self.shared, id).map_or_else(unknown, |source| Subject::from(&source))
    }
}

fn line_of(location: Option<&Location<'_>>) -> usize {
    location.map_or(0, |location| std::ptr::from_ref(location).addr())
}

/// Whether nothing was said yet of that line, by any simulation of this process: a test has very many, one a seed.
fn is_new_in_simulation(line: usize) -> bool {
    static SAID: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = !said.contains(&line);
    said.extend(is_new.then_some(line));
    is_new
}

/// Finds out what a stack means, on another thread, as that takes long; and says it of `task`, if that is given.
fn explain(stack: Option<Stack>, explained: Arc<Explained>, task: Option<String>) {
    let Some(stack) = stack else {
        explained.set(None);
        return;
    };
    let explains = explained.clone();
    let body = Box::new(move || {
        let told = mini_context::contain(|| stack.told()).flatten();
        if let (Some(told), Some(task)) = (&told, task) {
            say!("{task} was in\n    {}", told.replace('\n', "\n    "));
        }
        explains.set(told);
    });
    if threads::start("mini-stack".to_owned(), Some(STACK), body).is_err() {
        explained.set(None);
    }
}
