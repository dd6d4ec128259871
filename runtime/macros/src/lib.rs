//! The attributes `#[mini::main]` and `#[mini::test]`: an `async fn` becomes a function that builds a runtime and
//! blocks on the body. A mistake in the attribute or the signature is a compile error at the token that is wrong.
//!
//! Users reach both through `mini`, which re-exports them; no other crate depends on this package.
//!
//! `expand` runs an attribute: it has `args` read the arguments (with `literal`) and `parse` the function, and puts the
//! result together. All of them return an `error` for a mistake.
//!
//! Rejected:
//! - `syn` and `quote`: they would be most of a small program's build time, for one signature and a dozen arguments.
//! - Arguments on the function (`async fn main(args: Vec<String>)`): the type could not say what is passed.

mod args;
mod error;
mod expand;
mod literal;
mod parse;

use proc_macro::TokenStream;

use crate::args::Entry;

/// Runs an `async fn` on a runtime of its own.
///
/// The function becomes an ordinary one with the same name, visibility, attributes and return type (but see below): it
/// builds a runtime, runs the body, and drops the runtime when the body has ended. Tasks that still run are then
/// dropped. The function need not be called `main`, but it must be a free `async fn` without arguments or generic
/// parameters.
///
/// # Where the body runs
///
/// On a `multi_thread` runtime the body is a task called `main`, if its future is `Send`. Meanwhile the calling thread
/// works as one of the runtime's workers. So a loop in the body that accepts connections keeps running while a handler
/// blocks its worker, even if that worker is the main thread. In a body that is a task:
///
/// - Code after an `.await` may run on another thread, which has another id, name and thread-local values, and less
///   stack (2 MiB unless `RUST_MIN_STACK` says otherwise; a main thread has 8 MiB on Linux).
/// - `spawn_local` places a task on the worker that calls it, and the body may continue on another worker.
/// - A `main` that returns a value becomes a function that returns [`ExitCode`]. So an error need not be `Send`; it is
///   printed where the body ends, before the runtime is dropped.
/// - The function returns when the calling thread is free: if a task blocks that thread when the body ends, the task
///   ends first.
///
/// With `main_thread = true` the body stays on the calling thread, as the future of a `block_on`. So does a body that
/// is not `Send`, the body of a function not called `main` whose output is not `Send`, and the body on a
/// `current_thread` runtime. There, tasks that block the thread delay the body.
///
/// Some bodies look `Send` to the compiler until it checks lifetimes. It then rejects them with "implementation of
/// `Send` is not general enough" ([rust-lang/rust#102211](https://github.com/rust-lang/rust/issues/102211)):
/// `main_thread = true` helps then, too.
///
/// # The end in time
///
/// With `grace = "10s"` the program ends in order when it is asked to: within that time, or up to two seconds later if
/// tasks block their threads. The steps are:
///
/// 1. Ctrl-C or SIGTERM cancels the token that `mini::shutdown()` returns, and with it the token of each group. The
///    grace of the body of `main` and of the tasks of all groups begins. In this time a server usually stops accepting
///    and finishes the requests in progress. Cancelling that token in the program has the same effect.
/// 2. If all of them end, so does the program, with the exit code that `main` returns.
/// 3. After the grace, the remaining tasks are aborted, the body of `main` included. The report on stderr names each
///    task, with the line that spawned it and the line where it waits. The exit code is 124, even if `main` has
///    returned an error, which is printed as usual, or another code. If its own code is not that of success, `main`
///    counts as failed in the report.
///
/// A panic of `main` passes through when the groups have ended or been aborted: the exit code is 101, even if tasks
/// were aborted, and 124 only if a task blocks a thread (see below).
///
/// A second signal ends the program at once, as if no listener existed; a signal within half a second of the first
/// counts as the same request. This holds until the runtime has been dropped.
///
/// If `main` returns by itself, the tokens are cancelled too, with the reason `Shutdown`, and the groups get the same
/// grace. Tasks outside any group are dropped at the end, as without `grace`.
///
/// If a task of a group blocks a thread, and so cannot be dropped within a second, it is named, and the process ends
/// with code 124. The process also ends with this code if a task outside any group blocks the thread of `main` until
/// two seconds after the grace. A separate thread supervises the end, so it works even while every worker is blocked.
///
/// The argument needs the feature `signal` of `mini-rt`, which is on by default, and a function called `main`.
///
/// ```no_run
/// use mini::net::{TcpListener, TcpStream};
/// use mini::task::Group;
///
/// #[mini::main(grace = "10s")]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     let clients = Group::new().name("clients");
///     // Until the program is asked to end; then the clients that are there have ten seconds.
///     while let Ok(accepted) = mini::shutdown().run(listener.accept()).await {
///         let (stream, _) = accepted?;
///         clients.spawn(serve(stream));
///     }
///     clients.wait().await;
///     Ok(())
/// }
///
/// async fn serve(stream: TcpStream) -> std::io::Result<()> {
///     stream.write_all(b"hello\n").await
/// }
/// ```
///
/// # What the program is doing
///
/// On SIGQUIT (`kill -QUIT`, or Ctrl-\ at a terminal) a `main` prints on stderr what each worker does, what each task
/// waits for and where, which tasks wait for each other, and which tasks nothing can wake; then the program continues.
/// Without the attribute, or with `dump = false`, that signal ends the program. A program that listens to SIGQUIT by
/// `mini::signal` receives the signal itself. Use `dump = false` if a supervisor stops programs by SIGQUIT, like a
/// container whose image sets `STOPSIGNAL SIGQUIT`. Requires the features `signal` and `insight`.
///
/// In debug builds, warnings on stderr report long polls, tasks that nothing can wake, and other likely mistakes: see
/// `Builder::warnings`. `MINI_WARN=1` in the environment turns them on in any build; `MINI_WARN=0` or
/// `warnings = false` turns them off. Requires the feature `insight`.
///
/// With `MINI_TRACE=file` in the environment, a `main` records the activity of its tasks and workers. When it ends, it
/// writes the last part of the record to that file, for <https://ui.perfetto.dev>; see `Builder::heed_mini_trace`.
/// Requires the feature `insight`.
///
/// # Errors
///
/// If a function called `main` returns an error, it is printed by its `Display`, with a line for each cause that this
/// text does not name, and the exit code is that of failure. This holds for types that implement [`Error`], boxes of
/// them, and text; any other error is printed by its `Debug`, as the standard library does.
///
/// ```text
/// Error: failed to bind to 127.0.0.1:80: Permission denied (os error 13)
/// ```
///
/// # Arguments
///
/// | argument | values | default |
/// |---|---|---|
/// | `flavor` | `"multi_thread"`, `"current_thread"` | `"multi_thread"` |
/// | `worker_threads` | an expression of type `usize`, at least 1; with `"multi_thread"` only | the runtime's own |
/// | `start_paused` | `true`, `false`: whether the clock starts paused; with `"current_thread"` only | `false` |
/// | `main_thread` | `true`, `false`: whether the body stays on the thread that calls; with `"multi_thread"` only | `false` |
/// | `grace` | a time such as `"10s"`, `"500ms"`, `"2m"` or `"1h"`; on `main` only | none: nothing ends it |
/// | `dump` | `true`, `false`: whether SIGQUIT prints what the program is doing | `true` for `main`, else `false` |
/// | `warnings` | `true`, `false`: whether the program is warned | `true` in debug builds, else `false` |
/// | `crate` | path of the `mini` crate, as a path or a string, where it has another name | `::mini` |
///
/// # Examples
///
/// ```
/// #[mini::main]
/// async fn main() -> Result<(), std::num::ParseIntError> {
///     let answer = mini::spawn(async { "42".parse::<u32>() });
///     assert_eq!(answer.await.expect("the task does not panic")?, 42);
///     Ok(())
/// }
/// ```
///
/// On the calling thread alone:
///
/// ```
/// #[mini::main(flavor = "current_thread")]
/// async fn main() {
///     println!("one thread does it all");
/// }
/// ```
///
/// On three workers, with `mini` under another name, and not as the program's `main`:
///
/// ```
/// use mini as rt;
///
/// #[rt::main(worker_threads = 1 + 2, crate = rt)]
/// async fn sum() -> u32 {
///     1 + 2
/// }
///
/// assert_eq!(sum(), 3);
/// ```
///
/// # Panics
///
/// The function panics if the runtime can't be built, for instance because the operating system refuses it descriptors
/// or threads, and where `Builder::worker_threads` or `Runtime::block_on` would. A panic of the body passes through.
///
/// [`Error`]: https://doc.rust-lang.org/std/error/trait.Error.html
/// [`ExitCode`]: https://doc.rust-lang.org/std/process/struct.ExitCode.html
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Entry::Main, args, item)
}

