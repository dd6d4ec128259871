//! The expansion of the attributes, tested with a stand-in for the runtime that records how it was built.

// Most bodies here await nothing: clippy must not blame the user for an `async` that the attribute asks for.
#![warn(clippy::unused_async)]

use std::cell::RefCell;
use std::process::{ExitCode, Termination};

/// Where `crate = ...` points: the part of `mini` that the attributes use.
mod recorder {
    pub(crate) mod runtime {
        use std::future::Future;
        use std::io;
        use std::pin::pin;
        use std::task::{Context, Poll, Waker};

        pub(crate) struct Builder;
        pub(crate) struct Runtime;

        impl Builder {
            pub(crate) fn new_current_thread() -> Builder {
                crate::record("current_thread");
                Builder
            }

            pub(crate) fn new_multi_thread() -> Builder {
                crate::record("multi_thread");
                Builder
            }

            pub(crate) fn worker_threads(&mut self, count: usize) -> &mut Builder {
                crate::record(&format!("worker_threads {count}"));
                self
            }

            pub(crate) fn start_paused(&mut self, is_paused: bool) -> &mut Builder {
                crate::record(&format!("start_paused {is_paused}"));
                self
            }

            pub(crate) fn heed_mini_trace(&mut self, heeds: bool) -> &mut Builder {
                crate::record(&format!("trace {heeds}"));
                self
            }

            pub(crate) fn in_test_harness(&mut self) -> &mut Builder {
                self
            }

            pub(crate) fn dump_on_quit(&mut self, dumps: bool) -> &mut Builder {
                crate::record(&format!("dump {dumps}"));
                self
            }

            pub(crate) fn warnings(&mut self, warns: bool) -> &mut Builder {
                crate::WARNS.set(warns);
                self
            }

            pub(crate) fn build(&mut self) -> io::Result<Runtime> {
                if crate::REFUSE.get() { Err(io::Error::other("no more threads")) } else { Ok(Runtime) }
            }
        }

        /// Who runs the body, and what of its output is asked for.
        pub(crate) mod main {
            use std::cell::Cell;
            use std::future::Future;
            use std::process::{ExitCode, Termination};

            use super::Runtime;

            pub(crate) struct Body<F>(Cell<Option<F>>);

            impl<F: Future> Body<F> {
                pub(crate) fn new(future: F) -> Self {
                    Self(Cell::new(Some(future)))
                }

                pub(crate) fn output_here(&self, runtime: Runtime) -> F::Output {
                    crate::record("here");
                    self.mini_output(runtime)
                }
            }

            pub(crate) trait HasSignals {}
            impl HasSignals for () {}

            pub(crate) fn grace<S: HasSignals>(milliseconds: u64) -> u64 {
                milliseconds
            }

            pub(crate) trait InGrace {
                fn in_grace(&self, runtime: Runtime, grace: u64) -> ExitCode;
            }

            impl<F: Future<Output = ExitCode>> InGrace for Body<F> {
                fn in_grace(&self, runtime: Runtime, grace: u64) -> ExitCode {
                    crate::record(&format!("grace {grace}"));
                    self.mini_output(runtime)
                }
            }

            impl<F: Future<Output = ExitCode>> Body<F> {
                pub(crate) fn in_grace_here(&self, runtime: Runtime, grace: u64) -> ExitCode {
                    crate::record("here");
                    self.in_grace(runtime, grace)
                }
            }

            pub(crate) struct Main<F>(F);

            pub(crate) fn of_main<F: Future<Output: Termination>>(future: F) -> Main<Cell<Option<F>>> {
                crate::record("main");
                Main(Cell::new(Some(future)))
            }

            impl<F: Future<Output: Termination>> Main<Cell<Option<F>>> {
                pub(crate) fn mini_exit(&self) -> Body<impl Future<Output = ExitCode>> {
                    let future = self.0.take().expect("run once");
                    Body::new(async move { future.await.report() })
                }
            }

            /// Imported, and of no use to this stand-in.
            #[allow(dead_code)]
            pub(crate) trait OfError {}
            #[allow(dead_code)]
            pub(crate) trait OfText {}
            #[allow(dead_code)]
            pub(crate) trait OfAny {}

            pub(crate) trait Output<T> {
                fn mini_output(&self, runtime: Runtime) -> T;
            }

            impl<F: Future> Output<F::Output> for Body<F> {
                fn mini_output(&self, runtime: Runtime) -> F::Output {
                    runtime.block_on(self.0.take().expect("run once"))
                }
            }
        }

        impl Runtime {
            pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
                match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(output) => output,
                    Poll::Pending => panic!("the bodies here never wait"),
                }
            }
        }
    }
}

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static REFUSE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static WARNS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn record(call: &str) {
    CALLS.with_borrow_mut(|calls| calls.push(call.to_owned()));
}

