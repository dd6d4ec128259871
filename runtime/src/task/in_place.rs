//! Blocking on a worker, announced.

/// Runs `f`, which may block, on this thread, while other workers take over its work.
///
/// The tasks in this worker's queue go to the other workers, and its sockets and timers are served in its place. So `f`
/// may compute or wait for a while, and may use values that are not `Send`. It may call [`block_on`](crate::block_on),
/// whose future may await sockets, timers and tasks of this runtime. This thread polls that future and no task of
/// others, so `f` may hold locks that tasks take.
///
/// Outside a runtime's tasks and `block_on` it just runs `f`.
///
/// It starts no additional worker. While all workers are in `block_in_place`, no task runs. So `f` must not wait for
/// tasks of this runtime unless the runtime has more workers than `block_in_place` calls can run at once. Tasks of
/// [`spawn_local`](crate::spawn_local) on this worker, and futures joined with the calling one, wait until `f` returns.
/// While `f` runs, a background thread wakes up every millisecond to serve this worker's sockets and timers, so an `f`
/// that never returns costs a little all the time. [`spawn_blocking`](crate::spawn_blocking) has none of these limits.
///
/// # Examples
///
/// ```
/// let runtime = mini::runtime::Runtime::new()?;
/// let task = runtime.spawn(async {
///     mini::task::block_in_place(|| std::fs::read_to_string("Cargo.toml"))
/// });
/// assert!(runtime.block_on(task).unwrap()?.contains("mini"));
/// # std::io::Result::Ok(())
/// ```
///
/// # Panics
///
/// In the tasks and `block_on` of a `current_thread` runtime, where no other worker could take its tasks: `f` might
/// wait forever for one of them. This holds for [`Handle::block_on`](crate::runtime::Handle::block_on) too, where tokio
/// allows it: tokio's only polls its future, while this one also runs the runtime's tasks unless another thread does.
/// It panics even then, so that the outcome does not depend on which thread came first. Use
/// [`spawn_blocking`](crate::spawn_blocking) there.
///
/// If `f` panics, for example because it calls `spawn_local`.
#[track_caller]
pub fn block_in_place<F: FnOnce() -> R, R>(f: F) -> R {
    mini_kernel::scheduler::block_in_place(f)
}
