//! With the feature `backtrace` a long poll is told with the functions that its thread was in.
// The lines are those of a build with debug information, and the signal is sent where threads are told of.
#![cfg(all(
    feature = "backtrace",
    target_os = "linux",
    target_arch = "x86_64",
    not(mini_kqueue_shim),
    debug_assertions
))]

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mini::runtime::{Builder, Runtime, Warning, WarningKind};
use mini::time::timeout;
use mini_tests::in_child;

/// A runtime, and the long polls that it warns of.
fn warned(builder: &mut Builder) -> (Runtime, Receiver<Warning>) {
    let (send, receive) = channel();
    let hook = move |warning: &Warning| {
        if warning.kind() == WarningKind::LongPoll {
            let _ = send.send(warning.clone());
        }
    };
    (builder.on_warning(hook).build().unwrap(), receive)
}

fn flavours() -> [Builder; 2] {
    let mut two = Builder::new_multi_thread();
    two.worker_threads(2);
    [Builder::new_current_thread(), two]
}

/// Waits until there is a warning: one that computes is not told where it gets too little of a processor.
#[inline(never)]
fn waits(warnings: &Receiver<Warning>) -> Warning {
    warnings.recv().unwrap()
}

/// Where it waits.
const WAITS: u32 = line!() - 4;

/// Calls itself.
#[inline(never)]
fn nested(depth: u32, warnings: &Receiver<Warning>) -> Warning {
    if depth == 0 { waits(warnings) } else { std::hint::black_box(nested(depth - 1, warnings)) }
}

/// The functions of a stack, without the one that enters the span of a task where mini-rt has its feature `tracing`.
fn functions(stack: &str) -> Vec<&str> {
    let mut functions: Vec<_> = stack.lines().collect();
    functions.pop_if(|line| line.contains("tracing::instrument::Instrumented"));
    functions
}

#[test]
fn a_long_poll_is_told_with_its_native_stack() {
    for mut builder in flavours() {
        let (runtime, warnings) = warned(&mut builder);
        let warning = runtime.block_on(async { mini::spawn(async move { nested(3, &warnings) }).await.unwrap() });
        let stack = warning.stack().expect("a stack");
        let lines = functions(stack);
        let waits = lines.iter().position(|line| line.starts_with("dumps::stack::waits at ")).expect(stack);
        assert!(lines[waits].ends_with(&format!("stack.rs:{WAITS}")), "{stack}");
        assert!(waits <= 2, "within it a function of std, and one of C that this calls: {stack}");
        assert!(lines[waits + 1].starts_with("dumps::stack::nested at "), "{stack}");
        assert!(stack.contains(" (4 times)\n"), "{stack}");
        let outermost = lines.last().unwrap();
        assert!(outermost.starts_with("dumps::stack::a_long_poll_is_told_with_its_native_stack::"), "{stack}");
    }
}

#[test]
fn a_poll_that_waits_in_a_system_call_is_told_with_what_it_has_called() {
    for mut builder in flavours() {
        let (runtime, warnings) = warned(&mut builder);
        let line = line!() + 1;
        let warning = runtime.block_on(async { mini::spawn(async move { warnings.recv().unwrap() }).await.unwrap() });
        let stack = warning.stack().expect("a stack");
        let functions = functions(stack);
        let [.., called, caller] = functions[..] else { panic!("{stack}") };
        assert!(called.contains("mpsc::Receiver") && called.ends_with("::recv"), "{stack}");
        assert!(caller.ends_with(&format!("stack.rs:{line}")), "{stack}");
    }
}

#[test]
fn the_future_of_block_on_is_told_with_its_native_stack() {
    for mut builder in flavours() {
        let (runtime, warnings) = warned(&mut builder);
        let warning = runtime.block_on(async move { waits(&warnings) });
        let stack = warning.stack().expect("a stack");
        let outermost = stack.lines().last().unwrap();
        assert!(
            outermost.starts_with("dumps::stack::the_future_of_block_on_is_told_with_its_native_stack::"),
            "{stack}"
        );
    }
}

/// In a process of its own, as the handler stays.
#[test]
fn a_program_that_handles_the_signal_by_itself_is_left_alone() {
    use mini::signal::unix::{SignalKind, signal};

    in_child("a_program_that_handles_the_signal_by_itself_is_left_alone", || {
        let (runtime, warnings) = warned(&mut Builder::new_multi_thread());
        runtime.block_on(async {
            let mut urgent = signal(SignalKind::from_raw(libc::SIGURG)).unwrap();
            let warning = mini::spawn(async move { waits(&warnings) }).await.unwrap();
            assert_eq!(warning.stack(), None);
            assert!(timeout(Duration::ZERO, urgent.recv()).await.is_err(), "nobody has sent one");
        });
    });
}

/// A read with a timeout would end early with EINTR, which std passes on.
#[test]
fn a_thread_in_a_call_that_a_signal_ends_is_not_interrupted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let (runtime, warnings) = warned(&mut Builder::new_current_thread());
    let error = runtime.block_on(async { mini::spawn(async move { stream.read(&mut [0]) }).await.unwrap() });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(runtime);
    // Before and after it, it may have been.
    for warning in warnings {
        assert!(!warning.to_string().contains(" waits in ") || warning.stack().is_none(), "{warning}");
    }
}
