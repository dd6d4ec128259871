//! Each scenario is a test on every flavour; and all of them, one after the other, leave no file open.
//!
//! Called by the tests of this package. A scenario is an async function that waits for all it has started.
//!
//! Rejected: counting open files in each test. The tests of a file share a process, and would count one another's.

use std::future::Future;
use std::pin::Pin;

use mini::runtime::Builder;
use mini_tests::net_support::open_files;
use mini_tests::until;

/// A scenario without its type.
pub(crate) type Boxed = fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// Runs all of `scenarios` on one thread, and compares the open files before and after each.
pub(crate) fn leave_nothing_open(scenarios: &[(&str, Boxed)]) {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    for (name, scenario) in scenarios {
        runtime.block_on(scenario()); // what is opened once per process, is open now
        let before = open_files();
        println!("{name} begins with {before} open files");
        runtime.block_on(async {
            scenario().await;
            // A task that the scenario could not wait for, such as a library's own, has yet to end.
            until(|| open_files() <= before).await;
        });
    }
}

/// Makes the tests.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                mini_tests::net_support::in_each_runtime(super::$name);
            }
        )*

        #[test]
        fn nothing_stays_open() {
            let name = concat!(module_path!(), "::nothing_stays_open").split_once("::").expect("a crate").1;
            mini_tests::in_child(name, || {
                $crate::scenarios::leave_nothing_open(&[$((stringify!($name), || Box::pin(super::$name()))),*]);
            });
        }
    };
}
pub(crate) use scenarios;
