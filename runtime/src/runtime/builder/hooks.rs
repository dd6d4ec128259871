//! The functions of a user that a runtime calls.

use std::sync::Arc;

use super::Builder;
#[cfg(feature = "insight")]
use crate::runtime::Warning;
use crate::runtime::{Phases, TaskMeta};
use crate::task::{JoinError, TaskError};

impl<R> Builder<R> {
    /// Calls `hook` for each warning, in place of a line on stderr. Turns [`warnings`](Self::warnings) on and overrides
    /// the environment. The checking thread calls the hook and checks nothing else during the call. A panic of the hook
    /// is reported and otherwise ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use mini::runtime::WarningKind;
    ///
    /// let (send, receive) = mpsc::channel();
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_warning(move |warning| drop(send.send(warning.clone())))
    ///     .build()?;
    /// let warning = runtime.block_on(async {
    ///     receive.recv() // blocks the thread, where a channel of mini::sync would wait
    /// });
    /// let warning = warning.unwrap();
    /// assert_eq!(warning.kind(), WarningKind::LongPoll);
    /// println!("{warning}"); // long poll: the future of block_on has been in one poll for 103 ms, …
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "insight")]
    pub fn on_warning(&mut self, hook: impl Fn(&Warning) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_warning = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` on each thread that the runtime starts to run tasks or blocking jobs, before it runs any. Not on a
    /// thread that calls `block_on`, which is not the runtime's.
    ///
    /// The thread is not inside the runtime yet. Its [name](Self::thread_name) distinguishes a worker from a blocking
    /// thread, which may get a lower priority, for example. A panic is contained: it is reported on stderr, and the
    /// thread continues.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let stop = sender.clone();
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_thread_start(move || sender.send("a blocking thread begins").unwrap())
    ///     .on_thread_stop(move || stop.send("and ends").unwrap())
    ///     .build()?;
    /// runtime.block_on(async { mini::spawn_blocking(|| ()).await })?;
    /// drop(runtime);
    /// assert_eq!(receiver.iter().collect::<Vec<_>>(), ["a blocking thread begins", "and ends"]);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_start(&mut self, hook: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.hooks.start = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` on each thread that the runtime has started, when the thread ends. A shutdown waits for the hook,
    /// within its grace. For panics, see [`on_thread_start`](Self::on_thread_start).
    ///
    /// # Examples
    ///
    /// See [`on_thread_start`](Self::on_thread_start).
    pub fn on_thread_stop(&mut self, hook: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.hooks.stop = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` on a worker before it waits because it has nothing to do, including the thread in
    /// [`block_on`](super::Runtime::block_on). The hook runs inside the runtime but outside any task; tasks that it
    /// spawns or wakes run at once. A panic is contained and reported on stderr.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// use std::sync::Arc;
    /// let [parks, unparks] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    /// let [parked, unparked] = [parks.clone(), unparks.clone()];
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_thread_park(move || drop(parked.fetch_add(1, Relaxed)))
    ///     .on_thread_unpark(move || drop(unparked.fetch_add(1, Relaxed)))
    ///     .build()?;
    /// runtime.block_on(mini::time::sleep(std::time::Duration::from_millis(1)));
    /// assert!(parks.load(Relaxed) >= 1);
    /// assert_eq!(parks.load(Relaxed), unparks.load(Relaxed));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_park(&mut self, hook: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.hooks.park = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` on a worker when it has waited; see [`on_thread_park`](Self::on_thread_park).
    ///
    /// # Examples
    ///
    /// See [`on_thread_park`](Self::on_thread_park).
    pub fn on_thread_unpark(&mut self, hook: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.hooks.unpark = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` on a worker after each turn of its loop, with the phases of the turn, to show where the time goes.
    /// Turns in which nothing has happened are left out. The hook runs inside the runtime but outside any task, and its
    /// time is lost to the tasks: a turn has at most 64 polls, so with short polls the hook runs 100,000 times a
    /// second. A panic is contained and reported on stderr.
    ///
    /// A hook that wakes or spawns a task of its own runtime causes the next turn, and so on without end: hand over to
    /// a thread instead.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().on_turn(|phases| eprintln!("{phases}")).build()?;
    /// runtime.block_on(mini::time::sleep(std::time::Duration::from_millis(1)));
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// See also [`Phases`].
    pub fn on_turn(&mut self, hook: impl Fn(&Phases) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_turn = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a task is spawned, on the thread that spawns it. A job of
    /// [`spawn_blocking`](crate::spawn_blocking) counts as a task, as it does for the hooks below.
    ///
    /// A panic of such a hook is contained and reported on stderr. A hook that spawns a task of its own runtime is
    /// called for that one too. None is called for a task that is cancelled at its spawn, as its runtime ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let note = |what: &'static str| {
    ///     let sender = sender.clone();
    ///     move |task: &mini::runtime::TaskMeta| sender.send((what, task.id(), task.spawned_at().line())).unwrap()
    /// };
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_task_spawn(note("spawned"))
    ///     .on_before_task_poll(note("is polled"))
    ///     .on_after_task_poll(note("was polled"))
    ///     .on_task_terminate(note("ended"))
    ///     .build()?;
    /// let id = runtime.block_on(async {
    ///     let task = mini::spawn(async {});
    ///     let id = task.id();
    ///     task.await.unwrap();
    ///     id
    /// });
    /// let told: Vec<_> = receiver.try_iter().map(|(what, task, _line)| (what, task == id)).collect();
    /// assert_eq!(told, [("spawned", true), ("is polled", true), ("was polled", true), ("ended", true)]);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_task_spawn(&mut self, hook: impl Fn(&TaskMeta) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task.spawn = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a task has ended, after its last poll: with an output, a panic, or because it was cancelled.
    /// At the end of the runtime, any thread may call it.
    ///
    /// # Examples
    ///
    /// See [`on_task_spawn`](Self::on_task_spawn).
    pub fn on_task_terminate(&mut self, hook: impl Fn(&TaskMeta) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task.terminate = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` before each poll of a task, on the worker that polls it, and before a worker drops the future of a
    /// task that was cancelled. The hook's time counts as the poll's.
    ///
    /// # Examples
    ///
    /// See [`on_task_spawn`](Self::on_task_spawn).
    pub fn on_before_task_poll(&mut self, hook: impl Fn(&TaskMeta) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task.before_poll = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` after each poll of a task; see [`on_before_task_poll`](Self::on_before_task_poll). The hook's time
    /// counts as no poll's.
    ///
    /// # Examples
    ///
    /// See [`on_task_spawn`](Self::on_task_spawn).
    pub fn on_after_task_poll(&mut self, hook: impl Fn(&TaskMeta) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task.after_poll = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for the panic of a task whose handle was dropped. By default the panic is printed to stderr, with
    /// the task's id and the line of its spawn.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_task_panic(move |error| sender.send(error.to_string()).unwrap())
    ///     .build()?;
    /// runtime.block_on(async {
    ///     drop(mini::spawn(async { panic!("unseen") }));
    ///     mini::task::yield_now().await;
    /// });
    /// assert!(receiver.recv().unwrap().ends_with("panicked: unseen"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_task_panic(&mut self, hook: impl Fn(&JoinError) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task_panic = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for a task that ends with an `Err` and whose handle was dropped. By default the error is printed to
    /// stderr, with the task's id and the line of its spawn: at most ten lines a second; further errors are only
    /// counted.
    ///
    /// The text of the error, with its causes, is printed for [`std::io::Error`], `String` and `Box<dyn Error>`, if the
    /// output is `Result<(), _>`; for other errors, the name of the type. For a task in a
    /// [`Group`](crate::task::Group), the text is that of the group's report, and the group is named.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().on_task_error(|_| ()).build()?; // silence
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// See also [`TaskError`].
    pub fn on_task_error(&mut self, hook: impl Fn(&TaskError) + Send + Sync + 'static) -> &mut Self {
        self.settings.on_task_error = Some(Arc::new(hook));
        self
    }
}
