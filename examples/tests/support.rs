//! Examples as programs: run to their end within a limit, and read.

use std::env;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take before it counts as a hang.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// Runs an example that has to succeed, and returns what it has printed.
pub(crate) fn succeeds(name: &str, args: &[&str]) -> String {
    let output = ended(Command::new(program(name)).args(args));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Runs an example until it shows its effect. Other programs may hide it in one round, but not in all of them.
pub(crate) fn until(name: &str, args: &[&str], shows: impl Fn(&str) -> bool) {
    let begin = Instant::now();
    loop {
        let out = succeeds(name, args);
        if shows(&out) {
            return;
        }
        assert!(begin.elapsed() < LIMIT, "{out}");
    }
}

/// Runs an example that has to fail, and returns what it has said about that.
pub(crate) fn fails(name: &str, args: &[&str]) -> String {
    failure(&ended(Command::new(program(name)).args(args)))
}

pub(crate) fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Cargo builds the examples of a package for its tests, into a directory beside theirs.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the test's own path");
    let built = test.parent().and_then(|deps| deps.parent()).expect("target/debug").join("examples").join(name);
    assert!(built.exists(), "{} is not built: run `cargo build --examples`", built.display());
    built
}

/// Runs a program to its end, within the limit.
pub(crate) fn ended(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child).unwrap_or_else(|| panic!("{command:?} has not ended after {LIMIT:?}"));
    Output { status, stdout: stdout.join().expect("stdout"), stderr: stderr.join().expect("stderr") }
}

fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        pipe.expect("a pipe was asked for").read_to_end(&mut all).expect("a pipe can be read");
        all
    })
}

fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    None
}

/// The lines that begin like this.
pub(crate) fn lines<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(begin)).collect()
}

/// The whole numbers in a line, in their order.
pub(crate) fn numbers(line: &str) -> Vec<u64> {
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}
