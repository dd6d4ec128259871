//! Where the body of `#[mini::main]` runs, and what becomes of its output.

use std::error::Error;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use mini::task::{try_id, try_name, yield_now};
use mini_tests::{LIMIT, in_child, within};

fn here() -> ThreadId {
    thread::current().id()
}

#[test]
fn no_task_runs_on_the_thread_that_called() {
    static CALLER: OnceLock<ThreadId> = OnceLock::new();

    #[mini::main(worker_threads = 2)]
    async fn serve() {
        assert_ne!(CALLER.get(), Some(&here()));
        for _ in 0..100 {
            mini::spawn(async { assert_ne!(CALLER.get(), Some(&here())) }).await.unwrap();
        }
    }
    within(LIMIT, || {
        CALLER.set(here()).unwrap();
        serve();
    });
}

#[test]
fn a_body_that_is_send_is_a_task_and_gives_back_its_output() {
    #[mini::main(worker_threads = 2)]
    async fn name() -> Option<String> {
        yield_now().await;
        try_name().map(|name| name.to_string())
    }
    within(LIMIT, || assert_eq!(name().as_deref(), Some("main")));
}

#[test]
fn a_body_or_an_output_that_is_not_send_stays_on_the_thread() {
    #[mini::main]
    async fn body() -> ThreadId {
        let not_send = Rc::new(7);
        yield_now().await;
        assert_eq!((*not_send, try_id()), (7, None));
        here()
    }
    #[mini::main]
    async fn output() -> Rc<ThreadId> {
        yield_now().await;
        Rc::new(here())
    }
    within(LIMIT, || assert_eq!((body(), *output()), (here(), here())));
}

#[test]
fn a_body_stays_on_the_thread_if_told_to() {
    #[mini::main(main_thread = true)]
    async fn id() -> ThreadId {
        yield_now().await;
        assert_eq!(try_id(), None);
        here()
    }
    within(LIMIT, || assert_eq!(id(), here()));
}

#[test]
fn a_main_ends_with_the_exit_code_of_its_output() {
    mod failing {
        /// Its error is not `Send`.
        #[mini::main]
        pub(super) async fn main() -> Result<(), Box<dyn super::Error>> {
            assert!(super::try_id().is_some());
            Err("this is printed".into())
        }
    }
    mod fine {
        #[mini::main]
        pub(super) async fn main() -> Result<impl std::process::Termination, std::rc::Rc<str>> {
            let not_send = std::rc::Rc::new(());
            super::yield_now().await;
            drop(not_send);
            Ok(std::process::ExitCode::from(7))
        }
    }
    within(LIMIT, || {
        let is = |code: ExitCode, other: ExitCode| assert_eq!(format!("{code:?}"), format!("{other:?}"));
        is(failing::main(), ExitCode::FAILURE);
        is(fine::main(), ExitCode::from(7));
    });
}

/// Mains that fail, each in its own way.
mod failing {
    use std::error::Error;
    use std::io;

    pub(super) mod with_io_error {
        #[mini::main]
        pub(in super::super) async fn main() -> std::io::Result<()> {
            mini::fs::read("/no/such/file").await.map(drop)
        }
    }
    pub(super) mod with_box {
        #[mini::main(flavor = "current_thread")]
        pub(in super::super) async fn main() -> Result<(), Box<dyn super::Error + Send + Sync>> {
            Err(Box::new(super::io::Error::other(super::Outer)))
        }
    }
    pub(super) mod with_text {
        #[mini::main(main_thread = true)]
        pub(in super::super) async fn main() -> Result<std::process::ExitCode, String> {
            Err("in \"words\"".to_owned())
        }
    }
    pub(super) mod with_debug {
        #[derive(Debug)]
        pub(in super::super) struct Mine;

        #[mini::main]
        pub(in super::super) async fn main() -> Result<(), Mine> {
            Err(Mine)
        }
    }

    #[derive(Debug)]
    struct Outer;

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the outer one")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&std::fmt::Error)
        }
    }
}

#[test]
fn a_main_that_fails_prints_its_error_as_text_with_its_causes() {
    let test = "a_main_that_fails_prints_its_error_as_text_with_its_causes";
    let run = || {
        for main in
            [failing::with_io_error::main, failing::with_box::main, failing::with_text::main, failing::with_debug::main]
        {
            assert_eq!(format!("{:?}", main()), format!("{:?}", ExitCode::FAILURE));
        }
    };
    let Some(said) = in_child(test, run) else { return };
    let errors = [
        "Error: No such file or directory (os error 2)",
        "Error: the outer one",
        &format!("  caused by: {}", std::fmt::Error),
        "Error: in \"words\"",
        "Error: Mine",
    ];
    let lines: Vec<_> = said.lines().filter(|line| line.contains("Error: ") || line.contains("caused")).collect();
    assert_eq!(lines, errors, "{said}");
}

#[test]
fn a_panic_of_the_body_passes_through() {
    #[mini::main(worker_threads = 2)]
    async fn fails() {
        yield_now().await;
        panic!("as wanted");
    }
    within(LIMIT, || {
        let payload = catch_unwind(fails).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"as wanted"));
    });
}
