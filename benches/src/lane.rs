//! A peer at work on a row, in a process of its own: no peer sees another one's threads, timers or heap.
//!
//! The program executes itself again ([`serve`] is what it does then), and the two talk in lines: the child says
//! `ready` or why it cannot, and answers each line with the values of a sample. Between samples it waits for a line.
//! `harness.rs` starts the lanes of a row and asks them in turn.
//!
//! Rejected: all runtimes in one process. smol's reactor is one per process, so are the heap and the affinity that
//! threads inherit; a row with a million timers per peer would leave them all to the rows after it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::cpus;
use crate::gauge::Gauge;
use crate::load::Load;
use crate::options::Options;
use crate::peer::Peer;
use crate::workload::{self, Row};

/// The first argument of a process that serves a lane.
pub(crate) const ARGUMENT: &str = "--lane";

/// How long a lane may need for its start or for a sample. Beyond that it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a lane says once it has started.
const READY: &str = "ready";

/// The parent's end. Dropping it ends the process.
pub(crate) struct Lane {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Lane {
    /// Starts a peer; returns when it is ready to be sampled. An error says why it cannot take part.
    pub(crate) fn start(row: &Row, peer: Peer, load: Load, options: &Options) -> Result<Self, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        command.args([ARGUMENT, row.name(), peer.name(), &load.to_arg(), &options.sample.as_nanos().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let requests = child.stdin.take().expect("stdin is piped");
        let answers = lines(child.stdout.take().expect("stdout is piped"));
        let mut lane = Self { child, requests, answers };
        match lane.answer()?.as_str() {
            READY => Ok(lane),
            refusal => Err(refusal.to_owned()),
        }
    }

    /// A value for each of the row's figures.
    pub(crate) fn sample(&mut self) -> Result<Vec<f64>, String> {
        writeln!(self.requests, "sample").map_err(|error| error.to_string())?;
        let answer = self.answer()?;
        let values = answer.split_whitespace().map(str::parse);
        values.collect::<Result<_, _>>().map_err(|_| format!("not a sample: {answer}"))
    }

    fn answer(&mut self) -> Result<String, String> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_err(|error| error.to_string())?;
                Err(format!("its process ended, {status}"))
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that a process prints, read by a thread so that waiting for one can have a limit.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        for line in lines {
            if sender.send(line).is_err() {
                return; // the lane has been dropped
            }
        }
    });
    receiver
}

/// What the program does when its first argument is [`ARGUMENT`]; `args` are those after it.
pub(crate) fn serve(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<_> = args.collect();
    match start(&args).and_then(|gauge| answer_requests(gauge).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<Gauge, String> {
    let [name, peer, load, nanos] = args else { return Err(format!("`{ARGUMENT}` wants four arguments")) };
    let rows = workload::rows();
    let row = rows.iter().find(|row| row.name() == name).ok_or_else(|| format!("no row is called `{name}`"))?;
    let sample = Duration::from_nanos(nanos.parse().map_err(|_| format!("`{nanos}` is not a time"))?);
    let (peer, load) = (Peer::parse(peer)?, load.parse()?);
    cpus::pin(row.pin(), &cpus::allowed()).map_err(|error| format!("cannot be pinned: {error}"))?;
    Gauge::start(row, peer, load, sample).map_err(|error| error.to_string())
}

/// Until the parent closes stdin.
fn answer_requests(mut gauge: Gauge) -> io::Result<()> {
    println!("{READY}");
    for request in io::stdin().lines() {
        request?;
        let values: Vec<_> = gauge.sample().iter().map(f64::to_string).collect();
        println!("{}", values.join(" "));
    }
    Ok(())
}
