//! The sample that a thread takes of itself when SIGURG interrupts it: its registers, and the innermost part of its
//! stack.
//!
//! That signal is ignored by default, and few programs send it: for these reasons Go's runtime uses it for its
//! preemption. If a program handles it itself, no thread is interrupted.
//!
//! # In the handler
//!
//! It reads and writes atomics, and makes two system calls: gettid(2), and pread(2) of the stack by `/proc/self/mem`,
//! as that stops where memory does. It takes no lock and no memory, and calls no unwinder: that of the C library may
//! take a lock which the interrupted code has. It runs on the alternate stack that std gives its threads, if there is
//! one, so the interrupted stack needs no room. All other signals are blocked in the handler, as that stack is small.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use libc::{SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIGURG, SYS_pread64, siginfo_t, ucontext_t};
use mini_net::ThreadNumber;

use crate::insight::sample::Sample;

/// The registers in the order of their numbers in DWARF (System V ABI for AMD64, figure 3.36), the return address,
/// which is the instruction pointer, last.
const REGISTERS: [c_int; 17] = [
    libc::REG_RAX,
    libc::REG_RDX,
    libc::REG_RCX,
    libc::REG_RBX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RIP,
];

/// How many words of the stack are copied: 256 KiB, as futures nest deep and frames of debug builds are large.
const WORDS: usize = 1 << 15;

/// How long the watcher waits for an answer: so many times a millisecond. A thread that runs or waits answers in a
/// fraction of one.
const PATIENCE: u32 = 20;

/// Set before the handler is installed.
static SAMPLE: OnceLock<Sample> = OnceLock::new();

/// The descriptor of `/proc/self/mem` while a thread is asked, and until it has ended its answer.
static MEMORY: AtomicI32 = AtomicI32::new(-1);

/// A thread as it was.
pub(super) struct Interrupted {
    /// In the order of [`REGISTERS`].
    pub(super) registers: [usize; REGISTERS.len()],
    /// From the stack pointer on.
    pub(super) stack: Vec<usize>,
}

/// Interrupts `thread`, if it is in no system call that would end early. `None` if it does not answer. Called by the
/// watcher alone.
pub(super) fn interrupt(thread: ThreadNumber) -> Option<Interrupted> {
    let memory = File::open("/proc/self/mem").ok()?;
    if SAMPLE.get().is_none() {
        let _ = SAMPLE.set(Sample::new(REGISTERS.len() + WORDS)); // not within a call that a fork(2) leaves half done
    }
    let sample = SAMPLE.get().filter(|sample| !sample.is_being_answered() && has_handler())?;
    MEMORY.store(memory.as_raw_fd(), Relaxed); // before the question, which the handler sees first
    if !sample.ask(thread.to_raw()) {
        return None;
    }
    let goes_on = match thread.system_call() {
        Some(call) => call.restarts() || call.is_sleep(),
        None => thread.is_runnable() == Some(true),
    };
    let mut answer = None;
    let mut tries = if goes_on && thread.signal(SIGURG) { PATIENCE } else { 0 };
    while answer.is_none() && tries > 0 {
        thread::sleep(Duration::from_millis(1)); // real time, as the thread's
        answer = sample.take();
        tries -= 1;
    }
    sample.withdraw(thread.to_raw());
    if sample.is_being_answered() {
        mem::forget(memory); // its handler lost its processor, and may read the descriptor at any time
    }
    let mut registers = answer?;
    let stack = registers.split_off(REGISTERS.len());
    Some(Interrupted { registers: registers.try_into().ok()?, stack })
}

