//! A process of our own program, started for one sample, and what the two ends say to each other.
//!
//! The parent holds a [`Child`]: it starts the program again with `--child`, learns the port, asks for CPU time and
//! memory and kills it when dropped. In the child [`obey`] answers, and ends the process when the parent has gone. One
//! line per question on stdin, one per answer on stdout.
//!
//! Used by the rows (`echo.rs`, `accept.rs`, `http.rs`, `memory.rs`) and by `server.rs`.
//!
//! Rejected: a server thread in the parent. Its CPU time and its memory could not be told from those of the client.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{self, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::machine;

/// How long a child may think about an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The questions.
const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// The beginning of an answer that is an error.
const ERROR: &str = "error: ";

/// Size of the futures that this process spawns, for rows that subtract it.
static FUTURE: AtomicUsize = AtomicUsize::new(0);

/// Notes the size of `future`, which is about to be spawned; gives it back.
pub(crate) fn noted<F: Future>(future: F) -> F {
    FUTURE.store(size_of_val(&future), Ordering::Relaxed);
    future
}

/// The memory of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes in memory.
    pub(crate) resident: u64,
    /// Bytes of the future of a task.
    pub(crate) future: u64,
}

impl Memory {
    /// That of this process.
    pub(crate) fn now() -> io::Result<Self> {
        Ok(Self { resident: machine::resident()?, future: FUTURE.load(Ordering::Relaxed) as u64 })
    }
}

/// In a child: answers the parent's questions, and ends the process with the last of them.
pub(crate) fn obey() {
    thread::spawn(|| {
        for question in io::stdin().lock().lines().map_while(Result::ok) {
            match question.as_str() {
                CPU => say(&machine::cpu_time().as_nanos().to_string()),
                _ => say_memory(Memory::now()),
            }
        }
        process::exit(0);
    });
}

fn say_memory(memory: io::Result<Memory>) {
    match memory {
        Ok(Memory { resident, future }) => say(&format!("{resident} {future}")),
        Err(error) => say_error(&error.to_string()),
    }
}

/// In a child: a line to the parent. Without a parent to read it there is nothing left to do.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        process::exit(1);
    }
}

/// In a child: why it cannot do what it was started for.
pub(crate) fn say_error(reason: &str) {
    say(&format!("{ERROR}{reason}"));
}

/// In the parent: a child at work. Killed when dropped.
pub(crate) struct Child {
    process: process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program again as a child called `name`.
    pub(crate) fn start(name: &str, args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let exe = env::current_exe().map_err(|error| format!("who am I: {error}"))?;
        let mut command = Command::new(exe);
        command.arg("--child").arg(name).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("no child process: {error}"))?;
        let stdin = process.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(process.stdout.take().expect("stdout is piped"));
        Ok(Self { process, stdin, stdout })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line from the child. A silent child is an error.
    pub(crate) fn answer(&mut self) -> Result<String, String> {
        let patience = Timespec::try_from(PATIENCE).expect("a minute fits");
        let mut fds = [PollFd::new(self.stdout.get_ref(), PollFlags::IN)];
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => return Err(format!("the child is silent for {PATIENCE:?}")),
            Ok(_) => {}
            Err(error) => return Err(format!("poll: {error}")),
        }
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(0) => Err("the child has ended".to_owned()),
            Ok(_) => line
                .strip_prefix(ERROR)
                .map_or(Ok(line.trim_end().to_owned()), |reason| Err(reason.trim_end().to_owned())),
            Err(error) => Err(format!("the child cannot be heard: {error}")),
        }
    }

    /// The next line from the child, as numbers.
    pub(crate) fn numbers<const COUNT: usize>(&mut self) -> Result<[u64; COUNT], String> {
        let line = self.answer()?;
        parse_numbers(&line).ok_or_else(|| format!("the child talks nonsense: {line}"))
    }

    /// CPU time of all of its threads so far.
    pub(crate) fn cpu_time(&mut self) -> Result<Duration, String> {
        self.ask(CPU)?;
        let [nanos] = self.numbers()?;
        Ok(Duration::from_nanos(nanos))
    }

    pub(crate) fn memory(&mut self) -> Result<Memory, String> {
        self.ask(MEMORY)?;
        let [resident, future] = self.numbers()?;
        Ok(Memory { resident, future })
    }

    fn ask(&mut self, question: &str) -> Result<(), String> {
        writeln!(self.stdin, "{question}").map_err(|error| format!("the child does not listen: {error}"))
    }
}

fn parse_numbers<const COUNT: usize>(line: &str) -> Option<[u64; COUNT]> {
    let numbers: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_as_many_numbers_as_were_asked_for() {
        assert_eq!(parse_numbers("12 345"), Some([12, 345]));
        assert_eq!(parse_numbers::<1>("12 345"), None);
        assert_eq!(parse_numbers::<1>("twelve"), None);
    }
}
