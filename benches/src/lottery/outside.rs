//! The thread that wakes tasks from outside of the runtime: over sockets, and over channels. It also ends the run.
//!
//! It never waits for the runtime: what a socket has no room for is sent with the next message, and answers are read
//! and thrown away. Where it has a CPU of its own it spins for the last bit before an event, else it sleeps without
//! timer slack.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_channel::Sender;
use rustix::thread::set_current_timer_slack;

use super::stage::Stage;
use crate::clock::Stopwatch;
use crate::cpus;
use crate::workload::tcp::MESSAGE;

/// How long before an event a thread with a CPU of its own begins to spin: longer than a wake from sleep takes.
const SPIN: Duration = Duration::from_micros(120);

/// How often a thread without events looks whether it is time.
const LONGEST: Duration = Duration::from_millis(50);

/// Where an event is sent.
pub(super) enum Target {
    /// The client's end.
    Socket(TcpStream),
    Channel(Sender<()>),
}

/// What the thread has to send.
#[derive(Default)]
pub(super) struct Outside {
    /// With the bytes that each is owed.
    targets: Vec<(Target, usize)>,
    /// Times and targets.
    events: Vec<(u64, usize)>,
    /// Whether the runtime leaves it a CPU.
    has_cpu: bool,
}

impl Outside {
    pub(super) fn new(has_cpu: bool) -> Self {
        Self { has_cpu, ..Self::default() }
    }

    /// Sends to `target` at each of `times`.
    pub(super) fn add(&mut self, target: Target, times: &[u64]) {
        let index = self.targets.len();
        self.targets.push((target, 0));
        self.events.extend(times.iter().map(|&time| (time, index)));
    }

    /// Starts the thread; it returns the CPU time that the process needed until the end, without its own.
    pub(super) fn start(mut self, stage: Arc<Stage>) -> JoinHandle<Duration> {
        self.events.sort_unstable();
        thread::spawn(move || self.run(&stage))
    }

    fn run(mut self, stage: &Stage) -> Duration {
        if self.has_cpu {
            cpus::bind_to_other();
        }
        set_current_timer_slack(NonZeroU64::new(1)).expect("a thread may be exact");
        self.wait(stage.instant(0));
        let (process, own) = (Stopwatch::start(), Stopwatch::start_of_thread());
        for (time, target) in std::mem::take(&mut self.events) {
            self.wait(stage.instant(time));
            self.send(target);
        }
        self.wait(stage.instant(stage.end()));
        let cpu = process.stop().cpu.saturating_sub(own.stop().cpu);
        stage.finish();
        cpu
    }

    fn wait(&self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match left {
                Duration::ZERO => return,
                short if self.has_cpu && short <= SPIN => std::hint::spin_loop(),
                _ if self.has_cpu => thread::sleep((left - SPIN).min(LONGEST)),
                _ => thread::sleep(left.min(LONGEST)),
            }
        }
    }

    fn send(&mut self, target: usize) {
        let (target, owed) = &mut self.targets[target];
        match target {
            // An error: the task has ended, since it is over.
            Target::Channel(sender) => drop(sender.try_send(())),
            Target::Socket(socket) => {
                let mut buf = [0; 4096];
                let _ = socket.read(&mut buf);
                *owed += MESSAGE;
                // An error: no room, or the server has ended, since it is over.
                *owed -= socket.write(&buf[..(*owed).min(buf.len())]).unwrap_or(0);
            }
        }
    }
}