/// Installs the handler, unless it is there or the program has one.
fn has_handler() -> bool {
    let ours = handle as *const () as usize;
    let mut now = MaybeUninit::uninit();
    // SAFETY: asks for the action, for which there is room.
    // Test: tests/tests/dumps/stack.rs `a_long_poll_is_told_with_its_native_stack`.
    if unsafe { libc::sigaction(SIGURG, ptr::null(), now.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: filled, as the call succeeded. Test: as above.
    let mut action: libc::sigaction = unsafe { now.assume_init() };
    if !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        return action.sa_sigaction == ours;
    }
    (action.sa_sigaction, action.sa_flags) = (ours, SA_ONSTACK | SA_RESTART | SA_SIGINFO);
    // SAFETY: fills the set. Test: as above.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: `handle` has the arguments that SA_SIGINFO asks for, and does what a handler may: see the module doc.
    // Test: as above.
    unsafe { libc::sigaction(SIGURG, &raw const action, ptr::null_mut()) == 0 }
}

extern "C" fn handle(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let Some(sample) = SAMPLE.get() else { return };
    // SAFETY: takes nothing, and cannot fail. Test: as above.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address of this thread's errno, valid as long as the thread. Test: as above.
    let errno = unsafe { &mut *errno };
    let before = *errno;
    sample.answer(ThreadNumber::current().to_raw(), |room| {
        // SAFETY: with SA_SIGINFO that is what the third argument points to, until the handler returns. Test: as above.
        let context = unsafe { &*context.cast::<ucontext_t>() };
        copy(&context.uc_mcontext.gregs, room)
    });
    *errno = before;
}

/// Fills `room` with the registers and what follows the stack pointer; says how many words there are.
fn copy(registers: &[i64], room: &[AtomicUsize]) -> usize {
    let (saved, stack) = room.split_at(REGISTERS.len());
    for (word, register) in saved.iter().zip(REGISTERS) {
        word.store(registers[register as usize] as usize, Relaxed);
    }
    let (bytes, from) = (size_of_val(stack), registers[libc::REG_RSP as usize]);
    // SAFETY: `stack` has room for so many bytes, and atomics may be written while they are borrowed; nobody else reads
    // or writes them before the answer has ended (`sample.rs`). Test: as above.
    // Not by the C library's function: that is a cancellation point.
    let read = unsafe { libc::syscall(SYS_pread64, MEMORY.load(Relaxed), stack.as_ptr().cast_mut(), bytes, from) };
    REGISTERS.len() + usize::try_from(read).unwrap_or(0) / size_of::<usize>()
}

#[cfg(all(test, debug_assertions, not(any(loom, shuttle, miri, mini_kqueue_shim))))]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc;

    use super::super::tests::WATCHER;
    use super::*;

    /// Keeps the signal from this thread.
    fn block_signals() {
        let mut all = MaybeUninit::uninit();
        // SAFETY: fills the set, for which there is room.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: the set is filled, and the one before is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut()) };
    }

    /// Answers without the signal once it is asked, in its own time. Returns what the descriptor is then.
    fn answer_late(is_answering: &mpsc::Sender<()>, go_on: &mpsc::Receiver<()>) -> Option<PathBuf> {
        let mut file = None;
        while file.is_none() {
            let Some(sample) = SAMPLE.get() else { continue };
            sample.answer(ThreadNumber::current().to_raw(), |_| {
                let _ = is_answering.send(());
                let _ = go_on.recv();
                file = Some(std::fs::read_link(format!("/proc/self/fd/{}", MEMORY.load(Relaxed))).ok());
                0
            });
        }
        file.flatten()
    }

    #[test]
    fn the_file_stays_open_while_a_handler_may_read_it() {
        let _watcher = WATCHER.lock();
        let ((send, number), (asked, is_asked), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
        let thread = thread::spawn(move || {
            block_signals();
            send.send(ThreadNumber::current()).unwrap();
            answer_late(&asked, &goes_on)
        });
        let number = number.recv().unwrap();
        while is_asked.try_recv().is_err() {
            assert!(interrupt(number).is_none());
        }
        assert!(interrupt(number).is_none(), "nobody is asked meanwhile");
        go_on.send(()).unwrap();
        let file = thread.join().unwrap().expect("an open file");
        assert!(file.ends_with("mem"), "{file:?}");
    }
}
