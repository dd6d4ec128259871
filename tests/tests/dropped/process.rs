//! Child processes and their pipes, and signals: no zombie stays, no byte and no signal is lost.

use mini::process::Command;
use mini::signal::unix::{SignalKind, signal};
use mini::signal::{ctrl_c, termination};
use mini_tests::child_support::{cat, sleeper};
use rustix::process::Signal;
use signal_hook::low_level::raise;

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    ends(list).await;
    pipes(list).await;
    signals(list).await;
}

/// A child that ends with its future.
fn bound() -> Command {
    let mut command = sleeper();
    command.kill_on_drop(true);
    command
}

async fn ends(list: &mut List) {
    waits!(list, bound().status());
    waits!(list, bound().output());
    waits!(list, bound().spawn().unwrap().wait_with_output());
    let mut child = bound().spawn().unwrap();
    waits!(list, child.wait());
    assert!(child.try_wait().unwrap().is_none(), "it was waited for, and no more than that");
    begins!(list, child.kill());
    assert!(!child.wait().await.unwrap().success(), "the end is there for whoever waits next");
}

async fn pipes(list: &mut List) {
    let mut child = cat().spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut buf = [0; 4];
    waits!(list, stdout.read(&mut buf));
    waits!(list, stdout.read_exact(&mut buf));
    waits!(list, stdout.read_to_end(&mut Vec::new()));
    stdin.write_all(b"ping").await.unwrap();
    stdout.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"ping");
    drop(stdin);
    assert!(child.wait().await.unwrap().success());

    let mut child = bound().stdin(std::process::Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let much = vec![1; 1 << 20];
    begins!(list, stdin.write_all(&much)); // The pipe is full from here on.
    waits!(list, stdin.write_all(&much));
    waits!(list, stdin.write(&much));
    child.kill().await.unwrap();
}

async fn signals(list: &mut List) {
    let mut signals = signal(SignalKind::user_defined1()).unwrap();
    waits!(list, signals.recv());
    raise(Signal::USR1.as_raw()).unwrap();
    assert_eq!(signals.recv().await, Some(()));
    waits!(list, ctrl_c());
    waits!(list, termination());
}
