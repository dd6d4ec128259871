//! What a thread writes down when it is interrupted by SIGURG: its registers, and the innermost part of its stack.
//!
//! Go's runtime takes this signal for its preemption: it is ignored where nobody handles it, and nobody sends it. A
//! handler that was there before is called too, and so is this one by a handler that comes later and does the same.
//!
//! # In the handler
//!
//! It reads and writes atomics, and makes two system calls: gettid(2), and pread(2) of the stack by `/proc/self/mem`,
//! as that stops where the stack does. It takes no lock and no memory, and calls no unwinder: that of the C library may
//! take a lock which the interrupted code has. It runs on the alternate stack that std gives its threads, so the
//! interrupted one needs no room.

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

use libc::{SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIGURG, siginfo_t, ucontext_t};
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

/// Set once the handler is installed.
static HANDLER: OnceLock<Handler> = OnceLock::new();

/// The descriptor of `/proc/self/mem` while a thread is asked.
static MEMORY: AtomicI32 = AtomicI32::new(-1);

struct Handler {
    sample: Sample,
    previous: libc::sigaction,
}

/// A thread as it was.
pub(super) struct Interrupted {
    /// In the order of [`REGISTERS`].
    pub(super) registers: [usize; REGISTERS.len()],
    /// From the stack pointer on.
    pub(super) stack: Vec<usize>,
}

/// Interrupts `thread`. `None` if it does not answer. Called by the watcher alone.
pub(super) fn interrupt(thread: ThreadNumber) -> Option<Interrupted> {
    let memory = File::open("/proc/self/mem").ok()?;
    let sample = &HANDLER.get().or_else(install)?.sample;
    MEMORY.store(memory.as_raw_fd(), Relaxed); // before the question, which the handler sees first
    if !sample.ask(thread.to_raw()) {
        return None;
    }
    let mut answer = None;
    let mut tries = if thread.signal(SIGURG) { PATIENCE } else { 0 };
    while answer.is_none() && tries > 0 {
        thread::sleep(Duration::from_millis(1)); // real time, as the thread's
        answer = sample.take();
        tries -= 1;
    }
    sample.withdraw(thread.to_raw());
    let mut registers = answer?;
    let stack = registers.split_off(REGISTERS.len());
    Some(Interrupted { registers: registers.try_into().ok()?, stack })
}

#[cold]
fn install() -> Option<&'static Handler> {
    let mut previous = MaybeUninit::uninit();
    // SAFETY: asks for the action, for which there is room.
    // Test: tests/tests/stack.rs `a_poll_that_computes_is_told_with_its_native_stack`.
    if unsafe { libc::sigaction(SIGURG, ptr::null(), previous.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled, as the call succeeded. Test: as above.
    let previous = unsafe { previous.assume_init() };
    let handler = HANDLER.get_or_init(|| Handler { sample: Sample::new(REGISTERS.len() + WORDS), previous });
    // SAFETY: of zeros it has no flags, an empty mask and no handler. Test: as above.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = SA_ONSTACK | SA_RESTART | SA_SIGINFO;
    // SAFETY: `handle` has the arguments that SA_SIGINFO asks for, and does what a handler may: see the module doc.
    // Test: as above.
    (unsafe { libc::sigaction(SIGURG, &raw const action, ptr::null_mut()) } == 0).then_some(handler)
}

extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(Handler { sample, previous }) = HANDLER.get() else { return };
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
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {}
        earlier if previous.sa_flags & SA_SIGINFO != 0 => {
            // SAFETY: the flag says that the handler that was installed has these arguments.
            // Test: tests/tests/stack.rs `what_the_program_does_about_that_signal_is_still_done`.
            let earlier: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { mem::transmute(earlier) };
            earlier(signal, info, context);
        }
        earlier => {
            // SAFETY: without the flag it has this one. Test: as above, with the flag.
            let earlier: extern "C" fn(c_int) = unsafe { mem::transmute(earlier) };
            earlier(signal);
        }
    }
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
    let read = unsafe { libc::pread(MEMORY.load(Relaxed), stack.as_ptr().cast_mut().cast(), bytes, from) };
    REGISTERS.len() + usize::try_from(read).unwrap_or(0) / size_of::<usize>()
}