/// What was called on this thread since the last look.
fn calls() -> Vec<String> {
    CALLS.take()
}

const COUNT: usize = 3;

#[test]
fn a_main_that_returns_something_gives_its_exit_code() {
    mod program {
        use crate::recorder;

        #[mini_macros::main(crate = recorder)]
        pub(super) async fn main() -> Result<(), Box<dyn std::error::Error>> {
            Ok(())
        }
    }
    let code: ExitCode = program::main();
    assert_eq!(
        (format!("{code:?}"), calls()),
        (
            format!("{:?}", ExitCode::SUCCESS),
            ["main", "multi_thread", "dump true", "trace true"].map(str::to_owned).to_vec()
        )
    );
}

#[test]
fn a_main_on_its_own_thread_gives_its_exit_code_too() {
    mod program {
        use crate::recorder;

        #[mini_macros::main(crate = recorder, main_thread = true)]
        pub(super) async fn main() -> std::process::ExitCode {
            std::process::ExitCode::from(7)
        }
    }
    let code: ExitCode = program::main();
    assert_eq!(
        (format!("{code:?}"), calls()),
        (
            format!("{:?}", ExitCode::from(7)),
            ["main", "multi_thread", "dump true", "trace true", "here"].map(str::to_owned).to_vec()
        )
    );
}

#[test]
fn a_main_with_a_grace_gives_an_exit_code_whatever_it_returns() {
    mod program {
        use crate::recorder;

        #[mini_macros::main(crate = recorder, grace = "2m")]
        pub(super) async fn main() {}
    }
    mod here {
        use crate::recorder;

        #[mini_macros::main(grace = "500ms", flavor = "current_thread", crate = recorder)]
        pub(super) async fn main() -> Result<(), std::fmt::Error> {
            Err(std::fmt::Error)
        }
    }
    let codes: [ExitCode; 2] = [program::main(), here::main()];
    assert_eq!(format!("{codes:?}"), format!("{:?}", [ExitCode::SUCCESS, ExitCode::FAILURE]));
    let first = ["main", "multi_thread", "dump true", "trace true", "grace 120000"];
    assert_eq!(
        calls(),
        [&first[..], &["main", "current_thread", "dump true", "trace true", "here", "grace 500"]].concat()
    );
}

#[test]
fn there_are_warnings_in_debug_builds_unless_something_else_is_said() {
    #[mini_macros::main(crate = recorder)]
    async fn by_default() {}
    #[mini_macros::main(crate = recorder, warnings = true)]
    async fn always() {}
    #[mini_macros::main(crate = recorder, warnings = false)]
    async fn never() {}

    let warns = [by_default, always, never].map(|entry: fn()| {
        entry();
        WARNS.get()
    });
    assert_eq!(warns, [cfg!(debug_assertions), true, false]);
}

#[test]
fn a_dump_is_for_main_unless_something_else_is_said() {
    mod program {
        use crate::recorder;

        #[mini_macros::main(crate = recorder, dump = false)]
        pub(super) async fn main() -> std::process::ExitCode {
            std::process::ExitCode::SUCCESS
        }
    }
    #[mini_macros::main(crate = recorder, dump = true, flavor = "current_thread")]
    async fn other() {}
    let _: ExitCode = program::main();
    other();
    assert_eq!(calls(), ["main", "multi_thread", "trace true", "current_thread", "dump true", "here"]);
}

#[test]
fn another_function_on_its_own_thread_gives_its_output() {
    #[mini_macros::main(crate = crate::recorder, main_thread = true)]
    async fn seven() -> u32 {
        7
    }
    assert_eq!((seven(), calls()), (7, ["multi_thread", "here"].map(str::to_owned).to_vec()));
}

#[test]
fn main_is_multi_threaded_by_default() {
    #[mini_macros::main(crate = crate::recorder)]
    async fn run() {}
    run();
    assert_eq!(calls(), ["multi_thread"]);
}

#[mini_macros::test(crate = recorder)]
async fn a_test_has_one_thread_by_default() {
    assert_eq!(calls(), ["current_thread", "here"]);
}

#[mini_macros::test(crate = recorder, flavor = "multi_thread", worker_threads = 2)]
async fn a_test_can_have_more_threads() {
    assert_eq!(calls(), ["multi_thread", "worker_threads 2", "here"]);
}

#[mini_macros::test(crate = recorder, start_paused = true)]
async fn a_test_can_start_paused() {
    assert_eq!(calls(), ["current_thread", "start_paused true", "here"]);
}

#[test]
fn worker_threads_takes_any_expression() {
    #[mini_macros::main(worker_threads = COUNT * (1 + 1), crate = recorder)]
    async fn run() {}
    run();
    assert_eq!(calls(), ["multi_thread", "worker_threads 6"]);
}

