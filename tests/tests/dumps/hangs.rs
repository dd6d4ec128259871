//! Programs that hang or crawl: what a dump says of each, down to the line that its author must look at.
//!
//! `locks`, `messages`, `workers` and `waits` have the programs. Each runs on a thread of its own, on every flavour,
//! until a dump made by another thread has the lines that name the culprit; then it is let go.
//!
//! Rejected: programs of their own processes, looked at by SIGQUIT (`dump.rs` has that, and it is the same dump).

use std::future::Future;
use std::thread;
use std::time::Instant;

use async_channel::Receiver;
use mini::runtime::{Builder, Dump, Handle, Runtime};
use mini::task::JoinHandle;
use mini_tests::LIMIT;

mod locks;
mod messages;
mod waits;
mod workers;

/// Closed when the program may end: `recv().await` and `recv_blocking()` then return.
type End = Receiver<()>;

/// One line of a dump: it has all of these parts.
type Line<'a> = &'a [&'a str];

/// `$mark` stands behind one line of the calling file: its name and number, as dumps print them.
macro_rules! at {
    ($mark:literal) => {{
        let file = std::path::Path::new(file!());
        let name = file.file_name().unwrap().to_str().unwrap();
        format!(
            "{name}:{}:",
            mini_tests::line_of(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../", file!())), $mark)
        )
    }};
}
pub(crate) use at;

/// Starts a task with a name.
#[track_caller]
fn task<T: Send + 'static>(name: &str, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    mini::task::Builder::new().name(name).spawn(future)
}

/// Runs `program` until a dump has all the lines `shown`, and returns that dump.
fn hang<F>(builder: &Builder, program: impl FnOnce(End) -> F + Send + 'static, shown: &[Line<'_>]) -> Dump
where
    F: Future<Output = ()>,
{
    hang_in(builder.build().unwrap(), program, |handle| until(handle, shown))
}

/// Runs `program` in the runtime for as long as `look` does.
fn hang_in<F, T>(
    runtime: Runtime,
    program: impl FnOnce(End) -> F + Send + 'static,
    look: impl FnOnce(&Handle) -> T,
) -> T
where
    F: Future<Output = ()>,
{
    let (end, ended) = async_channel::bounded::<()>(1);
    let handle = runtime.handle().clone();
    let thread = thread::spawn(move || {
        runtime.block_on(async {
            mini::race!(program(ended.clone()), async { ended.recv().await.unwrap_or_default() });
        });
    });
    let seen = look(&handle);
    drop(end);
    thread.join().unwrap();
    seen
}

/// Makes dumps until one has all the `lines`.
fn until(handle: &Handle, lines: &[Line<'_>]) -> Dump {
    let begin = Instant::now();
    loop {
        let dump = handle.dump();
        let text = dump.to_string();
        let missing = lines.iter().find(|parts| !has_line(&text, parts));
        let Some(missing) = missing else {
            if std::env::var_os("MINI_SHOW_DUMPS").is_some() {
                println!("{}", text.replace("tests/tests/dumps/hangs/", "src/"));
            }
            return dump;
        };
        assert!(begin.elapsed() < LIMIT / 2, "no line has {missing:?}:\n{text}");
        thread::yield_now();
    }
}

/// Whether one line of `text` has all the `parts`.
fn has_line(text: &str, parts: Line<'_>) -> bool {
    text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}
