//! What is told of a task's error: at once, if nobody has its handle, and in the report.

use std::error::Error;
use std::sync::Mutex;
use std::{fmt, io};

use super::*;

/// An error that only a group can show.
#[derive(Debug)]
struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such key")
    }
}

async fn fails() -> Result<u8, NoKey> {
    Err(NoKey)
}

fn line(mark: &str) -> u32 {
    line_of(include_str!("errors.rs"), mark)
}

#[test]
fn an_error_is_told_at_once_with_its_text_and_the_group_unless_it_is_read() {
    let name = "errors::an_error_is_told_at_once_with_its_text_and_the_group_unless_it_is_read";
    let child = in_child(name, || {
        mini::block_on(async {
            let group = Group::new().name("jobs"); // made here
            drop(group.spawn_named("config", fails())); // spawned here
            let late = group.spawn(fails());
            drop(group.spawn_local(fails()));
            drop(group.spawn_blocking(|| Err::<u8, _>(NoKey)));
            let below = group.child();
            drop(below.spawn(fails()));
            assert!(group.spawn(fails()).await.unwrap().is_err()); // read
            group.wait().await;
            until(|| late.is_finished()).await;
            drop(late); // after its end
            assert_eq!(group.shutdown(Reason::Requested).await.failures(), 6);
        });
    });
    let Some(stderr) = child else { return };
    let told: Vec<_> = stderr.lines().filter(|line| line.starts_with("mini: ")).collect();
    assert_eq!(told.len(), 5, "{stderr}");
    let (made, spawned) = (line("// made here"), line("// spawned here"));
    let expected = format!(
        " \"config\" spawned at tests/tests/groups/group/errors.rs:{spawned}:24, of the group \"jobs\" made at \
         tests/tests/groups/group/errors.rs:{made}:25, ended with an error: no such key"
    );
    assert_eq!(told.iter().filter(|line| line.ends_with(&expected)).count(), 1, "{expected}\n{stderr}");
    let of_jobs = told.iter().filter(|line| line.contains(", of the group \"jobs\" made at ")).count();
    let of_child = told.iter().filter(|line| line.contains(", of the group made at ")).count();
    assert_eq!((of_jobs, of_child), (4, 1), "{stderr}");
    assert!(told.iter().all(|line| line.ends_with(", ended with an error: no such key")), "{stderr}");
}

#[test]
fn a_panic_is_told_at_once_with_the_group_unless_it_is_read() {
    let child = in_child("errors::a_panic_is_told_at_once_with_the_group_unless_it_is_read", || {
        mini::block_on(async {
            let group = Group::new().name("panicking"); // made of panics
            drop(group.spawn(async { panic!("no luck") }));
            let late = group.spawn(async { panic!("no luck") });
            drop(group.spawn_blocking(|| panic!("no luck")));
            assert!(group.spawn(async { panic!("seen") }).await.is_err());
            until(|| late.is_finished()).await;
            drop(late); // after its end
            assert_eq!(group.shutdown(Reason::Requested).await.failures(), 4);
        });
    });
    let Some(stderr) = child else { return };
    let end = format!(
        " panicked: no luck, in the group \"panicking\" made at tests/tests/groups/group/errors.rs:{}:25\n",
        line("// made of panics")
    );
    // Each in one piece, whatever the standard library says of these panics meanwhile.
    assert_eq!(stderr.matches(&end).count(), 3, "{end}{stderr}");
    assert!(!stderr.contains("no task awaits it"), "{stderr}");
}

#[test]
fn a_hook_gets_the_error_with_its_text_and_the_group() {
    on_each_flavour(|mut builder| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        builder.on_task_error(move |error| noted.lock().unwrap().push((error.id(), error.to_string())));
        builder.build().unwrap().block_on(async {
            let group = Group::new().name("jobs");
            let task = group.spawn(fails());
            let id = task.id();
            drop(task);
            until(|| !seen.lock().unwrap().is_empty()).await;
            let report = group.shutdown(Reason::Requested).await;
            assert_eq!(report.failed()[0].error(), "no such key");
            let seen = std::mem::take(&mut *seen.lock().unwrap());
            assert_eq!((seen.len(), seen[0].0), (1, id), "{seen:?}");
            let text = &seen[0].1;
            assert!(text.contains(", of the group \"jobs\" made at "), "{text}");
            assert!(text.ends_with(", ended with an error: no such key"), "{text}");
        });
    });
}

/// An error that does not tell its cause, or only if it is asked for more.
#[derive(Debug)]
struct Loading {
    cause: io::Error,
    is_verbose: bool,
}

impl Loading {
    fn new(cause: &str, is_verbose: bool) -> Self {
        Self { cause: io::Error::other(cause), is_verbose }
    }
}

impl fmt::Display for Loading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loading the config")?;
        if self.is_verbose && f.alternate() { write!(f, ": {}", self.cause) } else { Ok(()) }
    }
}

impl Error for Loading {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

#[test]
fn an_error_is_told_with_the_causes_that_it_does_not_tell_itself() {
    mini::block_on(async {
        let group = Group::new();
        let (hidden, told) = (|| Loading::new("no disk", false), || Loading::new("no disk", true));
        let sendable = |error: Loading| Err::<(), Box<dyn Error + Send + Sync>>(error.into());
        let _ = group.spawn(async move { sendable(hidden()) }).await;
        let _ = group.spawn(async move { sendable(told()) }).await; // once
        let _ = group.spawn_any(async move { sendable(hidden()) }).await;
        let _ = group.spawn(async move { Err::<(), Box<dyn Error + Send>>(Box::new(hidden())) }).await;
        let _ = group.spawn_local(async move { Err::<(), Box<dyn Error>>(hidden().into()) }).await;
        let _ = group.spawn(async move { Err::<(), _>(told()) }).await; // as the chain of `anyhow::Error`
        let _ = group.spawn(async move { Err::<(), _>(io::Error::other(hidden())) }).await;
        let report = group.shutdown(Reason::Requested).await;
        let texts: Vec<_> = report.failed().iter().map(|task| task.error()).collect();
        assert_eq!(texts, ["loading the config: no disk"; 7]);
    });
}
