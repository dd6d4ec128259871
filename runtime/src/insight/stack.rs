//! The native stack of a thread that is long in one poll: the functions that it is in, with their lines.
//!
//! The watcher asks by a SIGURG to the thread, whose handler writes the addresses down ([`Sample`]); names and lines are
//! looked up by the watcher. SIGURG is ignored where nobody handles it, and other handlers of it are called too; Go's
//! runtime takes it for the same reasons. Of the calls that a signal ends early, whatever SA_RESTART says (signal(7),
//! "Interruption of system calls"), std's own go on by themselves. Once for a line of code: as often as it is told.
//!
//! # In the handler
//!
//! It reads and writes atomics, asks for its thread's number, and goes up the stack by `_Unwind_Backtrace`, which takes
//! no memory. With glibc from 2.35 on that takes no lock (`_dl_find_object`). Before, it takes the lock of the loader,
//! which a thread may take twice and which another one keeps while it loads a library. What the unwinder does once in a
//! process is done before, by the watcher.
//!
//! The unwinder knows signal frames (augmentation `S` in the LSB's description of .eh_frame), so the frames of the handler
//! itself are left out without looking at names.
//!
//! Rejected: `std::backtrace` in the handler (it allocates, under a lock of its own). Frame pointers (only code built
//! with them has some). A part of the feature `insight` (nine more crates to build).

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use std::{env, io, ptr, thread};

use mini_net::ThreadNumber;

use super::sample::Sample;

/// Most functions that are looked up: of a recursion that is deeper the innermost ones.
const ROOM: usize = 256;

/// How long the watcher waits for an answer: so many times a millisecond. A thread that runs or waits answers in a
/// fraction of one.
const PATIENCE: u32 = 20;

/// The handler's answers, if it could be installed.
static SAMPLE: LazyLock<io::Result<&Sample>> = LazyLock::new(|| {
    let sample: &Sample = Box::leak(Box::new(Sample::new(ROOM)));
    trace(&mut |_| false);
    let handler = || sample.answer(ThreadNumber::current().to_raw(), trace);
    // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
    // Test: tests/tests/stack.rs `a_poll_that_computes_is_told_with_its_native_stack`.
    unsafe { signal_hook_registry::register(libc::SIGURG, handler) }?;
    Ok(sample)
});