/// Runs an `async fn` as a test, on a runtime of its own.
///
/// With `sim` the test is simulated: see [below](#a-simulated-test). Otherwise it takes the arguments of
/// [`main`](macro@main) except `main_thread`, as the body stays on the test's thread. `flavor` is `"current_thread"` by
/// default: the whole test then runs on one thread, and two runs differ less. `#[should_panic]`, `#[ignore]` and other
/// attributes work as on any test, and a test may return what [`Termination`] takes, such as a `Result`.
///
/// # A simulated test
///
/// A test with `sim` runs in virtual time under many seeds; each seed is another schedule. It requires the feature
/// `sim` of `mini-rt`, and is described in that crate's module `sim`. It returns nothing or a `Result`, and takes these
/// arguments:
///
/// | argument | values | default |
/// |---|---|---|
/// | `sim` | none | not simulated |
/// | `seeds` | an expression of type `u64`, at least 1: under how many seeds it runs | 100 |
/// | `time_limit` | a time as for `grace`: a seed that takes more virtual time fails | `"1h"` |
/// | `step_limit` | an expression of type `u64`, at least 1: a seed fails if tasks run more often in no time | a million |
/// | `crate` | as with [`main`](macro@main) | `::mini` |
///
/// # Examples
///
/// ```
/// #[mini::test]
/// async fn a_task_gives_back_what_it_computed() -> Result<(), mini::task::JoinError> {
///     assert_eq!(mini::spawn(async { 6 * 7 }).await?, 42);
///     Ok(())
/// }
/// ```
///
/// Under 200 seeds, of which none may take more than ten seconds of virtual time:
///
/// ```
/// # #[cfg(any())]
/// #[mini::test(sim, seeds = 200, time_limit = "10s")]
/// async fn two_tasks_agree() {
///     let first = mini::spawn(async { 1 });
///     let second = mini::spawn(async { 2 });
///     assert_eq!(first.await.unwrap() + second.await.unwrap(), 3);
/// }
/// ```
///
/// An hour in no time:
///
/// ```
/// use std::time::Duration;
///
/// #[mini::test(start_paused = true)]
/// async fn an_hour_passes() {
///     mini::time::sleep(Duration::from_secs(3600)).await;
/// }
/// ```
///
/// # Panics
///
/// Panics in the same cases as [`main`](macro@main); the test then fails.
///
/// [`Termination`]: https://doc.rust-lang.org/std/process/trait.Termination.html
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Entry::Test, args, item)
}
