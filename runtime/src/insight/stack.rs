//! The native stack of a thread that is long in one poll: the functions that it is in, with their lines.
//!
//! The watcher interrupts the thread (`stack/interrupt.rs`), which writes down its registers and its stack. A separate
//! thread interprets them, as that takes half a second in a debug build: from the stack to addresses
//! (`stack/unwind.rs`) in the loaded images (`stack/image.rs`), from these to names and lines (`stack/function.rs`).
//!
//! A system call in which the thread waits may end early because of the signal, with EINTR. So the watcher interrupts
//! no thread in a call that ends early although its handler has SA_RESTART (signal(7)), except in sleeps and timed
//! waits, which std resumes. A thread that computes may still enter such a call between the check and the signal.
//!
//! Rejected: to unwind in the handler, by `_Unwind_Backtrace` (it takes a lock where frames were registered, by a JIT
//! or in a static program, and waits forever if the interrupted function holds that lock). `std::backtrace` in the
//! handler (it allocates). Frame pointers (only code built with them has some). The crate framehop (it brings syn). The
//! crate `backtrace` for the names (one lock for the process). A part of the feature `insight` (fifteen more crates to
//! build).

mod function;
mod image;
mod interrupt;
mod unwind;

use std::env;

use mini_net::ThreadNumber;

use function::Functions;
use image::{Image, Memory};
use interrupt::{Interrupted, interrupt};
use unwind::places;

/// Most lines that are told.
const TOLD: usize = 32;

/// The stack of a thread as it was.
pub(super) struct Stack(Interrupted);

impl Stack {
    /// Of `thread` now, if it answers. Called by the watcher alone.
    pub(super) fn of(thread: ThreadNumber) -> Option<Self> {
        interrupt(thread).map(Self)
    }

    /// The functions within the poll, one in a line, the innermost first; `None` if nothing is known of them. Of those
    /// of the standard library that call each other it is the outermost: what the program has called.
    pub(super) fn told(&self) -> Option<String> {
        let memory = Memory::open().ok()?;
        let images = Image::all();
        let mut functions = Functions::default();
        let here = env::current_dir().unwrap_or_default();
        let mut lines = Lines::default();
        let mut called = None;
        let all = places(&self.0, &images, &memory);
        let mut all = all.iter().flat_map(|place| functions.at(place));
        let is_whole = loop {
            let Some(function) = all.next() else { break false };
            if function.is_poll() {
                break true;
            }
            if function.is_std() {
                called = Some(function.text(&here)).filter(|_| !function.is_between()).or(called);
            } else {
                called.take().into_iter().for_each(|called| lines.add(called));
                lines.add(function.text(&here));
            }
        };
        called.into_iter().for_each(|called| lines.add(called));
        lines.done(is_whole)
    }
}

/// Lines, of which equal ones that follow each other are one.
#[derive(Default)]
struct Lines {
    done: Vec<String>,
    last: String,
    /// How often the last one comes.
    times: usize,
    /// How many have a line of code.
    known: usize,
}

impl Lines {
    fn add(&mut self, line: String) {
        self.known += usize::from(line.contains(" at "));
        if line != self.last {
            self.end_line();
            self.last = line;
        }
        self.times += 1;
    }

    fn end_line(&mut self) {
        let last = std::mem::take(&mut self.last);
        match std::mem::take(&mut self.times) {
            0 => {}
            1 => self.done.push(last),
            times => self.done.push(format!("{last} ({times} times)")),
        }
    }

    /// None if the poll does not end them and no line of code is known: then they may be anything.
    fn done(mut self, is_whole: bool) -> Option<String> {
        self.end_line();
        let is_cut = !is_whole || self.done.len() > TOLD;
        self.done.truncate(TOLD);
        if is_cut {
            self.done.push("…".to_owned());
        }
        (self.known > 0 || is_whole && !self.done.is_empty()).then(|| self.done.join("\n"))
    }
}

// A release build need not have lines.
#[cfg(all(test, debug_assertions, not(any(loom, shuttle, miri, mini_kqueue_shim))))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread;

    use super::*;

    /// One at a time is interrupted.
    pub(super) static WATCHER: Mutex<()> = Mutex::new(());

    /// Interrupts a thread that runs `function` until it is told to end. It may have no processor for a while.
    fn told(function: fn(&AtomicBool)) -> String {
        let _watcher = WATCHER.lock();
        let (ends, (send, number)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let seen = ends.clone();
        let thread = thread::spawn(move || {
            send.send(ThreadNumber::current()).unwrap();
            function(&seen);
        });
        let number = number.recv().unwrap();
        let is_within = |told: &String| told.contains("_until_it_ends at ");
        let told = std::iter::repeat_with(|| Stack::of(number)?.told().filter(is_within)).flatten().next().unwrap();
        ends.store(true, Relaxed);
        thread.join().unwrap();
        told
    }

    #[inline(never)]
    fn computes_until_it_ends(ends: &AtomicBool) {
        while !ends.load(Relaxed) {}
    }

    /// Most of the time in code of the kernel, which is no file.
    #[inline(never)]
    fn reads_the_clock_until_it_ends(ends: &AtomicBool) {
        while !ends.load(Relaxed) {
            for _ in 0..1000 {
                std::hint::black_box(std::time::Instant::now());
            }
        }
    }

    #[test]
    fn a_thread_that_computes_is_told_up_to_where_it_began() {
        let told = told(computes_until_it_ends);
        assert!(told.contains("::computes_until_it_ends at "), "{told}");
        assert!(told.contains("::tests::told::{{closure}} at "), "{told}");
        assert!(told.ends_with("\n…"), "it is no poll: {told}");
    }

    #[test]
    fn a_thread_in_code_of_the_kernel_is_told_up_to_where_it_began() {
        let told = told(reads_the_clock_until_it_ends);
        assert!(told.contains("::tests::told::{{closure}} at "), "{told}");
    }
}