unsafe extern "C" {
    /// Calls `each` with `data` for each frame of this thread from the innermost on, until it does not return 0.
    fn _Unwind_Backtrace(each: extern "C" fn(*mut Frame, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    /// The address in a frame; sets whether it is that of an instruction to come, and not after a call.
    fn _Unwind_GetIPInfo(frame: *mut Frame, is_before: *mut c_int) -> usize;
}

/// `struct _Unwind_Context`.
enum Frame {}

/// What the unwinder passes on.
struct Trace<'a> {
    /// Wants the next address.
    each: &'a mut dyn FnMut(usize) -> bool,
    /// It has come to the interrupted function.
    has_begun: bool,
}

/// In a handler: calls `each` with the address of each function that this thread was in, from the interrupted one on,
/// while it returns true. The addresses are after a call, or, for the first one, after the beginning of an instruction.
fn trace(each: &mut dyn FnMut(usize) -> bool) {
    let mut trace = Trace { each, has_begun: false };
    // SAFETY: `add` takes what it is given, and does not unwind. Test: as above.
    unsafe { _Unwind_Backtrace(add, (&raw mut trace).cast()) };
}

extern "C" fn add(frame: *mut Frame, data: *mut c_void) -> c_int {
    // SAFETY: it is the argument of `_Unwind_Backtrace` in `trace`, and nobody else has it meanwhile. Test: as above.
    let trace = unsafe { &mut *data.cast::<Trace<'_>>() };
    let mut is_before = 0;
    // SAFETY: the frame is the unwinder's, and `is_before` has room for an int. Test: as above.
    let address = unsafe { _Unwind_GetIPInfo(frame, &raw mut is_before) };
    trace.has_begun |= is_before != 0;
    let goes_on = !trace.has_begun || (trace.each)(address + is_before as usize);
    c_int::from(!goes_on)
}

/// The functions that a thread was in, by their addresses.
pub(super) struct Stack(Vec<usize>);

impl Stack {
    /// Of `thread` as it is now, if it answers. Called by the watcher alone.
    pub(super) fn of(thread: ThreadNumber) -> Option<Self> {
        let sample = SAMPLE.as_ref().ok()?;
        let number = thread.to_raw();
        if !sample.ask(number) {
            return None;
        }
        let mut answer = None;
        let mut tries = if thread.signal(libc::SIGURG) { PATIENCE } else { 0 };
        while answer.is_none() && tries > 0 {
            thread::sleep(Duration::from_millis(1)); // real time, as the thread's
            answer = sample.take();
            tries -= 1;
        }
        sample.withdraw(number);
        answer.map(Self)
    }

    /// The functions within the poll, one in a line, the innermost first; `None` if nothing is known of them. Of those
    /// of the standard library that call each other it is the outermost: what the program has called.
    ///
    /// The first time in a process this reads the debug information: half a second in a debug build.
    pub(super) fn told(&self) -> Option<String> {
        let here = env::current_dir().unwrap_or_default();
        let mut lines = Lines::default();
        let mut called = None;
        let functions = self.0.iter().flat_map(|&frame| functions(frame));
        for function in functions.take_while(|function| !function.is_poll()) {
            let text = function.text(&here);
            if function.is_std() {
                called = Some(text).filter(|_| !function.is_between()).or(called);
            } else {
                called.take().into_iter().for_each(|called| lines.add(called));
                lines.add(text);
            }
        }
        called.into_iter().for_each(|called| lines.add(called));
        lines.done()
    }
}

/// Where the component rust-src is, whose lines a program may have instead.
const RUST_SRC: &str = "/lib/rustlib/src/rust/";

struct Function {
    name: String,
    line: Option<(PathBuf, u32)>,
}

/// The function at that address, and before it those that were inlined into it.
fn functions(address: usize) -> Vec<Function> {
    let mut functions = Vec::new();
    backtrace::resolve(ptr::without_provenance_mut(address), |symbol| {
        let Some(name) = symbol.name() else { return };
        let line = symbol.filename().map(Path::to_owned).zip(symbol.lineno());
        functions.push(Function { name: format!("{name:#}"), line });
    });
    functions
}

impl Function {
    /// It is what calls a future's poll. Without debug information there are names alone; with lines and no more, the
    /// names have no paths.
    fn is_poll(&self) -> bool {
        match &self.line {
            Some((file, _)) => {
                let source = Path::new(file!().strip_suffix("insight/stack.rs").unwrap_or_default());
                ["task/cell.rs", "scheduler/block_on.rs"].iter().any(|end| file.ends_with(source.join(end)))
            }
            None => ["mini::task::cell::", "mini::scheduler::block_on::"].iter().any(|begin| self.is_in(begin)),
        }
    }

    /// It is a part of the standard library.
    fn is_std(&self) -> bool {
        let is_in_std = |file: &Path| file.starts_with("/rustc") || file.to_string_lossy().contains(RUST_SRC);
        self.line.as_ref().is_some_and(|(file, _)| is_in_std(file))
            || ["std::", "core::", "alloc::", "__rust_try"].iter().any(|begin| self.is_in(begin))
    }

    /// It is of that part of the standard library by which a poll is called, if its caller's name is not known.
    fn is_between(&self) -> bool {
        ["std::panic", "core::panic", "core::ops::function::", "__rust_try"].iter().any(|begin| self.is_in(begin))
    }

    fn is_in(&self, path: &str) -> bool {
        self.name.trim_start_matches('<').starts_with(path)
    }

    /// Without the types that a generic function is for, which may be long.
    fn text(&self, here: &Path) -> String {
        let name = match self.name.find('<') {
            Some(at) if at > 0 && self.name.ends_with('>') => self.name[..at].trim_end_matches(':'),
            _ => &self.name,
        };
        match &self.line {
            Some((file, line)) if !self.is_std() => {
                format!("{name} at {}:{line}", file.strip_prefix(here).unwrap_or(file).display())
            }
            _ => name.to_owned(),
        }
    }
}

/// Lines, of which equal ones that follow each other are one.
#[derive(Default)]
struct Lines {
    text: String,
    last: String,
    /// How often the last one comes.
    times: usize,
}

impl Lines {
    fn add(&mut self, line: String) {
        if line != self.last {
            self.end_line();
            self.last = line;
        }
        self.times += 1;
    }

    fn end_line(&mut self) {
        let times = std::mem::take(&mut self.times);
        let _ = match times {
            0 => Ok(()),
            1 => writeln!(self.text, "{}", self.last),
            _ => writeln!(self.text, "{} ({times} times)", self.last),
        };
    }

    fn done(mut self) -> Option<String> {
        self.end_line();
        self.text.pop(); // the end of the last line
        (!self.text.is_empty()).then_some(self.text)
    }
}