#[test]
fn the_crate_can_be_a_string() {
    #[mini_macros::main(flavor = r"current_thread", start_paused = false, crate = "crate::recorder")]
    async fn run() {}
    run();
    assert_eq!(calls(), ["current_thread", "start_paused false", "here"]);
}

#[test]
fn the_return_type_decides_what_the_body_means() {
    #[mini_macros::main(crate = recorder)]
    async fn parse(/* nothing */) -> Result<u64, Box<dyn std::error::Error>> {
        let first = "40".parse::<u64>()?;
        if first == 0 {
            return Err("nothing to add to".into());
        }
        Ok("2".parse::<u64>().map(|second| first + second)?)
    }
    assert_eq!(parse().expect("both are numbers"), 42);
}

#[test]
fn impl_trait_and_braces_may_be_returned() {
    #[mini_macros::main(crate = recorder)]
    async fn letters() -> impl Iterator<Item = char> {
        "ab".chars()
    }
    #[mini_macros::main(crate = recorder)]
    async fn bytes() -> [u8; {
        const LENGTH: usize = COUNT - 1;
        LENGTH
    }] {
        [1, 2]
    }
    assert_eq!(letters().collect::<String>(), "ab");
    assert_eq!(bytes(), [1, 2]);
}

mod outside {
    mod inside {
        /// Visible to `outside` and no further; the lint in its body is off for all of it.
        #[mini_macros::main(crate = crate::recorder)]
        #[cfg(test)]
        #[deprecated = "to see that the attribute stays"]
        pub(super) async fn seven() -> u8 {
            #![allow(unused_variables)]
            let unused = 0;
            7
        }

        /// Would be a second `seven` if the attribute were lost.
        #[mini_macros::main(crate = crate::recorder)]
        #[cfg(not(test))]
        pub(super) async fn seven() -> u8 {
            0
        }
    }

    #[expect(deprecated, reason = "the use of `seven` must warn")]
    pub(crate) fn seven() -> u8 {
        inside::seven()
    }
}

#[test]
fn visibility_and_attributes_stay() {
    assert_eq!(outside::seven(), 7);
}

#[test]
fn the_body_sees_the_names_around_it() {
    fn body() -> u8 {
        1
    }
    fn future() -> u8 {
        2
    }
    #[mini_macros::main(crate = recorder)]
    async fn run() -> u8 {
        body() + future()
    }
    assert_eq!(run(), 3);
}

#[test]
#[should_panic(expected = "`#[mini::main]` could not start the runtime: no more threads")]
fn a_runtime_that_cannot_be_built_is_a_panic_with_the_cause() {
    #[mini_macros::main(crate = recorder)]
    async fn run() {}
    REFUSE.set(true);
    run();
}

#[mini_macros::test(crate = recorder)]
#[should_panic(expected = "as it should")]
async fn should_panic_is_passed_on() {
    panic!("as it should");
}

#[mini_macros::test(crate = recorder)]
#[ignore = "fails if it is run: that it is not is the test"]
async fn ignore_is_passed_on() {
    panic!("an ignored test was run");
}

#[mini_macros::test(crate = recorder)]
async fn a_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    "1".parse::<u8>()?;
    Ok(())
}

#[mini_macros::test(crate = recorder)]
async fn a_test_may_return_any_termination() -> impl Termination {
    ExitCode::SUCCESS
}

/// Passes everything on as `macro_rules!` does: in groups without delimiters.
macro_rules! passed_on {
    (
        $(#[$attribute:meta])*
        $vis:vis $name:ident, $count:expr, $flavor:literal, $path:path, $output:ty, $body:block
    ) => {
        $(#[$attribute])*
        #[mini_macros::main(flavor = $flavor, worker_threads = $count * 2, crate = $path)]
        $vis async fn $name() -> $output $body
    };
    ($name:ident twice $count:expr) => {
        #[mini_macros::main(crate = $crate::recorder)]
        async fn $name() -> u8 {
            $count * 2
        }
    };
    ($item:item) => {
        #[mini_macros::main(crate = recorder)]
        $item
    };
}

passed_on!(
    #[must_use = "it is an error"]
    pub(crate) in_pieces, 1 + 1, "multi_thread", crate::recorder, Result<u8, ()>, { Err(()) }
);
passed_on!(private, 1, "multi_thread", recorder, u8, { 8 });
passed_on!(four twice 1 + 1);
passed_on! {
    async fn whole() -> u8 {
        9
    }
}

#[test]
fn what_a_macro_passes_on_is_understood() {
    assert_eq!(in_pieces(), Err::<u8, ()>(()));
    assert_eq!(calls(), ["multi_thread", "worker_threads 4"]);
    assert_eq!(private(), 8);
    assert_eq!(four(), 4);
    assert_eq!(whole(), 9);
}
