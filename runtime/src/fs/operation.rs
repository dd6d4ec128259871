//! `Operation`: one job on the blocking pool, or none if it can be done without.
//!
//! The future of nearly all functions of `fs`. A job is a task of the pool (`Shared::spawn_blocking`), so a shutdown
//! can name the line that made it, and a panic in it is resumed where it is awaited.
//!
//! Rejected: starting in the constructor. Arguments of `block_on` are made outside the runtime, and a future that is
//! never polled should do nothing. Rejected: dropping the path in the constructor, once it has been copied. Its
//! destructor may remove the file. Rejected: keeping it in the job. A path that is a reference could not be given then.

use std::fmt;
use std::io;
use std::panic::{Location, resume_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mini_kernel::scheduler::current;
use mini_kernel::scheduler::shared::Shared;

use crate::fs::job::Job;
use crate::task::JoinError;

/// Future of the functions of [`fs`](crate::fs): resolves to `io::Result<T>`.
///
/// It begins when it is polled first. See the [module](crate::fs) for errors, panics and cancel safety.
///
/// `P` is the type of the path, or of both paths in a tuple; `()` if there is no path. The operation keeps its
/// arguments until it is done. So a path whose destructor removes the file, such as a `NamedTempFile`, may be passed by
/// value; the operation is `Send` if the path is, and lives no longer than a path that is a reference.
#[must_use = "futures do nothing unless awaited"]
pub struct Operation<T, P = ()> {
    run: Run<T>,
    /// Until the operation is done.
    path: Option<P>,
}

/// The operation itself, without what it keeps: so none of its code depends on the type of the path.
struct Run<T> {
    about: Arc<About>,
    state: State<T>,
}

/// What an operation is about: for its job, and for panics.
pub(super) struct About {
    /// The function that the user has called.
    pub(super) call: &'static str,
    pub(super) path: PathBuf,
    pub(super) location: &'static Location<'static>,
}

/// What a thread of the pool does.
pub(super) type Call<T> = Box<dyn FnOnce(&About) -> io::Result<T> + Send + Sync>;

/// What must be ready before a job begins.
type Before = Box<dyn FnMut(&mut Context<'_>) -> Poll<()> + Send + Sync>;

/// What the first poll does.
type First<T> = Box<dyn FnOnce(&About) -> Step<T> + Send + Sync>;

/// What the first poll has come to.
pub(super) enum Step<T> {
    Done(io::Result<T>),
    Hop(Call<T>),
}

enum State<T> {
    New(First<T>),
    NewJob(Call<T>),
    Held(Before, Call<T>),
    Running(Job<io::Result<T>>),
    Done,
}

impl About {
    #[track_caller]
    pub(super) fn new(call: &'static str, path: &Path) -> About {
        About { call, path: path.to_owned(), location: Location::caller() }
    }
}

impl<T> Step<T> {
    pub(super) fn hop(job: impl FnOnce(&About) -> io::Result<T> + Send + Sync + 'static) -> Step<T> {
        Step::Hop(Box::new(job))
    }
}

impl<T: Send + 'static> Operation<T> {
    /// An operation that always takes a hop.
    pub(super) fn hop(about: About, job: impl FnOnce(&About) -> io::Result<T> + Send + Sync + 'static) -> Operation<T> {
        Operation::with(about, State::NewJob(Box::new(job)))
    }

    /// As `hop`, once `before` is ready.
    pub(super) fn hop_after(
        about: About,
        before: impl FnMut(&mut Context<'_>) -> Poll<()> + Send + Sync + 'static,
        job: impl FnOnce(&About) -> io::Result<T> + Send + Sync + 'static,
    ) -> Operation<T> {
        Operation::with(about, State::Held(Box::new(before), Box::new(job)))
    }

    /// An operation that tries `first` without a hop; `first` must not wait.
    pub(super) fn first(about: About, first: impl FnOnce(&About) -> Step<T> + Send + Sync + 'static) -> Operation<T> {
        Operation::with(about, State::New(Box::new(first)))
    }

    fn with(about: About, state: State<T>) -> Operation<T> {
        Operation { run: Run { about: Arc::new(about), state }, path: None }
    }

    /// The same, which keeps `path` until it is done.
    pub(super) fn keeping<P>(self, path: P) -> Operation<T, P> {
        Operation { run: self.run, path: Some(path) }
    }
}

impl<T: Send + 'static> Run<T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if let State::New(_) = self.state {
            // A hop lets others run anyway.
            ready!(mini_context::poll_call(cx, self));
        }
        if let State::Held(before, _) = &mut self.state {
            need_runtime(self.about.call, self.about.location);
            ready!(before(cx));
        }
        if let State::New(_) | State::NewJob(_) | State::Held(..) = self.state {
            let pool = pool(self.about.call, self.about.location);
            let job = match std::mem::replace(&mut self.state, State::Done) {
                State::NewJob(job) | State::Held(_, job) => job,
                State::New(first) => match first(&self.about) {
                    Step::Done(result) => return Poll::Ready(result),
                    Step::Hop(job) => job,
                },
                _ => unreachable!("just looked"),
            };
            let about = self.about.clone();
            let location = about.location;
            self.state = State::Running(Job::start(&pool, location, move || job(&about)));
        }
        let State::Running(job) = &mut self.state else {
            panic!("`{}`, called at {}, was polled again after it was done", self.about.call, self.about.location);
        };
        let joined = ready!(Pin::new(job).poll(cx));
        self.state = State::Done;
        Poll::Ready(joined.unwrap_or_else(|lost| Err(no_answer(lost))))
    }
}

impl<T: Send + 'static, P> Future for Operation<T, P> {
    type Output = io::Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let Operation { run, path } = self.get_mut();
        let result = ready!(run.poll(cx));
        *path = None;
        Poll::Ready(result)
    }
}

/// The runtime of this thread.
///
/// # Panics
///
/// If there is none, with the text that names the call.
pub(super) fn pool(call: &str, location: &Location<'_>) -> Arc<Shared> {
    current::with_shared(Arc::clone).unwrap_or_else(|| refuse(call, location))
}

/// Checks for a runtime, where an operation would succeed without one by chance only: if the kernel has the data in
/// memory.
///
/// # Panics
///
/// Panics in the same cases as [`pool`].
pub(super) fn need_runtime(call: &str, location: &Location<'_>) {
    if current::with_shared(|_| ()).is_none() {
        refuse(call, location);
    }
}

#[cold]
fn refuse(call: &str, location: &Location<'_>) -> ! {
    panic!(
        "`{call}`, called at {location}, needs a mini runtime, and none is running on this thread: use \
         `#[mini::main]`, `mini::block_on` or `Runtime::enter`"
    )
}

/// The error of a job that has not been carried out. If the job panicked, the panic is resumed here.
#[cold]
pub(super) fn no_answer(lost: JoinError) -> io::Error {
    if lost.is_panic() {
        resume_unwind(lost.into_panic());
    }
    lost.refusal().unwrap_or_else(|| io::Error::other("the mini runtime has shut down"))
}

/// Nothing in here is ever pinned.
impl<T, P> Unpin for Operation<T, P> {}

impl<T, P> fmt::Debug for Operation<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { call, path, location, .. } = &*self.run.about;
        write!(f, "{call}({path:?}) at {location}")
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Operation<Vec<u8>>, Operation<Vec<u8>, String>, Operation<(), (&str, PathBuf)>)>();
};
